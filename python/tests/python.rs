//! The Python package: its tests by pytest, on the module that Cargo has built; and as a wheel (slow).

#![expect(clippy::disallowed_methods, reason = "these tests start programs")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

/// The folder of this crate.
const HERE: &str = env!("CARGO_MANIFEST_DIR");

/// A folder of the build: `target/<profile>`.
fn built() -> PathBuf {
    let own = std::env::current_exe().expect("a test has a path");
    own.ancestors().nth(2).expect("target/<profile>/deps/<test>").to_owned()
}

/// Runs a command and returns its output; panics with all of that unless it succeeds.
fn good(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let said = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    assert!(output.status.success(), "{command:?}\n{}\n{}", said[0], said[1]);
    output
}

/// An interpreter that has pytest.
fn interpreter() -> Option<&'static str> {
    let has = |python: &&str| {
        Command::new(python)
            .args(["-c", "import pytest"])
            .output()
            .is_ok_and(|o| o.status.success())
    };
    ["python3", "/usr/bin/python3"].into_iter().find(has)
}

/// Runs pytest on the tests of this crate, with the package in `packages`.
fn pytest(python: &Path, packages: Option<&Path>, more: &[&str]) {
    let mut command = Command::new(python);
    command.args(["-m", "pytest", "-q", "-p", "no:cacheprovider"]).args(more);
    command.args(["-c", &format!("{HERE}/pyproject.toml"), &format!("{HERE}/tests")]);
    if let Some(packages) = packages {
        command.env("PYTHONPATH", packages).args(["-p", "pausebed.pytest_plugin"]);
    }
    let labs = tempfile::tempdir().expect("a folder");
    command.env("PAUSEBED", built().join("pausebed")).env("PAUSEBED_LABS", labs.path());
    // Not in the folder of this crate, whose package has no module.
    command.env("PYTHONDONTWRITEBYTECODE", "1").current_dir(labs.path());
    good(&mut command);
}

#[test]
fn the_package_passes_its_own_tests() {
    let Some(python) = interpreter() else {
        skip::because!("there is no pytest");
        return;
    };
    let packages = tempfile::tempdir().expect("a folder");
    let package = packages.path().join("pausebed");
    fs::create_dir(&package).expect("a new folder");
    for entry in fs::read_dir(Path::new(HERE).join("pausebed")).expect("the package").flatten() {
        if entry.path().is_file() {
            fs::copy(entry.path(), package.join(entry.file_name())).expect("a copy");
        }
    }
    let module = built().join("deps").join("libpausebed_python.so");
    fs::copy(&module, package.join("_native.abi3.so")).expect("the module is built");
    pytest(Path::new(python), Some(packages.path()), &[]);
}

/// A virtual environment with packages.
fn environment(packages: &[&str]) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    good(Command::new("python3").args(["-m", "venv"]).arg(folder.path()));
    let python = folder.path().join("bin").join("python");
    good(Command::new(&python).args(["-m", "pip", "install", "-q"]).args(packages));
    (folder, python)
}

#[test]
#[ignore = "slow: packages are fetched, and a wheel is built"]
fn the_wheel_is_abi3_and_runs_tests_and_notebooks() {
    let (folder, python) = environment(&[
        "maturin",
        "pytest",
        "abi3audit",
        "polars",
        "pandas>=3",
        "pyarrow",
        "nbclient",
        "ipykernel",
        "matplotlib",
        "scapy",
    ]);
    let tool = |name: &str| folder.path().join("bin").join(name);
    let wheels = folder.path().join("wheels");
    let mut build = Command::new(tool("maturin"));
    build.args(["build", "--profile", "quick", "--out"]).arg(&wheels).current_dir(HERE);
    good(build.env("CARGO_TARGET_DIR", built().parent().expect("target")));
    let wheel = fs::read_dir(&wheels).expect("wheels").flatten().next().expect("one").path();
    let name = wheel.file_name().expect("a name").to_string_lossy().into_owned();
    assert!(name.contains("-cp39-abi3-"), "{name}");
    good(Command::new(tool("abi3audit")).args(["--strict"]).arg(&wheel));
    good(Command::new(&python).args(["-m", "pip", "install", "-q"]).arg(&wheel));
    pytest(&python, None, &[]);
    let notebooks = Path::new(HERE).join("notebooks");
    for entry in fs::read_dir(&notebooks).expect("notebooks").flatten() {
        let run = "import nbclient, nbformat, sys; \
                   nbclient.NotebookClient(nbformat.read(sys.argv[1], 4), timeout=600).execute()";
        let mut command = Command::new(&python);
        command.args(["-c", run]).arg(entry.path()).current_dir(&notebooks);
        good(command.env("PAUSEBED", built().join("pausebed")));
    }
}
