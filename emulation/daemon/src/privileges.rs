//! Rights of this process: which are missing, and how they are given up.
//!
//! Rights belong to threads. A daemon has its sockets when it says hello; from then on no thread of it
//! needs any, but the data plane asks for real-time priority once, when it starts.

mod calls;

use caps::{CapSet, Capability, CapsHashSet};

/// A right that something here may need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Right {
    /// To make network namespaces and enter them.
    SysAdmin,
    /// To make interfaces and set them up.
    NetAdmin,
    /// To open packet sockets.
    NetRaw,
}

impl Right {
    const fn capability(self) -> Capability {
        match self {
            Right::SysAdmin => Capability::CAP_SYS_ADMIN,
            Right::NetAdmin => Capability::CAP_NET_ADMIN,
            Right::NetRaw => Capability::CAP_NET_RAW,
        }
    }
}

/// Those of `rights` that this thread does not have, by name.
pub fn missing(rights: &[Right]) -> Vec<String> {
    let has =
        |right: &Right| caps::has_cap(None, CapSet::Effective, right.capability()).unwrap_or(false);
    rights.iter().filter(|right| !has(right)).map(|right| right.capability().to_string()).collect()
}

/// What a thread needs that has still to ask for real-time priority and to lock its memory.
const FOR_THE_DATA_PLANE: [Capability; 3] =
    [Capability::CAP_SYS_NICE, Capability::CAP_IPC_LOCK, Capability::CAP_SYS_RESOURCE];

/// Gives up everything but what the start of the data plane needs, and the way to more: no program
/// that this process might start gets a right that it has not, and the kernel refuses to start one
/// ([`calls`]).
///
/// # Errors
/// In words, if the kernel refuses.
pub fn shrink() -> Result<(), String> {
    nix::sys::prctl::set_no_new_privs().map_err(|error| format!("no_new_privs: {error}"))?;
    // Without CAP_SETPCAP the bounding set stays, which no_new_privs has made harmless.
    let _ = caps::clear(None, CapSet::Bounding);
    keep(&FOR_THE_DATA_PLANE)?;
    calls::refuse()
}

/// Gives up everything.
///
/// # Errors
/// In words, if the kernel refuses.
pub fn drop_all() -> Result<(), String> {
    keep(&[])
}

/// Reduces this thread's rights to those of `kept` that it has.
fn keep(kept: &[Capability]) -> Result<(), String> {
    let say = |error: caps::errors::CapsError| error.to_string();
    let had = caps::read(None, CapSet::Permitted).map_err(say)?;
    let kept: CapsHashSet = kept.iter().copied().filter(|right| had.contains(right)).collect();
    caps::clear(None, CapSet::Ambient).map_err(say)?;
    caps::set(None, CapSet::Effective, &kept).map_err(say)?;
    caps::set(None, CapSet::Inheritable, &CapsHashSet::new()).map_err(say)?;
    caps::set(None, CapSet::Permitted, &kept).map_err(say)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The fields of `/proc/thread-self/status` that tell of rights.
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
            shrink().expect("less is always permitted");
            let left = status("CapEff");
            drop_all().expect("less is always permitted");
            let none = ["CapEff", "CapPrm", "CapInh", "CapAmb"].map(status);
            (left, none, status("NoNewPrivs"), missing(&[Right::NetRaw, Right::SysAdmin]))
        });
        let (left, none, no_new, missing) = inside.join().expect("no panic");
        let data_plane = FOR_THE_DATA_PLANE.iter().map(|right| right.bitmask()).sum::<u64>();
        assert_eq!(left, before & data_plane);
        assert_eq!((none, no_new), ([0; 4], 1));
        assert_eq!(missing, ["CAP_NET_RAW", "CAP_SYS_ADMIN"]);
        assert_eq!(status("CapEff"), before);
    }
}
