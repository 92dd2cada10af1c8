//! The daemons of a lab run without privileges.

use super::laboratory::{eventually, in_repository};
use super::{INFINIBAND, Place};
use daemon::privileges::{self, Capability};
use emulation::cable::namespace::Namespace;
use std::collections::BTreeMap;
use std::fs;

/// What daemons need that take the place of others.
const KEEPER: [Capability; 6] = [
    Capability::CAP_SYS_ADMIN,
    Capability::CAP_NET_ADMIN,
    Capability::CAP_NET_RAW,
    Capability::CAP_SYS_NICE,
    Capability::CAP_IPC_LOCK,
    Capability::CAP_SYS_RESOURCE,
];

/// The fields of `/proc/PID/task/TID/status` of each thread of a process.
fn threads(process: u32) -> Vec<BTreeMap<String, String>> {
    let tasks =
        fs::read_dir(format!("/proc/{process}/task")).expect("the process is running").flatten();
    let texts = tasks.filter_map(|task| fs::read_to_string(task.path().join("status")).ok());
    let fields = |text: String| {
        let lines = text.lines().filter_map(|line| line.split_once(':'));
        lines.map(|(name, value)| (name.to_owned(), value.trim().to_owned())).collect()
    };
    texts.map(fields).collect()
}

/// The first privilege that a thread still has; `None` if it has none.
fn objection(thread: &BTreeMap<String, String>) -> Option<String> {
    let number = |name: &str| u64::from_str_radix(thread.get(name)?, 16).ok();
    let sets = ["CapInh", "CapPrm", "CapEff", "CapAmb"];
    let held = sets.iter().find(|set| number(set) != Some(0));
    let held = held.map(|set| format!("{set} {:?}", thread.get(*set)));
    let can_rise = (thread.get("NoNewPrivs")? != "1").then(|| "no_new_privs is not set".to_owned());
    // A kernel without seccomp filters has no such field.
    let is_free = thread.get("Seccomp").is_some_and(|mode| mode != "2");
    let is_free = is_free.then(|| "no filter of system calls".to_owned());
    let name = thread.get("Name").cloned().unwrap_or_default();
    held.or(can_rise).or(is_free).map(|why| format!("{name}: {why}"))
}

#[test]
fn daemon_threads_drop_all_privileges_after_opening_sockets() {
    let place = Place::new();
    let mut substrates = vec!["udp"];
    match Namespace::make(1) {
        Ok(_) => substrates.push("netns"),
        Err(error) => skip::because!("the substrate netns requires CAP_SYS_ADMIN: {error}"),
    }
    let file = in_repository(INFINIBAND).display().to_string();
    for substrate in substrates {
        place.good(&["up", &file, "--name", "one", "--tcp", "--backend", substrate]);
        let mut processes = place.processes("one");
        // The last process is the supervisor, which creates namespaces and starts daemons again.
        let keeper = processes.pop().expect("the lab has a supervisor");
        for thread in threads(keeper) {
            let held = u64::from_str_radix(&thread["CapPrm"], 16).expect("a number");
            let beyond =
                privileges::names(held & !KEEPER.iter().fold(0, |all, one| all | one.bitmask()));
            assert_eq!((beyond, thread["NoNewPrivs"].as_str()), (vec![], "1"), "{substrate}");
        }
        assert_eq!(processes.len(), 2);
        for process in processes {
            let threads = || threads(process);
            let names: Vec<_> = threads().iter().map(|thread| thread["Name"].clone()).collect();
            for part in ["data-plane", "admin"] {
                assert!(names.iter().any(|name| name == part), "{names:?}");
            }
            // The data plane drops its last privileges when it starts.
            let objections = || threads().iter().filter_map(objection).collect::<Vec<_>>();
            assert!(eventually(5.0, || objections().is_empty()), "{substrate}: {:?}", objections());
        }
        place.good(&["down"]);
    }
    place.assert_empty();
}
