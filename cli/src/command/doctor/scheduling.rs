//! The timing of workers: kernel, cores, priority, wake-ups.

use super::Check;
use emulation::clock::monotonic_ns;
use emulation::timer::{Priority, permitted_priority, prepare_thread, wait};

/// The first kernel that reports the drops of a socket (SO_MEMINFO): major and minor version.
const KERNEL_LEAST: (u32, u32) = (4, 12);

/// The number of measured waits, and the length of each.
const WAITS: usize = 200;
const WAIT_NS: u64 = 1_000_000;

/// The largest good p99: a tenth of the shortest frame time with real-time priority, 1 ms.
const LATE_FINE_NS: u64 = 100_000;
/// A departure may be a tenth of a frame time late (`emulation/src/fidelity/verdict.rs`).
const LATE_SHARE: u64 = 10;

pub fn kernel() -> Check {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let release = release.trim();
    let Some(version) = version(release) else {
        return Check::bad(format!("unknown: {release:?}"), "pausebed needs Linux with /proc");
    };
    let next = "before 4.12 sockets do not report their drops; losses show only as gaps";
    Check::wanted(version >= KERNEL_LEAST, format!("Linux {release}"), next)
}

/// Major and minor number of a kernel release.
fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

pub fn cores() -> Check {
    match std::thread::available_parallelism() {
        Ok(cores) if cores.get() >= 2 => {
            Check::good(format!("{cores} for this process, one worker each"))
        }
        Ok(cores) => Check::optional(
            format!("{cores} for this process"),
            "NICs and switches share one core: expect twice the dilation, or allow more (taskset, cpuset)",
        ),
        Err(error) => Check::optional(format!("unknown: {error}"), "two are assumed"),
    }
}

pub fn priority() -> Check {
    let next = "frame times below 2 ms need it: `ulimit -r 10` with \
                `@GROUP - rtprio 10` in /etc/security/limits.conf, or run as root, \
                or `setcap cap_sys_nice+ep` on pausebed, nicd and switchd";
    match permitted_priority(true) {
        Priority::Fifo => Check::good("SCHED_FIFO is granted"),
        Priority::Nice => Check::optional("not granted; the best nice value is", next),
        Priority::Normal => Check::optional("not granted", next),
    }
}

pub fn wake_ups() -> Check {
    // A separate thread, because the priority belongs to the thread.
    let late_ns = match std::thread::spawn(measure).join() {
        Ok(late_ns) => late_ns,
        Err(_) => return Check::bad("the measuring thread panicked", "report this as a bug"),
    };
    let (p50, p99) = (late_ns[WAITS / 2], late_ns[WAITS * 99 / 100]);
    let found = format!("late by {:.0} µs p50, {:.0} µs p99", p50 as f64 / 1e3, p99 as f64 / 1e3);
    let next = format!(
        "frame times below {:.1} ms would be inconclusive now: \
         stop other programs on this host, or dilate more",
        (p99 * LATE_SHARE) as f64 / 1e6
    );
    Check::wanted(p99 <= LATE_FINE_NS, found, &next)
}

/// The lateness of each wait in nanoseconds, in ascending order.
fn measure() -> Vec<u64> {
    prepare_thread(true);
    let begin = monotonic_ns();
    let mut late_ns: Vec<u64> = (1..=WAITS as u64)
        .map(|number| {
            let deadline = begin + number * WAIT_NS;
            while monotonic_ns() < deadline {
                wait(None, deadline);
            }
            monotonic_ns() - deadline
        })
        .collect();
    late_ns.sort_unstable();
    late_ns
}

#[cfg(test)]
mod tests {
    use super::version;

    #[test]
    fn kernel_releases_are_parsed() {
        assert_eq!(version("6.1.0-27-amd64"), Some((6, 1)));
        assert_eq!(version("5.15.167.4-microsoft-standard-WSL2"), Some((5, 15)));
        assert_eq!(version("6.18-rc1"), Some((6, 18)));
        assert_eq!(version(""), None);
    }
}
