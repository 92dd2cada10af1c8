//! The limit on open files: a fabric in network namespaces needs several for each node.

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// Enough for some ten thousand nodes. Some programs walk through all descriptors up to their limit before they start
/// another, so it is no higher.
const ENOUGH: u64 = 65_536;

/// Raises this process's limit as far as the host permits. Processes that it starts inherit the limit.
pub fn raise_limit() {
    let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE) else { return };
    let wanted = hard.min(ENOUGH);
    if soft < wanted {
        // Without it a large fabric fails with the system's error, "too many open files".
        let _ = setrlimit(Resource::RLIMIT_NOFILE, wanted, hard);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_what_the_host_permits() {
        raise_limit();
        let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).expect("every system has it");
        assert!(soft >= hard.min(ENOUGH), "{soft} of {hard}");
    }
}
