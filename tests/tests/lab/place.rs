//! A separate folder, and optionally a namespace, for the labs of a test.

use crate::laboratory::{eventually, in_repository, pausebed};
use emulation::cable::namespace::Namespace;
use serde_json::Value;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

/// A place for labs. Its labs end when it is dropped.
pub struct Place {
    pub folder: TempDir,
    /// The folder in use, if it is not the temporary folder itself.
    pub root: Option<PathBuf>,
    /// The network namespace for all commands, if it is not that of the test.
    pub namespace: Option<Namespace>,
    /// A copy of the program that an ordinary user executes, if the test is run by root.
    pub ordinary: Option<PathBuf>,
    /// The folder of cached images, if it is not that of this user.
    pub cache: Option<PathBuf>,
}

/// User id 65534, an ordinary user without rights.
pub const ORDINARY: u32 = 65_534;

/// The two fabrics of these tests.
pub const INFINIBAND: &str = "tests/tests/live/scenario.toml";
pub const ETHERNET: &str = "tests/tests/live/ethernet.toml";

impl Place {
    pub fn new() -> Place {
        let folder = tempfile::Builder::new().prefix("pb").tempdir().expect("a folder");
        Place { folder, root: None, namespace: None, ordinary: None, cache: None }
    }

    /// A command whose environment shows it only the labs of this place.
    pub fn program(&self, program: impl AsRef<OsStr>, words: &[&str]) -> Command {
        let mut command = match self.namespace_file() {
            None => Command::new(program),
            Some(file) => {
                let mut command = Command::new("nsenter");
                command.arg(format!("--net={}", file.display())).arg(program);
                command
            }
        };
        command.args(words).env("PAUSEBED_LABS", self.labs()).stdin(Stdio::null());
        command.env("XDG_RUNTIME_DIR", self.root()).env("TMPDIR", self.root());
        if let Some(cache) = &self.cache {
            command.env("XDG_CACHE_HOME", cache);
        }
        if self.ordinary.is_some() {
            command.uid(ORDINARY).gid(ORDINARY);
            command.env("HOME", self.root()).env("XDG_CACHE_HOME", self.root().join("cache"));
        }
        command
    }

    pub fn command(&self, words: &[&str]) -> Command {
        self.program(self.ordinary.clone().unwrap_or_else(pausebed), words)
    }

    pub fn root(&self) -> &Path {
        self.root.as_deref().unwrap_or(self.folder.path())
    }

    /// The file by which a process enters the namespace.
    pub fn namespace_file(&self) -> Option<PathBuf> {
        let namespace = self.namespace.as_ref()?;
        let (process, number) = (std::process::id(), namespace.descriptor());
        Some(PathBuf::from(format!("/proc/{process}/fd/{number}")))
    }

    pub fn labs(&self) -> PathBuf {
        self.root().join("labs")
    }

    pub fn run(&self, words: &[&str]) -> Output {
        self.command(words).output().expect("the program starts")
    }

    /// Standard output of the program, which must exit with 0.
    pub fn good(&self, words: &[&str]) -> String {
        let output = self.run(words);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{words:?}: {said}");
        String::from_utf8(output.stdout).expect("text")
    }

    pub fn json(&self, words: &[&str]) -> Value {
        serde_json::from_str(&self.good(words)).expect("JSON")
    }

    /// Ends a lab. Every frame must be accounted for.
    pub fn down(&self, name: &str) {
        let said = self.good(&["down", name]);
        assert!(said.starts_with(&format!("lab {name} is down\n  frames  ")), "{said}");
        assert!(!said.contains("UNACCOUNTED"), "{said}");
    }

    pub fn up(&self, file: &str, name: &str) {
        self.up_with(file, name, &[]);
    }

    pub fn up_with(&self, file: &str, name: &str, words: &[&str]) {
        let file = in_repository(file).display().to_string();
        self.good(&[&["up", &file, "--name", name, "--backend", "udp"], words].concat());
    }

    /// The processes of a lab: its supervisor and its daemons.
    pub fn processes(&self, name: &str) -> Vec<u32> {
        let text = fs::read_to_string(self.labs().join(name).join("lab.json")).expect("a journal");
        let journal: Value = serde_json::from_str(&text).expect("JSON");
        let number = |value: &Value| value.as_u64().map(|pid| pid as u32);
        let daemons = journal["daemons"].as_array().expect("a list");
        let daemons = daemons.iter().filter_map(|daemon| number(&daemon["pid"]));
        daemons.chain(number(&journal["owner"]["process"])).collect()
    }

    /// Processes of this place, with any parent, and its files.
    pub fn census(&self) -> (BTreeSet<u32>, Vec<PathBuf>) {
        let mark = self.folder.path().display().to_string();
        let processes = fs::read_dir("/proc").expect("/proc is mounted").flatten();
        let processes = processes.filter_map(|entry| {
            let pid = entry.file_name().to_str()?.parse().ok()?;
            let line = fs::read(entry.path().join("cmdline")).ok()?;
            String::from_utf8_lossy(&line).contains(&mark).then_some(pid)
        });
        let files = fs::read_dir(self.labs()).into_iter().flatten().flatten();
        (processes.collect(), files.map(|entry| entry.path()).collect())
    }

    /// Asserts that no process and no file of a lab is left.
    pub fn assert_empty(&self) {
        let mut left = self.census();
        let gone = eventually(20.0, || {
            left = self.census();
            left.0.is_empty() && left.1.is_empty()
        });
        assert!(gone, "{left:?}");
    }

    pub fn total(&self, lab: &str, of: &str) -> u64 {
        let shown = self.json(&["show", "links", "--json", "--lab", lab]);
        let nodes = shown["nodes"].as_array().expect("nodes").iter();
        let ports = nodes.flat_map(|node| node["ports"].as_array().expect("ports"));
        let lanes = ports.flat_map(|port| port["lanes"].as_array().expect("lanes"));
        lanes.filter_map(|lane| lane[of].as_u64()).sum()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // Only a failed test leaves anything behind.
        let _ = self.command(&["down", "--all"]).output();
    }
}
