//! What a record says of Ethernet: pauses, and data by priority.

use super::Record;
use crate::bench::packets::ethernet as frames;
use crate::case::{Failure, ensure};
use crate::live::tester::Seen;
use proto::frame::Frame;
use proto::ids::Priority;
use proto::units::{Duration, Instant};
use proto::wire::ethernet::MacControl;

/// For how many quanta `frame` asks for silence on `priority`, 0 for XON; `None` if it does not speak
/// of it.
pub fn quanta_for(frame: &Frame, priority: u8) -> Option<u16> {
    match frames::control_of(frame)? {
        MacControl::Pfc(pfc) => pfc.time(Priority::truncate(priority)),
        MacControl::Pause(pause) => Some(pause.time),
        MacControl::Unknown(_) => None,
    }
}

impl Record {
    /// MAC control that left by `port`.
    pub fn control(&self, port: u8) -> impl Iterator<Item = &Seen> {
        let here = self.seen.iter().filter(move |seen| seen.port == port);
        here.filter(|seen| frames::control_of(&seen.frame).is_some())
    }

    /// What the neighbour at `port` was asked for on `priority`, and when that left: quanta, 0 for XON.
    pub fn asked(&self, port: u8, priority: u8) -> Vec<(Instant, u16)> {
        let here = self.seen.iter().filter(|seen| seen.port == port);
        here.filter_map(|seen| Some((seen.at, quanta_for(&seen.frame, priority)?))).collect()
    }

    /// Data frames of `priority`, by their DSCP, that left by `port`.
    pub fn data(&self, port: u8, priority: u8) -> impl Iterator<Item = &Seen> {
        let packets = self.packets(port);
        packets.filter(move |seen| frames::priority(&seen.frame) == Some(priority))
    }

    /// How many of them left in `[from, to)`.
    pub fn data_within(&self, port: u8, priority: u8, (from, to): (Instant, Instant)) -> usize {
        self.data(port, priority).filter(|seen| seen.at >= from && seen.at < to).count()
    }

    /// What `port` has lost, as `reason count, …` in the order of the table of reasons.
    pub fn lost(&self, port: u8) -> String {
        let drops = &self.port(port).drops;
        let all = drops.iter().filter(|(_, count)| *count > 0);
        let all: Vec<_> = all.map(|(reason, count)| format!("{} {count}", reason.name())).collect();
        if all.is_empty() { "nothing".to_owned() } else { all.join(", ") }
    }

    /// Holds if no port but those in `but` has lost anything.
    ///
    /// # Errors
    /// The first that has, and what.
    pub fn nothing_lost(&self, but: &[u8]) -> Result<(), Failure> {
        let ports = 1..=self.device().ports.len() as u8;
        for port in ports.filter(|port| !but.contains(port)) {
            let lost = self.lost(port);
            ensure(lost == "nothing", || format!("port {port} has lost {lost}"))?;
        }
        Ok(())
    }

    /// What two clocks may be apart by: twice the lateness that one handling in a hundred exceeds.
    pub fn twice_late(&self) -> Duration {
        Duration::from_ns(self.report.lateness.wall_ns.p99()) * 2
    }
}
