//! The files of docker/package.sh, each from nothing: installed in a clean place, used, removed, and nothing is left.
//! Sizes and times of all ways are printed.

#![expect(clippy::disallowed_methods, reason = "these tests start programs, and time them")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The greatest size of the static program in octets, with the profile of packages.
const PROGRAM_MAX: u64 = 25_000_000;

/// The repository.
const REPOSITORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// How long an installation, the first answer of what is installed, and the runs after it took.
type Times = [Duration; 3];

/// Installs a file, uses it and removes it.
type Route = fn(&Path) -> Times;

/// A root file system with dpkg's data alone, or that of debootstrap if `PAUSEBED_ROOT` names one.
struct Root {
    folder: PathBuf,
    _own: Option<TempDir>,
}

impl Root {
    fn debian() -> Root {
        if let Some(named) = std::env::var_os("PAUSEBED_ROOT") {
            return Root { folder: named.into(), _own: None };
        }
        let root = Root::empty();
        for folder in ["info", "updates"] {
            fs::create_dir_all(root.folder.join("var/lib/dpkg").join(folder)).expect("a folder");
        }
        fs::write(root.folder.join("var/lib/dpkg/status"), "").expect("a file");
        root
    }

    /// A root file system without files.
    fn empty() -> Root {
        let own = tempfile::tempdir().expect("a folder");
        for folder in ["proc", "dev", "tmp", "root", "usr/bin"] {
            fs::create_dir_all(own.path().join(folder)).expect("a folder");
        }
        Root { folder: own.path().to_owned(), _own: Some(own) }
    }

    /// Removes what was written to `/tmp`.
    fn clean(&self) {
        for entry in fs::read_dir(self.folder.join("tmp")).expect("a folder").flatten() {
            fs::remove_dir_all(entry.path())
                .or_else(|_| fs::remove_file(entry.path()))
                .expect("it is removed");
        }
    }

    fn dpkg(&self, words: &[&str]) {
        let mut dpkg = Command::new("dpkg");
        dpkg.arg("--root").arg(&self.folder).args(["--force-depends", "--force-not-root"]);
        good(dpkg.args(words).output());
    }

    /// Runs the installed program in the root, with a `/proc` and a `/dev` that end with it.
    fn pausebed(&self, words: &str) -> String {
        let script = format!(
            "mount -t proc proc \"$0/proc\" && mount --bind /dev \"$0/dev\" && exec env -i HOME=/root TMPDIR=/tmp /usr/sbin/chroot \"$0\" /usr/bin/pausebed {words}"
        );
        let mut shell = Command::new("unshare");
        shell.args(["--mount", "--pid", "--fork", "sh", "-c", &script]).arg(&self.folder);
        good(shell.output())
    }

    fn paths(&self) -> BTreeSet<PathBuf> {
        paths(&self.folder, &["var/lib/dpkg", "proc"])
    }
}

/// Every path in a folder, but `except` and what is below.
fn paths(folder: &Path, except: &[&str]) -> BTreeSet<PathBuf> {
    let (mut found, mut folders) = (BTreeSet::new(), vec![folder.to_owned()]);
    while let Some(inner) = folders.pop() {
        for entry in fs::read_dir(inner).expect("it can be read") {
            let path = entry.expect("it can be read").path();
            let name = path.strip_prefix(folder).expect("it is below").to_owned();
            if except.iter().any(|except| name.starts_with(except)) {
                continue;
            }
            if path.is_dir() && !path.is_symlink() {
                folders.push(path);
            }
            found.insert(name);
        }
    }
    found
}

/// Standard output of a program that ended well.
#[track_caller]
fn good(output: std::io::Result<Output>) -> String {
    let output = output.expect("the program can be started");
    let talk = String::from_utf8_lossy(&output.stderr).into_owned();
    let data = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{}: {talk}{data}", output.status);
    data
}

/// The result of `work`, and how long it took.
fn timed<T>(work: impl FnOnce() -> T) -> (Duration, T) {
    let begin = Instant::now();
    let result = work();
    (begin.elapsed(), result)
}

/// What every installed program can do; `run` starts it. How long its first answer and the demo took.
#[track_caller]
fn answers(out: &str, run: impl Fn(&str) -> String) -> [Duration; 2] {
    let (first, version) = timed(|| run("--version"));
    let git = Command::new("git").args(["rev-parse", "HEAD"]).current_dir(REPOSITORY).output();
    let commit = git.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    if let Some(commit) = commit.ok().filter(|commit| commit.len() > 12) {
        assert!(version.contains(&commit[..12]), "{version} does not name {commit}");
    }
    assert!(run("scenarios list").contains("pfister/case4-none"));
    let (demo, said) = timed(|| run(&format!("demo --backend virtual --out {out}")));
    assert!(said.contains("PASS"), "{said}");
    [first, demo]
}

/// The static program alone in an empty root file system.
fn static_program(program: &Path) -> Times {
    let size = fs::metadata(program).expect("the static program").len();
    assert!(size < PROGRAM_MAX || profile() != "dist", "{size} octets");
    let root = Root::empty();
    let before = root.paths();
    let own = root.folder.join("usr/bin/pausebed");
    let (install, _) = timed(|| fs::copy(program, &own).expect("a copy"));
    let [first, demo] = answers("/tmp/demo", |words| root.pausebed(words));
    fs::remove_file(own).expect("the program");
    root.clean();
    assert_eq!(root.paths(), before);
    [install, first, demo]
}

/// The Debian package, by dpkg.
fn debian_package(package: &Path) -> Times {
    let root = Root::debian();
    let before = root.paths();
    let file = package.to_str().expect("its path is text");
    let (install, ()) = timed(|| root.dpkg(&["--install", file]));
    let installed = root.paths();
    for path in [
        "usr/bin/pausebed",
        "usr/share/man/man1/pausebed-run.1.gz",
        "usr/share/bash-completion/completions/pausebed",
        "usr/share/zsh/vendor-completions/_pausebed",
        "usr/share/fish/vendor_completions.d/pausebed.fish",
        "usr/share/pausebed/wireshark/pausebed.lua",
        "usr/share/pausebed/scenarios/pfister/case4-none.toml",
        "usr/share/doc/pausebed/docs/pictures/fabric-178mm.svg",
        "usr/share/doc/pausebed/third-party-notices.gz",
    ] {
        assert!(installed.contains(Path::new(path)), "{path} is missing");
    }
    let [first, demo] = answers("/tmp/demo", |words| root.pausebed(words));
    root.pausebed("init /tmp/mine.toml --scheme ib-cca");
    root.pausebed("run /tmp/mine.toml --out /tmp/run");
    root.pausebed("run /tmp/mine.toml --backend udp --pace exact --out /tmp/exact");
    root.pausebed("compare /tmp/run /tmp/exact --exact");
    assert!(root.folder.join("tmp/run/report.html").is_file());

    root.clean();
    root.dpkg(&["--purge", "pausebed"]);
    let left: Vec<_> = root.paths().difference(&before).cloned().collect();
    assert!(left.is_empty(), "{left:?}");
    [install, first, demo]
}

/// The licence notices name a crate that is in every program.
fn assert_notices(file: &Path) {
    let text = fs::read_to_string(file).expect("notices");
    assert!(text.contains("  bytes "), "{}", file.display());
}

/// The image, loaded from its file by a Docker engine that does not have it.
fn image(file: &Path) -> Times {
    let docker = |words: &str| good(Command::new("docker").args(words.split(' ')).output());
    let name = format!("pausebed:{}", env!("CARGO_PKG_VERSION"));
    docker(&format!("image rm {name}"));
    let kept = ["ps --all --quiet", "volume ls --quiet"];
    let before = kept.map(docker);
    let (install, _) = timed(|| docker(&format!("load --quiet --input {}", file.display())));
    let [first, demo] =
        answers("/tmp/demo", |words| docker(&format!("run --rm --network none {name} {words}")));
    let made = docker(&format!("create {name}"));
    let folder = tempfile::tempdir().expect("a folder");
    docker(&format!("cp {}:/third-party-notices {}", made.trim(), folder.path().display()));
    assert_notices(&folder.path().join("third-party-notices"));
    docker(&format!("rm {}", made.trim()));
    assert_eq!(kept.map(docker), before);
    [install, first, demo]
}

/// Makes a virtual environment of Python.
fn new_environment(folder: &Path) {
    good(Command::new("python3").args(["-m", "venv"]).arg(folder).output());
}

/// The wheel, in a new virtual environment.
fn wheel(file: &Path) -> Times {
    let folder = tempfile::tempdir().expect("a folder");
    let environment = folder.path().join("environment");
    let python = |words: &[&str]| {
        let mut python = Command::new(environment.join("bin").join("python"));
        // What the interpreter and pip themselves keep is not of the wheel.
        good(python.args(words).env("PYTHONDONTWRITEBYTECODE", "1").output())
    };
    let (create, ()) = timed(|| new_environment(&environment));
    let before = paths(&environment, &[]);
    let file = file.to_str().expect("its path is text");
    let pip = ["-m", "pip", "install", "--quiet", "--no-index", file];
    let (install, _) = timed(|| python(&pip));
    let (first, _) = timed(|| python(&["-c", "import pausebed"]));
    let package = python(&["-c", "import pausebed; print(pausebed.__path__[0])"]);
    assert_notices(&Path::new(package.trim()).join("third-party-notices"));
    let runs = ["none", "ib-cca"].map(|scheme| {
        let scenario = format!("{REPOSITORY}/topo/scenarios/pfister/demo-{scheme}.toml");
        let run = format!("import pausebed; pausebed.run({scenario:?}).check()");
        timed(|| python(&["-c", &run])).0
    });
    python(&["-m", "pip", "uninstall", "--quiet", "--yes", "pausebed"]);
    assert_eq!(paths(&environment, &[]), before);
    [create + install, first, runs.iter().sum()]
}

/// The Cargo profile of the packages: `dist` takes several minutes more, and makes a smaller program.
fn profile() -> String {
    std::env::var("PAUSEBED_PROFILE").unwrap_or_else(|_| "quick".to_owned())
}

/// The folder of the packages, which are built.
fn build() -> PathBuf {
    let tools = tempfile::tempdir().expect("a folder");
    new_environment(tools.path());
    let bin = tools.path().join("bin");
    good(Command::new(bin.join("pip")).args(["install", "--quiet", "maturin"]).output());
    let path = std::env::var("PATH").unwrap_or_default();
    let mut package = Command::new(format!("{REPOSITORY}/docker/package.sh"));
    package.arg(profile()).env("PATH", format!("{}:{path}", bin.display()));
    good(package.output());
    let target = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    target.unwrap_or_else(|| Path::new(REPOSITORY).join("target")).join("package")
}

#[test]
#[ignore = "slow: links the program, a wheel, and fetches maturin"]
fn each_package_is_installed_used_and_removed_without_a_trace() {
    if !nix::unistd::geteuid().is_root() {
        skip::because!("a root file system is entered by root alone");
        return;
    }
    let built = build();
    let mut table = String::from(
        "| route | size | installed after | first answer | the demo, twice 6000 τ |\n|---|---|---|---|---|\n",
    );
    let routes: [(&str, &str, Route); 4] = [
        ("static program in an empty root", "pausebed", static_program),
        ("Debian package", ".deb", debian_package),
        ("image, `docker load`", ".tar.gz", image),
        ("wheel in a new virtual environment", ".whl", wheel),
    ];
    for (route, end, install) in routes {
        let files = fs::read_dir(&built).expect("a folder").flatten().map(|entry| entry.path());
        let Some(file) = files.filter(|file| file.to_string_lossy().ends_with(end)).max() else {
            assert_eq!(end, ".tar.gz", "there is no file for: {route}");
            skip::because!("no Docker engine: no image");
            continue;
        };
        let size = fs::metadata(&file).expect("a file").len() as f64 / 1e6;
        let [install, first, demo] = install(&file).map(|time| time.as_secs_f64());
        table +=
            &format!("| {route} | {size:.1} MB | {install:.2} s | {first:.2} s | {demo:.2} s |\n");
    }
    println!("{table}");
}
