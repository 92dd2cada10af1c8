//! The rule of silence: whoever is paused begins no frame until the pause is over.
//!
//! ```text
//!   a port hears   XOFF, n quanta                                  XON, or n quanta are over
//!   and may begin  | any frame, for the reaction time | none       | any frame
//! ```
//!
//! What a port hears governs what it sends, so both directions of it are needed. A frame under way
//! finishes; MAC control goes at any time. A file does not say in which words a link is paused, nor
//! what gives a frame its priority: without `--pause` nothing is judged. Frames are taken to be stamped
//! when their last bit passes, as ours are.
//!
//! Necessary conditions only: silence lasts from the latest instant at which it may begin to the earliest
//! at which it may end. A live device that its host has kept from running is late by that; who wants
//! to judge its capture gives a `--response` that covers it, as headroom does.

use super::frame::{Carried, EthernetFrame};
use super::{Family, Findings, Pausing, Rule, Seen, Settings, Tally};
use proto::events::Direction;
use proto::frame::ethernet_size;
use proto::link::pause::quanta;
use proto::units::{BitRate, Bytes, Duration};
use proto::wire::classify::{PriorityMap, classify_ethernet};
use proto::wire::ethernet::{Envelope, MacAddress, MacControl, Pfc};
use std::collections::BTreeMap;

/// The rules of this file.
pub const RULES: &[Rule] = &[SILENCE];

const SILENCE: Rule = Rule {
    id: "paused",
    title: "no frame of a paused priority begins before its pause is over (asks for --pause)",
    source: "IEEE 802.3, 31B.3 and 31D.3; IEEE 802.1Q, 36.1.3.2",
};

/// Up to this rate a frame may begin for so many quanta after a pause came. Source: IEEE 802.3, 31B.3.7.
const REACTION: [(BitRate, u16); 5] = [
    (mbps(100), 1),
    (BitRate::gbps(1), 2),
    (BitRate::gbps(10), 60),
    (BitRate::gbps(40), 118),
    (BitRate::gbps(100), 394),
];

const fn mbps(n: u64) -> BitRate {
    BitRate::new(n * 1_000_000).expect("it is not zero")
}

/// Preamble and gap, which a line may or may not have.
const OVERHEAD: Bytes = Bytes::new(20);
/// The file's clock ticks in nanoseconds.
const TICK_NS: u64 = 1;
/// Longer frames than this are not judged.
const LENGTH_MAX: usize = 1 << 17;

/// How long after a pause a frame may still begin on a line of `rate`. Above 100 Gb/s it is the time
/// that 100 Gb/s has, which is more than the standard gives there.
pub fn reaction(rate: BitRate) -> Duration {
    let row = REACTION.iter().find(|(fastest, _)| rate <= *fastest);
    match row {
        Some((_, time)) => quanta(*time, rate),
        None => quanta(394, BitRate::gbps(100)),
    }
}

/// Nanoseconds of the file in which no frame begins.
#[derive(Clone, Copy, Debug)]
struct Silence {
    from: u64,
    until: u64,
}

/// The family.
pub struct Silences {
    pausing: Option<Pausing>,
    rate: Option<BitRate>,
    /// By port and priority.
    silences: BTreeMap<u32, [Option<Silence>; Pfc::PRIORITIES]>,
}

impl Silences {
    /// Judges by how links are paused, if that is known.
    pub fn new(settings: &Settings) -> Silences {
        let Settings { pause, rate, .. } = *settings;
        Silences { pausing: pause, rate, silences: BTreeMap::new() }
    }
}

impl Family for Silences {
    fn look(&mut self, seen: &Seen<'_>, findings: &mut Findings, tally: &mut Tally) {
        let Some(frame) = seen.ethernet.as_ref().filter(|_| seen.is_sound_on_link()) else {
            return;
        };
        let is_control = frame.carried == Carried::MacControl;
        let mut passed_over = |why| {
            if is_control {
                tally.not_checked(why, 1)
            }
        };
        let Some(pausing) = self.pausing else {
            return passed_over("obedience to pauses (needs --pause)");
        };
        let Some(direction) = seen.place.direction else {
            return passed_over("pauses without a direction");
        };
        let Some(rate) = seen.rate.or(self.rate) else {
            return passed_over("pauses at ports of unknown rate (needs --rate)");
        };
        match (direction, is_control) {
            (Direction::Rx, true) => {
                tally.checked("pauses heard", 1);
                self.hear(seen, frame, &pausing, rate);
            }
            (Direction::Tx, false) => self.judge(seen, frame, &pausing, rate, findings, tally),
            _ => {}
        }
    }
}

impl Silences {
    /// A MAC control frame came in.
    fn hear(
        &mut self,
        seen: &Seen<'_>,
        frame: &EthernetFrame<'_>,
        pausing: &Pausing,
        rate: BitRate,
    ) {
        let port = seen.place.port;
        let is_for_all = |envelope: Envelope| {
            envelope.tag.is_none() && envelope.header.destination == MacAddress::MAC_CONTROL
        };
        if !Envelope::parse(frame.octets).is_ok_and(is_for_all) {
            // Whether it is obeyed depends on whom it is for: nothing is known of the port any more.
            self.silences.remove(&port);
            return;
        }
        let times: [Option<u16>; Pfc::PRIORITIES] = match MacControl::parse(frame.octets) {
            Ok(MacControl::Pause(pause)) if pausing.priorities.is_none() => {
                [Some(pause.time); Pfc::PRIORITIES]
            }
            Ok(MacControl::Pfc(pfc)) if pausing.priorities.is_some() => {
                let speaks = pfc.enabled & pausing.obeyed;
                std::array::from_fn(|n| (speaks >> n & 1 == 1).then_some(pfc.times[n]))
            }
            _ => return,
        };
        let reaction = ns(pausing.response.unwrap_or_else(|| reaction(rate)));
        let silences = self.silences.entry(port).or_default();
        for (silence, time) in silences.iter_mut().zip(times) {
            let Some(time) = time else { continue };
            // One that carries another on leaves no gap between the two.
            let before = silence.filter(|before| before.until > seen.at_ns);
            let latest = seen.at_ns.saturating_add(reaction + TICK_NS);
            let from = before.map_or(latest, |before| before.from);
            let until = seen.at_ns.saturating_add(quanta(time, rate).as_ps() / 1_000);
            *silence = (time > 0).then_some(Silence { from, until });
        }
    }

    /// Any other frame went out.
    fn judge(
        &self,
        seen: &Seen<'_>,
        frame: &EthernetFrame<'_>,
        pausing: &Pausing,
        rate: BitRate,
        findings: &mut Findings,
        tally: &mut Tally,
    ) {
        let Some(silences) = self.silences.get(&seen.place.port) else { return };
        let priority = match &pausing.priorities {
            None => 0,
            Some(map) => match priority(seen, frame, map) {
                Some(priority) => priority,
                None => return tally.not_checked("frames whose priority is not known", 1),
            },
        };
        tally.checked("frames against pauses", 1);
        let Some(silence) = silences[priority] else { return };
        let octets = if seen.is_cut() { seen.wire_size } else { frame.octets.len() };
        let size = ethernet_size(octets);
        let begun = |size: Bytes| seen.at_ns.saturating_sub(ns(size.time_at(rate)));
        let (earliest, latest) = (begun(size + OVERHEAD), begun(size) + TICK_NS);
        if earliest > silence.from && latest < silence.until {
            let into = Duration::from_ns(earliest - silence.from);
            let left = Duration::from_ns(silence.until - latest);
            let found = || format!("priority {priority}: begins {into} into a silence");
            findings.report(&SILENCE, seen, found, || format!("none for another {left}"));
        }
    }
}

/// Whole nanoseconds, rounded up.
fn ns(time: Duration) -> u64 {
    time.as_ps().div_ceil(1_000)
}

/// The priority of a frame, as far as what is there of it tells.
fn priority(seen: &Seen<'_>, frame: &EthernetFrame<'_>, map: &PriorityMap) -> Option<usize> {
    const HEADERS: usize = 14 + 4 + 20;
    let headers = if !seen.is_cut() {
        classify_ethernet(frame.octets, map)
    } else if seen.octets.len() >= HEADERS && seen.wire_size <= LENGTH_MAX {
        let mut whole = seen.octets.to_vec();
        whole.resize(seen.wire_size, 0);
        classify_ethernet(&whole, map)
    } else {
        return None;
    };
    headers.ok().map(|headers| usize::from(headers.lane) % Pfc::PRIORITIES)
}

#[cfg(test)]
mod tests;
