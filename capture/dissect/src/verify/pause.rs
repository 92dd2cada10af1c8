//! The rule of pauses: a paused port begins no frame until the pause is over.
//!
//! ```text
//!   a port receives  XOFF, n quanta                                  XON, or n quanta are over
//!   and may begin    | any frame, for the reaction time | none       | any frame
//! ```
//!
//! What a port receives governs what it sends, so both directions of it are needed. A frame under way is finished; MAC
//! control is sent at any time. A file states neither how a link is paused nor what gives a frame its priority:
//! without `--pause` nothing is judged. The time stamp of a frame is taken as the instant at which its last bit passes,
//! as in captures of this project.
//!
//! The rule is a necessary condition only: a pause lasts from the latest instant at which it may begin to the earliest
//! at which it may end. A live device that its host did not schedule in time is late by that much; `--response` can
//! cover it, as headroom does.

use super::frame::{Carried, EthernetFrame, with_zeros};
use super::rule::rules;
use super::{Check, Family, Pausing, Seen, Settings};
use proto::events::Direction;
use proto::frame::ethernet_size;
use proto::link::pause::quanta;
use proto::units::{BitRate, Bytes, Duration};
use proto::wire::classify::{PriorityMap, classify_ethernet};
use proto::wire::ethernet::{Envelope, MacAddress, MacControl, Pfc};
use std::borrow::Cow;
use std::collections::BTreeMap;

rules! {
    PAUSED "paused" "no frame of a paused priority begins before its pause is over (asks for --pause)",
        "IEEE 802.3, 31B.3 and 31D.3; IEEE 802.1Q, 36.1.3.2";
}

/// Up to each rate, the quanta after the arrival of a pause for which a frame may begin. Source: IEEE 802.3, 31B.3.7.
const REACTION: [(BitRate, u16); 5] = [
    (BitRate::mbps(100), 1),
    (BitRate::gbps(1), 2),
    (BitRate::gbps(10), 60),
    (BitRate::gbps(40), 118),
    (BitRate::gbps(100), 394),
];

/// Preamble and gap, which the captured line may or may not have.
const OVERHEAD: Bytes = Bytes::new(20);
/// The file counts whole nanoseconds.
const TICK_NS: u64 = 1;

/// The time after the arrival of a pause in which a frame may still begin on a line of `rate`. Above 100 Gb/s it is the
/// time of 100 Gb/s, which is longer than the limit of the standard there.
fn reaction(rate: BitRate) -> Duration {
    let row = REACTION.iter().find(|(fastest, _)| rate <= *fastest);
    match row {
        Some((_, time)) => quanta(*time, rate),
        None => quanta(394, BitRate::gbps(100)),
    }
}

/// A span of the file in which no frame begins, nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Pause {
    from: u64,
    until: u64,
}

/// The family.
pub struct Pauses {
    pausing: Option<Pausing>,
    rate: Option<BitRate>,
    /// By port and priority.
    pauses: BTreeMap<u32, [Option<Pause>; Pfc::PRIORITIES]>,
}

impl Pauses {
    /// Judges by how links are paused, if that is known.
    pub fn new(settings: &Settings) -> Pauses {
        let Settings { pause, rate, .. } = *settings;
        Pauses { pausing: pause, rate, pauses: BTreeMap::new() }
    }
}

impl Family for Pauses {
    fn check(&mut self, check: &mut Check<'_>) {
        let seen = check.seen;
        let Some(frame) = seen.ethernet.as_ref().filter(|_| seen.is_sound_on_link()) else {
            return;
        };
        let is_control = frame.carried == Carried::MacControl;
        let known = match (self.pausing, seen.place.direction, seen.rate.or(self.rate)) {
            (None, ..) => Err("obedience to pauses (needs --pause)"),
            (_, None, _) => Err("pauses without a direction"),
            (.., None) => Err("pauses at ports of unknown rate (needs --rate)"),
            (Some(pausing), Some(direction), Some(rate)) => Ok((pausing, direction, rate)),
        };
        match (known, is_control) {
            (Err(why), true) => check.not_checked(why),
            (Ok((pausing, Direction::Rx, rate)), true) => {
                check.checked("pauses heard");
                self.on_control(seen, frame, &pausing, rate);
            }
            (Ok((pausing, Direction::Tx, rate)), false) => {
                self.on_sent(check, frame, &pausing, rate);
            }
            _ => {}
        }
    }
}

impl Pauses {
    /// The port receives a MAC control frame.
    fn on_control(
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
            // Whether the port stops is undetermined: its state is unknown from here on.
            self.pauses.remove(&port);
            return;
        }
        let times: [Option<u16>; Pfc::PRIORITIES] = match MacControl::parse(frame.octets) {
            Ok(MacControl::Pause(pause)) if pausing.priorities.is_none() => {
                [Some(pause.time); Pfc::PRIORITIES]
            }
            Ok(MacControl::Pfc(pfc)) if pausing.priorities.is_some() => {
                let paused = pfc.enabled & pausing.obeyed;
                std::array::from_fn(|n| (paused >> n & 1 == 1).then_some(pfc.times[n]))
            }
            _ => return,
        };
        let reaction = ns(pausing.response.unwrap_or_else(|| reaction(rate)));
        let pauses = self.pauses.entry(port).or_default();
        for (pause, time) in pauses.iter_mut().zip(times) {
            let Some(time) = time else { continue };
            // A pause that extends another leaves no gap between the two.
            let before = pause.filter(|before| before.until > seen.at_ns);
            let latest = seen.at_ns.saturating_add(reaction + TICK_NS);
            let from = before.map_or(latest, |before| before.from);
            let until = seen.at_ns.saturating_add(quanta(time, rate).as_ps() / 1_000);
            *pause = (time > 0).then_some(Pause { from, until });
        }
    }

    /// The port sends any other frame.
    fn on_sent(
        &self,
        check: &mut Check<'_>,
        frame: &EthernetFrame<'_>,
        pausing: &Pausing,
        rate: BitRate,
    ) {
        let seen = check.seen;
        let Some(pauses) = self.pauses.get(&seen.place.port) else { return };
        let priority =
            pausing.priorities.as_ref().map_or(Some(0), |map| priority(seen, frame, map));
        let Some(priority) = priority else {
            return check.not_checked("frames whose priority is not known");
        };
        check.checked("frames against pauses");
        let Some(pause) = pauses[priority] else { return };
        let octets = if seen.is_cut() { seen.wire_size } else { frame.octets.len() };
        let size = ethernet_size(octets);
        let begun = |size: Bytes| seen.at_ns.saturating_sub(ns(size.time_at(rate)));
        let (earliest, latest) = (begun(size + OVERHEAD), begun(size) + TICK_NS);
        if earliest > pause.from && latest < pause.until {
            let into = Duration::from_ns(earliest - pause.from);
            let left = Duration::from_ns(pause.until - latest);
            let found = format_args!("priority {priority}: begins {into} into a silence");
            check.breaks(&PAUSED, found, format_args!("none for another {left}"));
        }
    }
}

/// Whole nanoseconds, rounded up.
fn ns(time: Duration) -> u64 {
    time.as_ps().div_ceil(1_000)
}

/// The priority of a frame; `None` if the octets in the file do not show it.
fn priority(seen: &Seen<'_>, frame: &EthernetFrame<'_>, map: &PriorityMap) -> Option<usize> {
    const HEADERS: usize = 14 + 4 + 20;
    let whole = match seen.is_cut() {
        false => Cow::Borrowed(frame.octets),
        true if seen.octets.len() < HEADERS => return None,
        true => Cow::Owned(with_zeros(seen.octets, seen.wire_size)?),
    };
    let headers = classify_ethernet(&whole, map).ok();
    headers.map(|headers| headers.lane.index() % Pfc::PRIORITIES)
}

#[cfg(test)]
mod tests;
