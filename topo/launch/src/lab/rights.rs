//! What the threads of a lab's processes may do, as the kernel shows it in `/proc`.

use super::LabRecord;
use crate::processes::role;
use daemon::privileges;
use serde::Serialize;
use std::fs;

/// The rights of one thread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ThreadRights {
    /// What the process is: "keeper", "switchd s0".
    pub process: String,
    /// Its id.
    pub pid: u32,
    /// The name of the thread.
    pub thread: String,
    /// The effective user.
    pub user: u32,
    /// The capabilities that it has or can take.
    pub capabilities: Vec<String>,
    /// A program that it starts may have more rights than it.
    pub may_gain: bool,
    /// A filter decides which system calls it may make.
    pub is_filtered: bool,
}

/// The rights of all threads of the keeper and the daemons of a lab. A process that has ended is left out.
pub fn of(record: &LabRecord) -> Vec<ThreadRights> {
    let daemons = record.running().map(|daemon| {
        let nodes = match daemon.nodes.as_slice() {
            [only] => only.clone(),
            [first, .., last] => format!("{first} to {last}"),
            [] => String::new(),
        };
        (format!("{} {nodes}", role(daemon.kind)), daemon.pid)
    });
    let keeper = ("keeper".to_owned(), record.owner.process);
    std::iter::once(keeper).chain(daemons).flat_map(|(name, pid)| threads(&name, pid)).collect()
}

fn threads(process: &str, pid: u32) -> Vec<ThreadRights> {
    let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    // A thread may end while its file is read.
    let texts =
        tasks.flatten().filter_map(|task| fs::read_to_string(task.path().join("status")).ok());
    let mut all: Vec<_> = texts.filter_map(|text| parse(process, pid, &text)).collect();
    all.sort_by(|a, b| a.thread.cmp(&b.thread));
    all
}

/// Reads the fields of proc_pid_status(5).
fn parse(process: &str, pid: u32, status: &str) -> Option<ThreadRights> {
    let field = |name: &str| {
        let mut lines = status.lines().filter_map(|line| line.split_once(':'));
        lines.find(|(key, _)| *key == name).map(|(_, value)| value.trim())
    };
    let permitted = u64::from_str_radix(field("CapPrm")?, 16).ok()?;
    Some(ThreadRights {
        process: process.to_owned(),
        pid,
        thread: field("Name")?.to_owned(),
        user: field("Uid")?.split_whitespace().nth(1)?.parse().ok()?,
        capabilities: privileges::names(permitted),
        may_gain: field("NoNewPrivs") != Some("1"),
        // Mode 2 is a filter.
        is_filtered: field("Seccomp") == Some("2"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fields_of_a_thread_are_read() {
        let status = "Name:\tdata-plane\nUid:\t1000\t7\t1000\t1000\nCapPrm:\t0000000000802000\n\
                      NoNewPrivs:\t1\nSeccomp:\t2\nSeccomp_filters:\t2\n";
        let rights = parse("switchd s0", 9, status).expect("all fields");
        assert_eq!((rights.thread.as_str(), rights.user), ("data-plane", 7));
        assert_eq!(rights.capabilities, ["CAP_NET_RAW", "CAP_SYS_NICE"]);
        assert_eq!((rights.may_gain, rights.is_filtered), (false, true));
        assert_eq!(parse("x", 9, "Name:\tx\n"), None);
    }

    #[test]
    fn this_process_shows_its_threads() {
        let own = threads("test", std::process::id());
        assert!(!own.is_empty() && own.iter().all(|thread| thread.pid == std::process::id()));
    }
}
