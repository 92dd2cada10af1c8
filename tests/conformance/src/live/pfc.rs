//! PFC live: switches and NICs that are paused and pause, each case at ports of its own.
//!
//! The neighbours of a stage obey no pause by themselves: a script sends as many frames as somebody
//! who hears would, so that it is known to the frame what a switch gets.

pub mod limits;
pub mod load;
pub mod silence;
pub mod trust;
pub mod unmoved;

use super::ethernet::{FRAME_TIME, LONG};
use super::record::Record;
use super::tester::Tester;
use crate::bench::packets::ethernet::data;
use proto::units::Instant;

/// Full frames of `priority` from the neighbour at `from` to adapter `to`, back to back, now.
fn feed(tester: &mut Tester, (from, to): (u8, u8), priority: u8, count: u64) {
    for psn in 0..count {
        tester.send_frame(from, &data(from.into(), to.into(), priority, psn as u32));
    }
}

/// The neighbour at `port` lets one frame of `priority` go.
fn release_one(tester: &mut Tester, port: u8, priority: u8) {
    tester.pfc(port, 1 << priority, 0);
    tester.pfc(port, 1 << priority, LONG);
}

/// Whether frames left `port` back to back in `[from, to)`: how many, and the longest gap between two.
fn back_to_back(record: &Record, port: u8, from: Instant, to: Instant) -> (usize, u64) {
    let times: Vec<Instant> = record.packets(port).map(|seen| seen.at).collect();
    let times: Vec<_> = times.into_iter().filter(|at| *at >= from && *at < to).collect();
    let gaps = times.windows(2).map(|pair| pair[1].since(pair[0]).as_ps());
    let longest = gaps.max().unwrap_or(0).saturating_sub(FRAME_TIME.as_ps());
    (times.len(), longest / 1_000)
}
