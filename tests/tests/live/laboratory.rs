//! Starts the built program `pausebed` in separate folders and ends it with the test.

use emulation::clock::Stopwatch;
use emulation::timer;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::rc::Rc;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tempfile::TempDir;

/// Serializes live runs, because parallel runs delay each other.
static ALONE: Mutex<()> = Mutex::new(());

/// Blocks all other tests of this program until the guard is dropped.
pub fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Blocks the thread for `seconds` without reading a clock.
pub fn pause(seconds: f64) {
    let deadline = emulation::clock::monotonic_ns() + (seconds * 1e9) as u64;
    while emulation::clock::monotonic_ns() < deadline {
        timer::wait(None, deadline);
    }
}

/// Polls `is_so` until it holds; returns false if it does not hold within `seconds`.
pub fn eventually(seconds: f64, mut is_so: impl FnMut() -> bool) -> bool {
    let stopwatch = Stopwatch::start();
    loop {
        if is_so() {
            return true;
        }
        if stopwatch.seconds() > seconds {
            return false;
        }
        pause(0.02);
    }
}

/// The program under test, built with the same profile as this test.
pub fn pausebed() -> PathBuf {
    let own = std::env::current_exe().expect("a test has a path");
    let folder = own.parent().and_then(Path::parent).expect("target/<profile>/deps/<test>");
    let program = folder.join("pausebed");
    assert!(
        program.is_file(),
        "{} is missing: build it first, with `cargo build --bins` of the same profile \
         (./test.sh does)",
        program.display()
    );
    program
}

/// The absolute path of a file in the repository.
pub fn in_repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}

/// A started run of `pausebed`, killed when dropped.
pub struct Running {
    child: Child,
    /// Folder for temporary files, used by this run only.
    temporary: TempDir,
    /// Folder for the run directory, standard output and standard error.
    folder: Rc<TempDir>,
}

/// A finished run of `pausebed`.
pub struct Ended {
    /// Exit code; `None` if a signal ended the process.
    pub code: Option<i32>,
    /// Contents of `run.json`, if the run wrote it.
    pub run: Option<Value>,
    /// Standard error.
    pub talk: String,
    /// Standard output.
    pub data: String,
    /// Files left in the folder for temporary files.
    pub leftovers: Vec<PathBuf>,
    folder: Rc<TempDir>,
}

impl Running {
    /// Starts `pausebed run FILE WORDS` through a program in front of it (`taskset -c 0`).
    pub fn start_by(front: &[&str], file: &Path, words: &[&str]) -> Running {
        let temporary = tempfile::tempdir().expect("a folder");
        let folder = tempfile::tempdir().expect("a folder");
        let program = pausebed();
        let mut line: Vec<&std::ffi::OsStr> = front.iter().map(std::ffi::OsStr::new).collect();
        line.push(program.as_os_str());
        let file_of = |name: &str| fs::File::create(folder.path().join(name)).expect("a file");
        let child = Command::new(line[0])
            .args(&line[1..])
            .arg("run")
            .arg(file)
            .args(words)
            .arg("--out")
            .arg(folder.path().join("out"))
            .env("TMPDIR", temporary.path())
            .env("XDG_CACHE_HOME", folder.path().join("cache"))
            .env("XDG_RUNTIME_DIR", folder.path())
            .stdin(Stdio::null())
            .stdout(file_of("stdout"))
            .stderr(file_of("stderr"))
            .spawn()
            .expect("the program starts");
        Running { child, temporary, folder: Rc::new(folder) }
    }

    /// Starts `pausebed run FILE WORDS`.
    pub fn start(file: &Path, words: &[&str]) -> Running {
        Running::start_by(&[], file, words)
    }

    /// Process ID of the launcher.
    pub fn launcher(&self) -> u32 {
        self.child.id()
    }

    /// The launcher's daemons, once `count` of them have a UDP socket.
    pub fn daemons(&self, count: usize) -> Vec<Daemon> {
        let mut daemons = Vec::new();
        let found = eventually(15.0, || {
            daemons = self.children();
            daemons.len() == count
                && daemons
                    .iter()
                    .all(|daemon| !super::hostile::udp_ports(daemon.process).is_empty())
        });
        assert!(found, "{count} daemons with a UDP socket each, not {daemons:?}\n{}", self.talk());
        daemons
    }

    fn children(&self) -> Vec<Daemon> {
        let tasks = format!("/proc/{}/task", self.launcher());
        let Ok(tasks) = fs::read_dir(tasks) else { return Vec::new() };
        let lists = tasks
            .flatten()
            .filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
        let numbers: Vec<u32> = lists
            .flat_map(|list| list.split_whitespace().flat_map(str::parse).collect::<Vec<_>>())
            .collect();
        let mark = self.temporary.path().display().to_string();
        let daemon = |process| Daemon { process, mark: mark.clone() };
        numbers.into_iter().map(daemon).filter(Daemon::is_alive).collect()
    }

    /// Sends a signal to the launcher only.
    pub fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.launcher() as i32), signal)
            .expect("the launcher is a child that was not waited for");
    }

    /// Standard error so far.
    pub fn talk(&self) -> String {
        fs::read_to_string(self.folder.path().join("stderr")).unwrap_or_default()
    }

    /// Where the threads of launcher and daemons are, a line each.
    fn threads(&self) -> String {
        let daemons = self.children().into_iter().map(|daemon| daemon.process);
        let processes = std::iter::once(self.launcher()).chain(daemons);
        let tasks = processes.flat_map(|process| fs::read_dir(format!("/proc/{process}/task")));
        let line = |task: PathBuf| {
            let read = |name| fs::read_to_string(task.join(name)).unwrap_or_default();
            format!("{}: {} in {}\n{}", task.display(), read("stat"), read("wchan"), read("stack"))
        };
        tasks.flatten().flatten().map(|task| line(task.path())).collect()
    }

    /// Waits for the end of the run; fails after `seconds`.
    pub fn end(mut self, seconds: f64) -> Ended {
        let mut status = None;
        let ended = eventually(seconds, || {
            status = self.child.try_wait().expect("the launcher is a child of the test");
            status.is_some()
        });
        assert!(ended, "still running after {seconds} s:\n{}{}", self.talk(), self.threads());
        let run = fs::read_to_string(self.folder.path().join("out/run.json")).ok();
        let leftovers = fs::read_dir(self.temporary.path()).expect("the temporary folder exists");
        Ended {
            code: status.and_then(|status| status.code()),
            run: run.map(|text| serde_json::from_str(&text).expect("run.json is JSON")),
            talk: self.talk(),
            data: fs::read_to_string(self.folder.path().join("stdout")).unwrap_or_default(),
            leftovers: leftovers.flatten().map(|entry| entry.path()).collect(),
            folder: self.folder.clone(),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // The process still runs only after a failed test. An error means that it has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A daemon that the launcher started.
#[derive(Debug)]
pub struct Daemon {
    /// Process ID.
    pub process: u32,
    /// A unique part of the daemon's command line.
    mark: String,
}

impl Daemon {
    /// The command line, if the process is still this daemon.
    fn command_line(&self) -> Option<String> {
        let octets = fs::read(format!("/proc/{}/cmdline", self.process)).ok()?;
        let line = String::from_utf8_lossy(&octets).replace('\0', " ");
        line.contains(&self.mark).then_some(line)
    }

    /// True if the process exists and is still this daemon.
    pub fn is_alive(&self) -> bool {
        self.command_line().is_some()
    }

    /// True for switchd.
    pub fn is_switchd(&self) -> bool {
        self.command_line().is_some_and(|line| line.contains("switchd"))
    }

    /// Kills the daemon; fails if it has ended.
    pub fn kill(&self) {
        assert!(self.is_alive(), "{self:?} ended by itself");
        kill(Pid::from_raw(self.process as i32), Signal::SIGKILL)
            .expect("the test may signal the daemon");
    }
}

impl Ended {
    /// The run directory, removed when this value is dropped.
    pub fn out(&self) -> PathBuf {
        self.folder.path().join("out")
    }

    /// Keeps the run directory; its path.
    pub fn keep(self) -> PathBuf {
        Rc::into_inner(self.folder).expect("the run has ended").keep().join("out")
    }

    /// Contents of `run.json`; fails with the program's standard error if there is none.
    pub fn json(&self) -> &Value {
        match &self.run {
            Some(run) => run,
            None => panic!("no run.json, exit code {:?}:\n{}", self.code, self.talk),
        }
    }

    /// `pass`, `fail` or `inconclusive`.
    pub fn verdict(&self) -> &str {
        self.json()["verdict"].as_str().expect("a verdict")
    }

    /// A number of `run.json`, by its JSON pointer.
    pub fn number(&self, path: &str) -> f64 {
        let value = self.json().pointer(path).and_then(Value::as_f64);
        value.unwrap_or_else(|| panic!("{path} is not a number in {:#}", self.json()))
    }

    /// Sum of the numbers of an object of `run.json`, by its JSON pointer.
    pub fn sum(&self, path: &str) -> u64 {
        let object = self.json().pointer(path).and_then(Value::as_object);
        object.unwrap_or_else(|| panic!("no {path}")).values().filter_map(Value::as_u64).sum()
    }
}

/// Repeats a run up to three times, until it is conclusive.
pub fn repeated(mut make: impl FnMut() -> Ended) -> Ended {
    let mut ended = make();
    for _ in 0..2 {
        if ended.verdict() != "inconclusive" {
            break;
        }
        eprintln!("inconclusive, repeating:\n{}", ended.data);
        ended = make();
    }
    ended
}

/// A busy loop on one core; at -20 it has the highest priority without real-time scheduling.
pub struct Busy(Child);

impl Busy {
    /// A busy loop on `core` with the nice value `nice`. It also ends if this test is killed.
    pub fn on(core: &str, nice: i32) -> Busy {
        let nice = nice.to_string();
        let mut command = Command::new("taskset");
        let lines =
            "while [ -d /proc/$0 ]; do i=0; while [ $i -lt 50000 ]; do i=$((i+1)); done; done";
        let own = std::process::id().to_string();
        command.args(["-c", core, "nice", "-n", &nice, "sh", "-c", lines, &own]);
        Busy(command.stderr(Stdio::null()).spawn().expect("taskset, of util-linux, is installed"))
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.kill().expect("the loop is still running");
        self.0.wait().expect("the process is a child of the test");
    }
}
