//! Waiting: the only place where a thread sleeps, and where it sets its scheduling.
//!
//! Deadlines are absolute, so that lateness does not accumulate. Timers of tokio and timeouts of `epoll_wait`
//! have a resolution of milliseconds; `ppoll` takes nanoseconds and wakes some 20 µs late on Linux.

use crate::clock::monotonic_ns;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use serde::{Deserialize, Serialize};
use std::os::fd::BorrowedFd;

/// Above every ordinary thread, below the kernel's own real-time threads.
const FIFO_PRIORITY: i32 = 10;

/// The shortest time slice that the kernel grants, in nanoseconds.
const SLICE_NS: u64 = 100_000;

/// How the data-plane thread is scheduled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Priority {
    /// `SCHED_FIFO`: no ordinary thread can hold the CPU while a frame is due.
    Fifo,
    /// An ordinary thread with nice value -20.
    Nice,
    /// An ordinary thread, which any other may delay by a time slice.
    Normal,
}

/// Sets timer slack and scheduling of the calling thread so that it wakes as exactly as the host permits.
/// Returns the priority it got.
///
/// The kernel throttles a real-time thread that uses more than 95 % of a core for some 50 ms at a stretch, so
/// set `realtime` only for workers expected to stay below 80 %.
pub fn prepare_thread(realtime: bool) -> Priority {
    // Refused only for a value out of range. The default slack of 50 µs would show as lateness.
    let _ = nix::sys::prctl::set_timerslack(1);
    if realtime && become_fifo() {
        keep_in_memory();
        Priority::Fifo
    } else {
        let priority = if become_nice() { Priority::Nice } else { Priority::Normal };
        wake_promptly();
        priority
    }
}

/// Gives the calling thread the lowest ordinary priority, nice value 19.
pub fn stand_back() {
    const LAST: i32 = 19;
    // SAFETY: no memory is passed; on Linux `PRIO_PROCESS` with 0 is the calling thread. A lower priority is
    // always permitted. Test: a_thread_that_stands_back_has_the_lowest_priority.
    let _ = unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, LAST) };
}

/// The priority that [`prepare_thread`] would get, found out by a thread that ends at once.
pub fn permitted_priority(realtime: bool) -> Priority {
    let trial = std::thread::Builder::new().spawn(move || prepare_thread(realtime));
    // A host without room for a thread will not have one for the data plane, either, which then says so.
    trial.map_or(Priority::Normal, |trial| trial.join().unwrap_or(Priority::Normal))
}

fn become_fifo() -> bool {
    let parameters = libc::sched_param { sched_priority: FIFO_PRIORITY };
    let policy = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
    // SAFETY: `parameters` outlives the call, which only reads it; 0 is the calling thread.
    // Test: our_switch_conforms_through_the_interface_for_any_device.
    unsafe { libc::sched_setscheduler(0, policy, &parameters) == 0 }
}

fn become_nice() -> bool {
    // SAFETY: no memory is passed; on Linux `PRIO_PROCESS` with 0 is the calling thread.
    // Test: an_ordinary_thread_asks_for_short_slices_and_keeps_its_nice_value.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, -20) == 0 }
}

/// Asks for short time slices for the calling thread, and those that it starts. The kernel gives the core to the runnable thread with the earliest deadline, and a shorter
/// slice has an earlier one, so the thread preempts others when it wakes as long as it uses less than its share of the
/// core. No right is needed. Kernels before 6.12 ignore it.
pub fn wake_promptly() {
    // SAFETY: all octets zero is a value of this plain struct.
    // Test: an_ordinary_thread_asks_for_short_slices_and_keeps_its_nice_value.
    let mut wanted: libc::sched_attr = unsafe { std::mem::zeroed() };
    wanted.size = size_of::<libc::sched_attr>() as u32;
    // SAFETY: no memory is passed; 0 is the calling thread.
    // Test: an_ordinary_thread_asks_for_short_slices_and_keeps_its_nice_value.
    wanted.sched_nice = unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) };
    wanted.sched_policy = libc::SCHED_OTHER as u32;
    wanted.sched_runtime = SLICE_NS;
    // SAFETY: `wanted` outlives the call, which only reads it and gets its true size in it. If the kernel refuses, nothing
    // changes. Test: an_ordinary_thread_asks_for_short_slices_and_keeps_its_nice_value.
    let _ = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const wanted, 0) };
}

/// Locks the pages of this process, program text included, because reading one back from disk takes
/// milliseconds. Pages never touched stay absent.
///
/// The limit on locked memory is lifted first. Without the right to do that nothing is locked, since a lock
/// under a limit would make a later allocation fail.
fn keep_in_memory() {
    let limit = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: `limit` outlives the call, which only reads it.
    // Test: our_switch_conforms_through_the_interface_for_any_device.
    let is_unlimited = unsafe { libc::setrlimit(libc::RLIMIT_MEMLOCK, &raw const limit) == 0 };
    if is_unlimited {
        let flags = libc::MCL_CURRENT | libc::MCL_FUTURE | libc::MCL_ONFAULT;
        // SAFETY: no memory is passed. If the kernel refuses, nothing changes.
        // Test: our_switch_conforms_through_the_interface_for_any_device.
        let _ = unsafe { libc::mlockall(flags) };
    }
}

/// Waits until `deadline_ns` of [`monotonic_ns`] or until `socket` can be read.
///
/// Returns at once when the deadline has passed, and may return early on a signal: callers read the clock again
/// in any case.
pub fn wait(socket: Option<BorrowedFd<'_>>, deadline_ns: u64) {
    let remaining = deadline_ns.saturating_sub(monotonic_ns());
    if remaining == 0 {
        return;
    }
    let timeout = TimeSpec::from_duration(std::time::Duration::from_nanos(remaining));
    // An error is a signal, or one that the caller's loop cannot correct.
    let _ = match socket {
        None => ppoll(&mut [], Some(timeout), None),
        Some(socket) => ppoll(&mut [PollFd::new(socket, PollFlags::POLLIN)], Some(timeout), None),
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    #[test]
    fn a_deadline_is_never_missed_towards_the_past() {
        let deadline = monotonic_ns() + 3_000_000;
        wait(None, deadline);
        assert!(monotonic_ns() >= deadline);
        wait(None, deadline);
    }

    #[test]
    fn an_ordinary_thread_asks_for_short_slices_and_keeps_its_nice_value() {
        let read = || {
            // SAFETY: all octets zero is a value of this plain struct; the call writes at most its size.
            let mut got: libc::sched_attr = unsafe { std::mem::zeroed() };
            let size = size_of::<libc::sched_attr>();
            // SAFETY: as above; 0 is the calling thread.
            unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut got, size, 0) };
            got
        };
        let ordinary = move || (prepare_thread(false), read());
        let (priority, got) = std::thread::spawn(ordinary).join().expect("no panic");
        assert_eq!(got.sched_policy, libc::SCHED_OTHER as u32);
        // Kernels before 6.12 report none.
        assert!([0, SLICE_NS].contains(&got.sched_runtime), "{}", got.sched_runtime);
        assert!(priority != Priority::Nice || got.sched_nice == -20);
    }

    #[test]
    fn a_thread_that_stands_back_has_the_lowest_priority() {
        let nice = std::thread::spawn(|| {
            stand_back();
            // SAFETY: no memory is passed; 0 is the calling thread.
            unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) }
        });
        assert_eq!(nice.join().expect("no panic"), 19);
    }

    #[test]
    fn a_readable_socket_ends_the_wait() {
        let (ours, theirs) = std::os::unix::net::UnixDatagram::pair().expect("a socket pair");
        theirs.send(b"x").expect("room for one octet");
        let begin = monotonic_ns();
        wait(Some(ours.as_fd()), begin + 5_000_000_000);
        assert!(monotonic_ns() - begin < 4_000_000_000);
    }
}
