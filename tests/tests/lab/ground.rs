//! A place for labs with an account of what labs can leave behind: interfaces, sockets, namespaces, processes, files.
//!
//! Each ground has its own network namespace and its own folder, so that foreign objects are not counted. A process
//! belongs to the ground if its environment names that folder.

use crate::laboratory::{eventually, in_repository};
use crate::objects::{files_below, namespace_of, namespaces_held, processes_of, references};
use crate::place::{INFINIBAND, Place};
use emulation::cable::namespace::{Namespace, within};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::process::{Child, Stdio};

/// Tables of sockets in `/proc/net`, and the column with the address or, for packet sockets, the protocol.
const TABLES: [(&str, usize); 6] =
    [("tcp", 1), ("tcp6", 1), ("udp", 1), ("udp6", 1), ("unix", 7), ("packet", 3)];

/// A place for labs, in its own network namespace if the test may create one.
pub struct Ground {
    pub place: Place,
    /// The namespaces of all labs observed so far.
    pub seen: BTreeSet<String>,
}

/// The objects that a lab could leave behind.
#[derive(Debug, PartialEq, Eq)]
pub struct Objects {
    interfaces: BTreeSet<String>,
    /// Addresses of sockets in the namespace of the ground, if it has its own.
    sockets: Vec<String>,
    pub processes: BTreeSet<u32>,
    files: BTreeSet<PathBuf>,
    /// References in `/proc` to a namespace of a lab.
    pub references: Vec<String>,
}

/// The substrates on which the tests create labs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Substrate {
    Udp,
    Netns,
}

impl Substrate {
    pub const fn name(self) -> &'static str {
        match self {
            Substrate::Udp => "udp",
            Substrate::Netns => "netns",
        }
    }
}

impl Ground {
    pub fn new() -> Ground {
        let place = match Namespace::make(1) {
            Ok(mut made) => {
                let namespace = made.pop().expect("one");
                namespace
                    .interfaces
                    .switch_on("lo", "loopback of a test")
                    .expect("the object exists");
                let mut place = Place::new();
                place.namespace = Some(namespace);
                place
            }
            Err(error) => {
                skip::because!("the substrate netns requires CAP_SYS_ADMIN: {error}");
                Place::new()
            }
        };
        let ground = Ground { place, seen: BTreeSet::new() };
        ground.settle();
        ground
    }

    /// Creates the folders that outlive a lab: that of all labs, and the user's runtime folder.
    pub fn settle(&self) {
        self.place.good(&["status"]);
        let own = self.place.root().join("pausebed");
        fs::DirBuilder::new().mode(0o700).create(own).expect("a folder");
    }

    pub fn substrates(&self) -> &'static [Substrate] {
        match self.place.namespace {
            Some(_) => &[Substrate::Udp, Substrate::Netns],
            None => &[Substrate::Udp],
        }
    }

    pub fn mark(&self) -> String {
        self.place.folder.path().display().to_string()
    }

    pub fn objects(&self) -> Objects {
        let path = self.place.namespace_file();
        let read = |name: &str| {
            let file = format!("/proc/thread-self/net/{name}");
            // A kernel without IPv6 has no table of its sockets.
            within(path.as_deref(), || Ok(fs::read_to_string(file).unwrap_or_default()))
                .expect("the namespace is there")
        };
        let table = read("dev");
        let names = table.lines().filter_map(|line| line.split_once(':'));
        let sockets = TABLES.iter().flat_map(|(name, column)| {
            let rows = read(name);
            let rows = rows.lines().skip(1).map(|row| row.split_whitespace().collect::<Vec<_>>());
            // A connection that waits for late segments is not a socket of a process.
            let open = rows.filter(|row| !(name.starts_with("tcp") && row.get(3) == Some(&"06")));
            open.map(|row| format!("{name} {}", row.get(*column).unwrap_or(&"unnamed")))
                .collect::<Vec<_>>()
        });
        let is_own = path.is_some();
        let processes = processes_of(&self.mark());
        // The kernel gives numbers of namespaces again: those of other processes are other namespaces.
        let is_own_path = |path: &str| match path.strip_prefix("/proc/") {
            Some(rest) => rest.split('/').next().and_then(|pid| pid.parse().ok()).is_some_and(
                |process: u32| process == std::process::id() || processes.contains(&process),
            ),
            None => true,
        };
        Objects {
            interfaces: names.map(|(name, _)| name.trim().to_owned()).collect(),
            sockets: sockets.filter(|_| is_own).collect(),
            files: files_below(self.place.folder.path()),
            references: references(&self.seen)
                .into_iter()
                .filter(|path| is_own_path(path))
                .collect(),
            processes,
        }
    }

    /// Records the namespaces that the processes hold or are in.
    pub fn look(&mut self) {
        let own = [namespace_of(std::process::id()), self.own_namespace()];
        for process in processes_of(&self.mark()) {
            self.seen.extend(namespaces_held(process));
            self.seen.insert(namespace_of(process));
        }
        self.seen.retain(|name| !own.contains(name) && !name.is_empty());
    }

    /// The namespace in which all processes start.
    fn own_namespace(&self) -> String {
        let link = self.place.namespace_file().and_then(|file| fs::read_link(file).ok());
        link.map(|link| link.display().to_string()).unwrap_or_default()
    }

    /// Asserts that the objects equal `before`.
    pub fn assert_is(&self, before: &Objects, after: &str) {
        let mut now = self.objects();
        let same = eventually(20.0, || {
            now = self.objects();
            now == *before
        });
        assert!(same, "after {after}: {now:#?}\nbefore: {before:#?}");
    }

    pub fn begin(&self, words: &[&str]) -> Child {
        let mut command = self.place.command(words);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().expect("the program starts")
    }

    pub fn begin_up(&self, substrate: Substrate) -> Child {
        let file = in_repository(INFINIBAND).display().to_string();
        self.begin(&["up", &file, "--name", "one", "--tcp", "--backend", substrate.name()])
    }

    pub fn begin_run(&self, substrate: Substrate) -> Child {
        let file = in_repository(INFINIBAND).display().to_string();
        self.begin(&["run", &file, "--no-report", "--backend", substrate.name()])
    }

    pub fn supervisor(&self) -> Option<u32> {
        let is_supervisor = |process: &u32| {
            let line = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
            line.split(|octet| *octet == 0).nth(1) == Some(b"keep")
        };
        processes_of(&self.mark()).into_iter().find(is_supervisor)
    }

    pub fn daemons(&self) -> Vec<u32> {
        let is_daemon = |process: &u32| {
            let line = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
            line.split(|octet| *octet == 0).any(|word| word == b"--config")
        };
        processes_of(&self.mark()).into_iter().filter(is_daemon).collect()
    }

    /// Runs the commands that a user runs after a failure.
    pub fn tidy(&self) {
        self.place.good(&["down", "one"]);
        // A run removes what an earlier, killed run left. This run needs no daemon.
        let file = in_repository(INFINIBAND).display().to_string();
        self.place.good(&["run", &file, "--backend", "virtual", "--no-report"]);
    }
}

pub fn signal(process: u32, signal: Signal) {
    // An error means that it has just ended.
    let _ = kill(Pid::from_raw(process as i32), signal);
}

/// Ends a child process with a signal.
pub fn end(child: &mut Child, by: Signal) {
    signal(child.id(), by);
    child.wait().expect("the process is a child of the test");
}

/// A small file system that holds all files of a lab.
pub struct SmallDisk(pub PathBuf);

impl SmallDisk {
    /// Size of the file system, in octets.
    pub const SIZE: usize = 1 << 20;

    pub fn mount(at: PathBuf) -> Option<SmallDisk> {
        use std::process::Command;
        fs::create_dir(&at).expect("a folder");
        let size = format!("size={}", SmallDisk::SIZE);
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(&at);
        let output = mount.output().expect("mount, of util-linux, is installed");
        if !output.status.success() {
            skip::because!("the test cannot mount a file system: {output:?}");
            return None;
        }
        Some(SmallDisk(at))
    }

    /// Leaves `room` octets free until the returned file is removed.
    pub fn fill(&self, room: usize) -> PathBuf {
        let file = self.0.join("filler");
        fs::write(&file, vec![1; SmallDisk::SIZE - room]).expect("the file fits the file system");
        file
    }

    /// Fills what is free but for `room` octets until the returned file is removed.
    pub fn fill_up_to(&self, room: usize) -> PathBuf {
        let file = self.0.join("filler");
        let mut filler = fs::File::create(&file).expect("a file");
        // The last block does not fit.
        while filler.write_all(&[1; 4096]).is_ok() {}
        let size = filler.metadata().expect("it is open").len();
        filler.set_len(size.saturating_sub(room as u64)).expect("a file can be cut");
        file
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Only a failed test leaves processes on the file system.
        let _ = std::process::Command::new("umount").arg(&self.0).status();
    }
}
