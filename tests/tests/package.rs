//! The Debian package: installed in a clean root file system, used, removed, and nothing is left.

#![expect(clippy::disallowed_methods, reason = "these tests start programs")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The greatest size of the static program in octets, with the profile of packages.
const PROGRAM_MAX: u64 = 25_000_000;

/// A root file system with dpkg's data alone, or that of debootstrap if `PAUSEBED_ROOT` names one.
struct Root {
    folder: PathBuf,
    _own: Option<tempfile::TempDir>,
}

impl Root {
    fn make() -> Root {
        if let Some(named) = std::env::var_os("PAUSEBED_ROOT") {
            return Root { folder: named.into(), _own: None };
        }
        let own = tempfile::tempdir().expect("a folder");
        for folder in ["var/lib/dpkg/info", "var/lib/dpkg/updates", "proc", "tmp", "root", "dev"] {
            fs::create_dir_all(own.path().join(folder)).expect("a folder");
        }
        fs::write(own.path().join("var/lib/dpkg/status"), "").expect("a file");
        Root { folder: own.path().to_owned(), _own: Some(own) }
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

    /// Every path in the root but the data of dpkg.
    fn paths(&self) -> BTreeSet<PathBuf> {
        let (mut found, mut folders) = (BTreeSet::new(), vec![self.folder.clone()]);
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).expect("it can be read") {
                let path = entry.expect("it can be read").path();
                let name = path.strip_prefix(&self.folder).expect("it is below").to_owned();
                if name.starts_with("var/lib/dpkg") || name == Path::new("proc") {
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

#[test]
#[ignore = "slow: links the program twice"]
fn the_debian_package_is_installed_used_and_removed_without_a_trace() {
    if !nix::unistd::geteuid().is_root() {
        skip::because!("a root file system is entered by root alone");
        return;
    }
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let target = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    let built = target.unwrap_or_else(|| repository.join("target")).join("package");
    // `dist` takes several minutes more, and makes a smaller program.
    let profile = std::env::var("PAUSEBED_PROFILE").unwrap_or_else(|_| "quick".to_owned());
    good(Command::new(repository.join("docker/package.sh")).arg(&profile).output());
    let program = fs::metadata(built.join("pausebed")).expect("the static program");
    assert!(program.len() < PROGRAM_MAX || profile != "dist", "{} octets", program.len());
    let ends_so = |path: &PathBuf| path.extension().is_some_and(|end| end == "deb");
    let files = fs::read_dir(&built).expect("a folder").flatten().map(|entry| entry.path());
    let package = files.filter(|path| ends_so(path)).max().expect("a package");

    let root = Root::make();
    let before = root.paths();
    root.dpkg(&["--install", package.to_str().expect("its path is text")]);
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
    let git = Command::new("git").args(["rev-parse", "HEAD"]).current_dir(&repository).output();
    let commit = git.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    if let Some(commit) = commit.ok().filter(|commit| commit.len() > 12) {
        let version = root.pausebed("--version");
        assert!(version.contains(&commit[..12]), "{version} does not name {commit}");
    }
    assert!(root.pausebed("scenarios list").contains("pfister/case4-none"));
    root.pausebed("init /tmp/mine.toml --scheme ib-cca");
    root.pausebed("run /tmp/mine.toml --out /tmp/run");
    root.pausebed("run /tmp/mine.toml --backend udp --pace exact --out /tmp/exact");
    root.pausebed("compare /tmp/run /tmp/exact --exact");
    assert!(root.folder.join("tmp/run/report.html").is_file());

    fs::remove_dir_all(root.folder.join("tmp")).expect("what the runs wrote");
    fs::create_dir(root.folder.join("tmp")).expect("a folder");
    root.dpkg(&["--purge", "pausebed"]);
    let left: Vec<_> = root.paths().difference(&before).cloned().collect();
    assert!(left.is_empty(), "{left:?}");
}
