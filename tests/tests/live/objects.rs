//! Kernel objects of labs, read from `/proc`: namespaces, processes and files.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The network namespace of a process, as the target of its `/proc` link.
pub fn namespace_of(process: u32) -> String {
    let link = fs::read_link(format!("/proc/{process}/ns/net"));
    link.map(|link| link.display().to_string()).unwrap_or_default()
}

/// The children of a process.
pub fn children(process: u32) -> BTreeSet<u32> {
    let tasks = fs::read_dir(format!("/proc/{process}/task"));
    let tasks = tasks.into_iter().flatten().flatten();
    let lists = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    lists
        .flat_map(|list| list.split_whitespace().flat_map(str::parse).collect::<Vec<_>>())
        .collect()
}

/// The network namespaces that a process holds through file descriptors.
pub fn namespaces_held(process: u32) -> BTreeSet<String> {
    let held = fs::read_dir(format!("/proc/{process}/fd")).into_iter().flatten().flatten();
    let held = held.filter_map(|entry| fs::read_link(entry.path()).ok());
    let held = held.map(|link| link.display().to_string());
    held.filter(|link| link.starts_with("net:[")).collect()
}

/// Processes with `mark` in their environment, except zombies.
pub fn processes_of(mark: &str) -> BTreeSet<u32> {
    let entries = fs::read_dir("/proc").expect("/proc is mounted").flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let is_marked = |process: &u32| {
        let environment = fs::read(format!("/proc/{process}/environ")).unwrap_or_default();
        environment.windows(mark.len()).any(|octets| octets == mark.as_bytes())
    };
    numbers.filter(is_marked).collect()
}

/// Every file and folder below `folder`.
pub fn files_below(folder: &Path) -> BTreeSet<PathBuf> {
    let mut files = BTreeSet::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                folders.push(entry.path());
            }
            files.insert(entry.path());
        }
    }
    files
}

/// Every path in `/proc` that refers to one of these namespaces.
pub fn references(namespaces: &BTreeSet<String>) -> Vec<String> {
    let mut found = Vec::new();
    let is_one = |link: &Path| {
        fs::read_link(link).is_ok_and(|to| namespaces.contains(&to.display().to_string()))
    };
    for process in fs::read_dir("/proc").expect("/proc is mounted").flatten() {
        let path = process.path();
        if is_one(&path.join("ns/net")) {
            found.push(path.join("ns/net").display().to_string());
        }
        let held = fs::read_dir(path.join("fd")).into_iter().flatten().flatten();
        found.extend(
            held.map(|fd| fd.path()).filter(|fd| is_one(fd)).map(|fd| fd.display().to_string()),
        );
    }
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let mounted =
        mounts.lines().filter(|line| namespaces.iter().any(|one| line.contains(one.as_str())));
    found.extend(mounted.map(str::to_owned));
    found
}
