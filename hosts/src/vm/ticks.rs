//! The rate of this processor's time stamp counter, by which a machine without KVM keeps time.
//!
//! QEMU translates the instruction that reads the counter into the same instruction. The kernel of the machine would
//! measure the rate against an emulated timer. Where the machine gets the processor late, that is wrong by a factor,
//! the saved state keeps the error, and all time in the machine passes too fast.

#[cfg(target_arch = "x86_64")]
use emulation::clock::monotonic_ns;
#[cfg(target_arch = "x86_64")]
use std::sync::LazyLock;

/// The rate in kHz, to whole MHz, so that it is the same each time; none where there is no such counter.
#[cfg(target_arch = "x86_64")]
pub fn khz() -> Option<u64> {
    static KHZ: LazyLock<u64> = LazyLock::new(|| {
        /// Nanoseconds between two readings: an error of a microsecond is 0.002 %.
        const APART_NS: u64 = 50_000_000;
        let (ticks, ns) = reading();
        emulation::timer::wait(None, ns + APART_NS);
        let (later_ticks, later_ns) = reading();
        let per_ms = (later_ticks - ticks) * 1_000_000 / (later_ns - ns);
        (per_ms + 500) / 1_000 * 1_000
    });
    Some(*KHZ)
}

/// The rate in kHz, to whole MHz, so that it is the same each time; none where there is no such counter.
#[cfg(not(target_arch = "x86_64"))]
pub fn khz() -> Option<u64> {
    None
}

/// The counter and the time at one instant: the best of several readings, since the thread may lose the processor.
#[cfg(target_arch = "x86_64")]
fn reading() -> (u64, u64) {
    let one = |_| {
        let before = monotonic_ns();
        // SAFETY: every x86-64 processor has this counter. Test: the_rate_is_the_same_each_time.
        let ticks = unsafe { core::arch::x86_64::_rdtsc() };
        let after = monotonic_ns();
        (after - before, ticks, before + (after - before) / 2)
    };
    let best = (0..20).map(one).min_by_key(|(took, ..)| *took);
    best.map_or((0, 0), |(_, ticks, ns)| (ticks, ns))
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_the_same_each_time() {
        let first = khz();
        assert_eq!(khz(), first);
        // Processors of today.
        assert!(first.is_some_and(|khz| (500_000..10_000_000).contains(&khz)), "{first:?}");
    }
}
