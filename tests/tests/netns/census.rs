//! Namespaces, interfaces, processes and files before, during and after a run: nothing may remain.

use super::laboratory::{eventually, in_repository, pausebed};
use super::objects::{children, namespace_of, namespaces_held, references};
use super::permitted;
use emulation::clock::Stopwatch;
use emulation::timer;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

/// A run of the small InfiniBand fabric with all its files in separate folders.
struct Lab {
    launcher: Child,
    folder: TempDir,
}

/// The objects of a running lab.
#[derive(Debug, Default)]
struct Objects {
    /// Identifiers of its network namespaces.
    namespaces: BTreeSet<String>,
    /// Process IDs of the launcher and its daemons.
    processes: BTreeSet<u32>,
}

impl Lab {
    fn start(folder: TempDir) -> Lab {
        for name in ["tmp", "run"] {
            fs::create_dir_all(folder.path().join(name)).expect("a folder");
        }
        let file = in_repository("tests/tests/live/scenario.toml");
        let launcher = Command::new(pausebed())
            .arg("run")
            .arg(file)
            .args(["--backend", "netns", "--no-report"])
            .env("TMPDIR", folder.path().join("tmp"))
            .env("XDG_RUNTIME_DIR", folder.path().join("run"))
            .env("XDG_CACHE_HOME", folder.path().join("cache"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the program starts");
        Lab { launcher, folder }
    }

    /// Waits until the lab is complete and returns its objects.
    fn stock(&self) -> Objects {
        let mut objects = Objects::default();
        let own = namespace_of(std::process::id());
        let stands = eventually(20.0, || {
            let launcher = self.launcher.id();
            objects.namespaces = namespaces_held(launcher);
            objects.processes = children(launcher);
            objects.namespaces.len() >= 5 && objects.processes.len() == 2
        });
        assert!(stands, "the lab is incomplete: {objects:?}");
        assert!(!objects.namespaces.contains(&own), "a lab has its own namespaces");
        objects.processes.insert(self.launcher.id());
        objects
    }

    fn files(&self) -> Vec<PathBuf> {
        let mut files = Vec::new();
        for name in ["tmp", "run/pausebed"] {
            let entries = fs::read_dir(self.folder.path().join(name));
            files.extend(entries.into_iter().flatten().flatten().map(|entry| entry.path()));
        }
        files
    }

    /// Waits for the end of the launcher; returns its exit code.
    fn end(&mut self) -> Option<i32> {
        let mut status = None;
        let ended = eventually(60.0, || {
            status = self.launcher.try_wait().expect("the process is a child of the test");
            status.is_some()
        });
        assert!(ended, "the launcher did not end");
        status.and_then(|status| status.code())
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        // The process still runs only after a failed test. An error means that it has ended.
        let _ = self.launcher.kill();
        let _ = self.launcher.wait();
    }
}

/// Interfaces of this namespace.
fn interfaces() -> BTreeSet<String> {
    let entries = fs::read_dir("/sys/class/net").expect("/sys is mounted");
    entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// Asserts that no object is left and that the interfaces equal `before`.
fn assert_gone(objects: &Objects, before: &BTreeSet<String>) {
    let alive = |process: &&u32| {
        let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        let is_ours = ["(pausebed)", "(switchd)", "(nicd)"].iter().any(|name| stat.contains(name));
        is_ours && !stat.contains(") Z ")
    };
    let gone = eventually(10.0, || {
        objects.processes.iter().filter(alive).count() == 0
            && references(&objects.namespaces).is_empty()
    });
    assert!(gone, "{:?} of {objects:?}", references(&objects.namespaces));
    assert_eq!(&interfaces(), before);
}

#[test]
fn a_finished_or_interrupted_run_leaves_nothing_behind() {
    if !permitted() {
        return;
    }
    let before = interfaces();
    for signal in [None, Some(Signal::SIGINT), Some(Signal::SIGTERM)] {
        let mut lab = Lab::start(tempfile::tempdir().expect("a folder"));
        let objects = lab.stock();
        assert_eq!(lab.files().len(), 2, "a scratch folder and a journal: {:?}", lab.files());
        if let Some(signal) = signal {
            kill(Pid::from_raw(lab.launcher.id() as i32), signal)
                .expect("the test may signal the process");
        }
        let code = lab.end();
        match signal {
            None => assert!(matches!(code, Some(0 | 4)), "{code:?}"),
            Some(_) => assert_eq!(code, Some(130)),
        }
        assert_gone(&objects, &before);
        assert_eq!(lab.files(), [""; 0].map(PathBuf::from), "{signal:?}");
    }
}

#[test]
fn a_killed_daemon_ends_the_run_and_nothing_remains() {
    if !permitted() {
        return;
    }
    let before = interfaces();
    let mut lab = Lab::start(tempfile::tempdir().expect("a folder"));
    let objects = lab.stock();
    let victim = objects.processes.iter().find(|process| **process != lab.launcher.id());
    kill(Pid::from_raw(*victim.expect("a daemon") as i32), Signal::SIGKILL)
        .expect("the test may signal the process");
    assert_eq!(lab.end(), Some(5), "a daemon died");
    assert_gone(&objects, &before);
    assert_eq!(lab.files(), [""; 0].map(PathBuf::from));
}

/// The kernel removes namespaces, interfaces and daemons; the next launcher removes the files, and only
/// those.
#[test]
fn the_next_launcher_removes_the_files_of_a_killed_one() {
    if !permitted() {
        return;
    }
    let before = interfaces();
    let mut folder = tempfile::tempdir().expect("a folder");
    // Kill at several steps: before, during and after the creation of the lab.
    for milliseconds in [5, 20, 40, 80, 160, 400] {
        let mut lab = Lab::start(folder);
        let stopwatch = Stopwatch::start();
        let deadline = emulation::clock::monotonic_ns() + milliseconds * 1_000_000;
        while emulation::clock::monotonic_ns() < deadline {
            timer::wait(None, deadline);
        }
        let objects = Objects {
            processes: children(lab.launcher.id()).into_iter().chain([lab.launcher.id()]).collect(),
            ..Objects::default()
        };
        lab.launcher.kill().expect("the test may signal the process");
        lab.launcher.wait().expect("the process is a child of the test");
        assert_gone(&objects, &before);
        eprintln!("killed after {:.3} s: {} files left", stopwatch.seconds(), lab.files().len());
        folder = std::mem::replace(&mut lab.folder, tempfile::tempdir().expect("a folder"));
    }
    let foreign = folder.path().join("run/pausebed/mine.json");
    fs::create_dir_all(folder.path().join("run/pausebed")).expect("a folder");
    fs::write(&foreign, "{}").expect("a file");
    let mut next = Lab::start(folder);
    let objects = next.stock();
    assert!(matches!(next.end(), Some(0 | 4)));
    assert_gone(&objects, &before);
    let journals: Vec<_> = next
        .files()
        .into_iter()
        .filter(|file| file.starts_with(next.folder.path().join("run")))
        .collect();
    assert_eq!(journals, [foreign], "only journals of killed launchers are removed");
    let marked = next.files().into_iter().filter(|file| file.join("pausebed-lab").exists());
    assert_eq!(marked.count(), 0, "their scratch folders are removed");
}
