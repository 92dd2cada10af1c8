//! Impairments: what a scenario or an operator does on purpose to some of the frames that one end sends.
//!
//! Pure middleware between a device and its cable, the same under the driver and the simulator. Every effect is
//! counted as injected, so that it is not taken for a loss of the transport.

mod parts;

use super::{FrameTally, is_link_local};
use crate::wiring::{Action, End, FrameFilter, FramePart, Impairment, Wiring};
use proto::frame::{Frame, FrameClass, FrameHeaders, FrameKind, Integrity};
use proto::ids::Ecn;
use proto::random::Random;
use proto::units::{Duration, Instant};
use proto::wire::classify::classify_frame;
use serde::{Deserialize, Serialize};

/// Frames hit by impairments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Injected {
    /// Frames lost.
    pub lost: FrameTally,
    /// Frames with one bit flipped.
    pub corrupted: u64,
    /// Copies added.
    pub duplicated: FrameTally,
    /// Frames delayed.
    pub delayed: u64,
}

impl Injected {
    /// The counts of all `impairers` together.
    pub(crate) fn by<'a>(impairers: impl Iterator<Item = &'a Impairer>) -> Injected {
        impairers.fold(Injected::default(), |sum, Impairer { injected, .. }| Injected {
            lost: sum.lost.plus(injected.lost),
            corrupted: sum.corrupted + injected.corrupted,
            duplicated: sum.duplicated.plus(injected.duplicated),
            delayed: sum.delayed + injected.delayed,
        })
    }
}

/// The result of impairing one frame.
#[derive(Debug)]
pub struct Impaired {
    /// No frame, the frame, or the frame and its copy.
    pub frames: [Option<Frame>; 2],
    /// When their last bit leaves; never earlier than for the frame before on the same link.
    pub at: Instant,
}

/// A change made by hand while a run lasts, in addition to the scenario's impairments.
#[derive(Clone, Debug, PartialEq)]
pub enum ManualImpairment {
    /// Cuts the cable, or restores it. Devices get no signal: frames just stop arriving.
    Cut(bool),
    /// Loses frames with probability `chance.0 / chance.1`; none with `chance.0 == 0`.
    Lossy((u64, u64)),
    /// Adds a rule, for this time or until [`ManualImpairment::Mend`].
    Rule(Impairment, Option<Duration>),
    /// Restores cable and rules to those of the scenario.
    Mend,
}

/// A rule and its end.
#[derive(Clone, Debug)]
struct Rule {
    rule: Impairment,
    until: Instant,
}

/// The impairments at one sending end.
#[derive(Clone, Debug)]
pub struct Impairer {
    /// Rules of the scenario, then those made by hand.
    rules: Vec<Rule>,
    /// Number of rules of the scenario.
    given: usize,
    cut: bool,
    /// Probability of random loss.
    lossy: (u64, u64),
    random: Random,
    /// Frames behind a delayed frame leave after it.
    last: Instant,
    /// Frames leave the fabric here, and their FCS is made outside.
    outside: bool,
    /// Frames hit here so far.
    pub injected: Injected,
}

impl Impairer {
    /// The impairments of `wiring` at `end`; `None` if there are none.
    ///
    /// Rules apply in the order of the wiring. The random stream is that of `node:port`, derived from `seed`.
    pub fn new(wiring: &Wiring, end: End, seed: u64) -> Option<Impairer> {
        let at_end = |rule: &&Impairment| rule.from == end;
        let rules = wiring.impairments.iter().filter(at_end);
        let rules: Vec<Rule> =
            rules.map(|rule| Rule { rule: rule.clone(), until: Instant::NEVER }).collect();
        let given = rules.len();
        let idle = Impairer::idle(wiring, end, seed);
        (given > 0).then_some(Impairer { rules, given, ..idle })
    }

    /// An impairer without rules, for changes by hand at `end`.
    pub fn idle(wiring: &Wiring, end: End, seed: u64) -> Impairer {
        Impairer {
            rules: Vec::new(),
            given: 0,
            cut: false,
            lossy: (0, 1),
            random: Random::stream(seed, &wiring.end_name(end), "impairment"),
            last: Instant::ZERO,
            outside: wiring.attached_at(end).is_some(),
            injected: Injected::default(),
        }
    }

    /// Applies a change by hand at `now`.
    pub fn change(&mut self, change: ManualImpairment, now: Instant) {
        self.rules.retain(|rule| rule.until > now);
        match change {
            ManualImpairment::Cut(cut) => self.cut = cut,
            ManualImpairment::Lossy(chance) => self.lossy = chance,
            ManualImpairment::Rule(rule, length) => {
                // At the limit the oldest rule made by hand is removed.
                if self.rules.len() >= self.given + RULES_BY_HAND_MAX {
                    self.rules.remove(self.given);
                }
                let until = length.map_or(Instant::NEVER, |length| now + length);
                self.rules.push(Rule { rule, until });
            }
            ManualImpairment::Mend => {
                self.rules.truncate(self.given);
                self.cut = false;
                self.lossy = (0, 1);
            }
        }
    }

    /// Impairs `frame`, whose last bit leaves at `at`.
    pub fn apply(&mut self, frame: Frame, at: Instant) -> Impaired {
        let mut impaired = Impaired { frames: [Some(frame), None], at };
        let (hits, among) = self.lossy;
        if self.cut || hits > 0 && self.random.chance(hits, among.max(1)) {
            self.hit(Action::Lose, &mut impaired);
        }
        for index in 0..self.rules.len() {
            let Rule { rule: Impairment { frames, action, chance, .. }, until } =
                &self.rules[index];
            let (action, chance) = (*action, *chance);
            let [Some(frame), _] = &impaired.frames else { break };
            if *until > at
                && matches(*frames, frame)
                && self.random.chance(chance.0, chance.1.max(1))
            {
                self.hit(action, &mut impaired);
            }
        }
        impaired.at = impaired.at.max(self.last);
        self.last = impaired.at;
        impaired
    }

    fn hit(&mut self, action: Action, impaired: &mut Impaired) {
        match action {
            Action::Lose => {
                for frame in impaired.frames.iter_mut().filter_map(Option::take) {
                    self.injected.lost.count(&frame);
                }
            }
            Action::Corrupt if self.outside => {
                self.hit(Action::Alter(FramePart::Payload), impaired)
            }
            Action::Alter(part) => {
                if let Some(frame) = &mut impaired.frames[0] {
                    alter(frame, part, &mut self.random);
                    self.injected.corrupted += 1;
                }
            }
            Action::Corrupt => {
                if let Some(frame) = &mut impaired.frames[0] {
                    flip_one_bit(frame, &mut self.random);
                    self.injected.corrupted += 1;
                }
            }
            // A frame has one copy, however many rules duplicate it.
            Action::Duplicate if impaired.frames[1].is_some() => {}
            Action::Duplicate => {
                impaired.frames[1] = impaired.frames[0].clone();
                impaired.frames[1].iter().for_each(|copy| self.injected.duplicated.count(copy));
            }
            Action::Delay(extra) => {
                impaired.at = impaired.at + extra;
                self.injected.delayed += 1;
            }
        }
    }
}

fn matches(filter: FrameFilter, frame: &Frame) -> bool {
    match filter {
        FrameFilter::All => true,
        FrameFilter::Kind(kind) => kind == frame.kind,
        FrameFilter::LinkLocal => is_link_local(frame.kind, &frame.octets),
        FrameFilter::Marked => {
            headers_of(frame).is_some_and(|h| h.fecn || h.ecn == Ecn::CongestionExperienced)
        }
        FrameFilter::Notice => {
            headers_of(frame).is_some_and(|h| h.becn || h.class == FrameClass::Notification)
        }
    }
}

/// The classified headers of a frame, if they can be parsed.
fn headers_of(frame: &Frame) -> Option<FrameHeaders> {
    classify_frame(frame).ok()
}

/// Rules made by hand that one port keeps.
const RULES_BY_HAND_MAX: usize = 16;

/// Place of the EtherType in an Ethernet frame.
const ETHERTYPE: std::ops::Range<usize> = 12..14;

/// Flips one random bit. No Ethernet frame carries its FCS here, so a flag beside the octets marks that it is
/// wrong. The EtherType is not changed, so that the frame still counts as link-local or end-to-end.
fn flip_one_bit(frame: &mut Frame, random: &mut Random) {
    frame.materialise();
    let spared = if frame.kind == FrameKind::Ethernet { ETHERTYPE } else { 0..0 };
    let octets = frame.octets.len().saturating_sub(spared.len());
    if octets > 0 {
        let bit = random.below(octets as u64 * 8);
        let octet = (bit / 8) as usize;
        let at = if octet < spared.start { octet } else { octet + spared.len() };
        frame.octets[at] ^= 1 << (bit % 8);
    }
    match (frame.kind, frame.integrity) {
        (FrameKind::Ethernet, _) => frame.integrity = Integrity::Aborted,
        (_, Integrity::Intact) => frame.integrity = Integrity::Unchecked,
        (_, Integrity::Unchecked | Integrity::Aborted) => {}
    }
}

/// Flips one random bit of a part of the frame and leaves its FCS right.
fn alter(frame: &mut Frame, part: FramePart, random: &mut Random) {
    if frame.kind != FrameKind::Ethernet {
        return flip_one_bit(frame, random);
    }
    frame.materialise();
    let place = parts::place(&frame.octets, part);
    if frame.integrity == Integrity::Intact {
        frame.integrity = Integrity::Unchecked;
    }
    if !place.is_empty() {
        let bit = random.below(place.len() as u64 * 8);
        frame.octets[place.start + (bit / 8) as usize] ^= 1 << (bit % 8);
    }
}

#[cfg(test)]
mod tests;
