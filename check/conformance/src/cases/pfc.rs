//! PFC: Ethernet: priority flow control.

use crate::ethernet::FRAME_TIME;
use crate::prelude::*;

mod limits;
mod load;
mod silence;
mod trust;
mod unmoved;

/// The scripts of the group, by case.
pub const SCRIPTS: Scripts = &[
    ("PFC-01", limits::xoff_limit),
    ("PFC-02", limits::xon_limit),
    ("PFC-03", limits::headroom_pool),
    ("PFC-04", silence::paused_is_silent),
    ("PFC-05", silence::independent_priorities),
    ("PFC-06", unmoved::lossy_is_deaf),
    ("PFC-07", unmoved::pause_is_ignored),
    ("PFC-08", unmoved::empty_vector),
    ("PFC-09", silence::quanta_length),
    ("PFC-10", silence::xon_releases),
    ("PFC-11", silence::frame_in_flight),
    ("PFC-12", silence::refresh),
    ("PFC-13", silence::lost_xon),
    ("PFC-14", limits::lost_xoff),
    ("PFC-15", limits::slow_responder),
    ("PFC-16", unmoved::never_forwarded),
    ("PFC-17", unmoved::any_source),
    ("PFC-18", unmoved::malformed),
    ("PFC-19", limits::asymmetric),
    ("PFC-20", load::oversubscription),
    ("PFC-21", load::lossy_overload),
    ("PFC-22", load::throttled_to_ninety),
    ("PFC-23", load::byte_exact),
    ("PFC-24", trust::configured_source),
    ("PFC-25", crate::laws::ethernet_switch),
];

/// Whether frames left `port` back to back in `[from, to)`: how many, and the longest gap in ns.
fn back_to_back(record: &Record, port: u8, from: Instant, to: Instant) -> (usize, u64) {
    let times = record.packets(port).within((from, to)).times();
    let gaps = times.windows(2).map(|pair| pair[1].since(pair[0]).as_ps());
    let longest = gaps.max().unwrap_or(0).saturating_sub(FRAME_TIME.as_ps());
    (times.len(), longest / 1_000)
}
