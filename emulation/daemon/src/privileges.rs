//! Rights (capabilities) of this process: which are missing, and how it gives them up.
//!
//! Rights belong to threads. A daemon has opened its sockets when it sends `hello`. After that no thread of it needs
//! any right, except that the data plane sets its real-time priority once, when it starts.

mod calls;
mod files;

pub use calls::Scope;

use crate::error::{Context, DaemonError};
pub use caps::Capability;
use caps::errors::CapsError;
use caps::{CapSet, CapsHashSet};
use std::os::fd::RawFd;
use std::path::Path;

/// The names of those of `rights` that the calling thread does not have, for example `CAP_NET_RAW`.
pub fn missing(rights: &[Capability]) -> Vec<String> {
    let has = |right| caps::has_cap(None, CapSet::Effective, right).unwrap_or(false);
    rights.iter().filter(|right| !has(**right)).map(Capability::to_string).collect()
}

/// The names of the capabilities in a mask of the kernel, by number.
pub fn names(mask: u64) -> Vec<String> {
    let mut all: Vec<Capability> = caps::all().into_iter().collect();
    all.sort_by_key(Capability::index);
    let held = all.into_iter().filter(|right| mask & right.bitmask() != 0);
    held.map(|right| right.to_string()).collect()
}

/// The rights to set real-time priority and to lock memory.
pub const FOR_THE_DATA_PLANE: [Capability; 3] =
    [Capability::CAP_SYS_NICE, Capability::CAP_IPC_LOCK, Capability::CAP_SYS_RESOURCE];

/// Reduces this process's rights to those that the start of the data plane needs, and blocks every way to more: no
/// program that this process might start gets a right that it does not have, and the kernel refuses to start one
/// ([`calls`]). Only the sockets `rebound` can be bound again, which needs no right. Only files below `folders` can be
/// opened, and to be read also `read` and what the kernel shows of itself ([`files`]). Returns what this kernel cannot do, a sentence each.
///
/// Call it before other threads start: they inherit what the calling thread has.
///
/// # Errors
/// If the kernel refuses.
pub(crate) fn shrink(
    rebound: &[RawFd],
    folders: &[&Path],
    read: Option<&Path>,
    scope: Scope,
) -> Result<Vec<&'static str>, DaemonError> {
    const STEP: &str = "cannot give up rights";
    nix::sys::prctl::set_no_new_privs().context("no_new_privs").context(STEP)?;
    // Without CAP_SETPCAP the bounding set stays, which no_new_privs has made harmless.
    let _ = caps::clear(None, CapSet::Bounding);
    keep(&FOR_THE_DATA_PLANE).context("capset").context(STEP)?;
    let confines = files::confine(folders, read).context("landlock").context(STEP)?;
    let filters = calls::refuse(rebound, scope).context("seccomp").context(STEP)?;
    let lacks = [
        (confines, "this kernel has no Landlock: daemons may open every file of their user"),
        (filters, "this kernel has no seccomp filters: daemons may make every system call"),
    ];
    Ok(lacks.into_iter().filter(|(has, _)| !has).map(|(_, sentence)| sentence).collect())
}

/// Reduces the rights of the calling thread, and of all programs that it starts, to those of `kept` that it has. The rights
/// to pass by the owners of files stay too where `works` fails without them. Call it before other threads start.
///
/// # Errors
/// If the kernel refuses.
pub fn narrow(kept: &[Capability], works: impl FnOnce() -> bool) -> Result<(), DaemonError> {
    const STEP: &str = "cannot give up rights";
    const FILES: [Capability; 2] = [Capability::CAP_DAC_OVERRIDE, Capability::CAP_DAC_READ_SEARCH];
    nix::sys::prctl::set_no_new_privs().context("no_new_privs").context(STEP)?;
    let had = caps::read(None, CapSet::Permitted).context("capget").context(STEP)?;
    let tried = had.iter().copied().filter(|right| kept.contains(right)).collect();
    caps::set(None, CapSet::Effective, &tried).context("capset").context(STEP)?;
    let kept = if works() { kept.to_vec() } else { [kept, &FILES].concat() };
    caps::set(None, CapSet::Effective, &had).context("capset").context(STEP)?;
    for right in caps::all().into_iter().filter(|right| !kept.contains(right)) {
        // Without CAP_SETPCAP the bounding set stays, which no_new_privs has made harmless.
        let _ = caps::drop(None, CapSet::Bounding, right);
    }
    keep(&kept).context("capset").context(STEP)
}

/// Gives up all rights of the calling thread, which is always permitted.
pub(crate) fn drop_all() {
    keep(&[]).expect("dropping rights is always permitted");
}

/// Reduces the calling thread's rights to those of `kept` that it has.
fn keep(kept: &[Capability]) -> Result<(), CapsError> {
    let had = caps::read(None, CapSet::Permitted)?;
    let kept: CapsHashSet = kept.iter().copied().filter(|right| had.contains(right)).collect();
    caps::clear(None, CapSet::Ambient)?;
    caps::set(None, CapSet::Effective, &kept)?;
    caps::set(None, CapSet::Inheritable, &CapsHashSet::new())?;
    caps::set(None, CapSet::Permitted, &kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A field of `/proc/thread-self/status`, such as a set of capabilities or the seccomp mode.
    fn status(field: &str) -> u64 {
        let status = std::fs::read_to_string("/proc/thread-self/status").expect("a thread has one");
        let line = status.lines().find_map(|line| line.strip_prefix(field)).expect("the field");
        let line = line.trim_start_matches(':').trim();
        u64::from_str_radix(line, 16).expect("a number")
    }

    #[test]
    fn a_thread_that_gives_up_its_rights_has_none_and_others_keep_theirs() {
        let before = status("CapEff");
        let inside = std::thread::spawn(|| {
            shrink(&[], &[], None, Scope::Thread).expect("dropping rights is always permitted");
            let left = status("CapEff");
            drop_all();
            let none = ["CapEff", "CapPrm", "CapInh", "CapAmb"].map(status);
            (
                left,
                none,
                status("NoNewPrivs"),
                missing(&[Capability::CAP_NET_RAW, Capability::CAP_SYS_ADMIN]),
            )
        });
        let (left, none, no_new, missing) = inside.join().expect("no panic");
        let data_plane = FOR_THE_DATA_PLANE.iter().map(|right| right.bitmask()).sum::<u64>();
        assert_eq!(left, before & data_plane);
        assert_eq!((none, no_new), ([0; 4], 1));
        assert_eq!(missing, ["CAP_NET_RAW", "CAP_SYS_ADMIN"]);
        assert_eq!(status("CapEff"), before);
    }

    #[test]
    fn a_thread_keeps_the_rights_that_it_names_and_those_to_its_files_where_it_needs_them() {
        let before = status("CapPrm");
        for works in [true, false] {
            let narrowed = std::thread::spawn(move || {
                narrow(&[Capability::CAP_NET_RAW], || works).expect("that is always permitted");
                (["CapEff", "CapPrm"].map(status), status("CapInh"), status("NoNewPrivs"))
            });
            let mut kept = Capability::CAP_NET_RAW.bitmask();
            if !works {
                kept |= Capability::CAP_DAC_OVERRIDE.bitmask();
                kept |= Capability::CAP_DAC_READ_SEARCH.bitmask();
            }
            let expected = ([before & kept; 2], 0, 1);
            assert_eq!(narrowed.join().expect("no panic"), expected, "works: {works}");
        }
        assert_eq!(status("CapPrm"), before);
    }
}
