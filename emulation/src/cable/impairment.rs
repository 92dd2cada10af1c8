//! Faults on purpose: what a scenario asks a cable to do to some of the frames one end sends.
//!
//! Middleware between a device and its cable, pure, the same under the driver and the simulator.
//! Whatever it does is counted as injected, so that it is never taken for a loss of the transport.

use super::{FrameTally, is_link_local};
use crate::wiring::{Action, End, FrameFilter, Impairment, Wiring};
use proto::frame::{Frame, FrameClass, FrameHeaders, FrameKind, Integrity};
use proto::ids::Ecn;
use proto::random::Random;
use proto::units::{Duration, Instant};
use proto::wire::classify::classify;
use serde::{Deserialize, Serialize};

/// How often each fault was injected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Injected {
    /// Frames that vanished.
    pub lost: FrameTally,
    /// Frames with one bit flipped.
    pub corrupted: u64,
    /// Copies added.
    pub duplicated: FrameTally,
    /// Frames held back.
    pub delayed: u64,
}

impl Injected {
    /// Adds another port's counts to these.
    pub fn merge(&mut self, other: &Injected) {
        self.lost = self.lost.plus(other.lost);
        self.corrupted += other.corrupted;
        self.duplicated = self.duplicated.plus(other.duplicated);
        self.delayed += other.delayed;
    }
}

/// What goes onto the cable in place of one frame.
#[derive(Debug)]
pub struct Impaired {
    /// Nothing, the frame, or the frame and its copy.
    pub frames: [Option<Frame>; 2],
    /// When their last bit leaves; on one link this never runs back.
    pub at: Instant,
}

/// What somebody changes by hand while a run lasts, beside what the scenario asks for.
#[derive(Clone, Debug, PartialEq)]
pub enum ManualImpairment {
    /// The cable is cut, or whole again. No device is told: it sees that nothing comes.
    Cut(bool),
    /// One frame in so many is lost, as `chance.0 / chance.1`; none with `chance.0 == 0`.
    Lossy((u64, u64)),
    /// A further rule, for so long if it is not for good.
    Rule(Impairment, Option<Duration>),
    /// Cable and rules are as the scenario wants them.
    Mend,
}

/// A rule with an end.
#[derive(Clone, Debug)]
struct Rule {
    rule: Impairment,
    until: Instant,
}

/// The faults at one sending end.
#[derive(Clone, Debug)]
pub struct Impairer {
    /// Those of the scenario, then those by hand.
    rules: Vec<Rule>,
    /// How many of them are the scenario's.
    given: usize,
    cut: bool,
    /// Frames lost at random, as a chance.
    lossy: (u64, u64),
    random: Random,
    /// What was sent after a delayed frame leaves after it.
    last: Instant,
    /// How often each fault was injected here.
    pub injected: Injected,
}

impl Impairer {
    /// The faults that `wiring` asks for at `end`; `None` if there are none.
    ///
    /// Rules apply in the order of the wiring. The random stream is `node:port`'s own.
    pub fn new(wiring: &Wiring, end: End, seed: u64) -> Option<Impairer> {
        let at_end = |rule: &&Impairment| rule.from == end;
        let rules = wiring.impairments.iter().filter(at_end);
        let rules: Vec<Rule> =
            rules.map(|rule| Rule { rule: rule.clone(), until: Instant::NEVER }).collect();
        let given = rules.len();
        let idle = Impairer::idle(wiring, end, seed);
        (given > 0).then_some(Impairer { rules, given, ..idle })
    }

    /// The place of faults at `end` where there are none yet.
    pub fn idle(wiring: &Wiring, end: End, seed: u64) -> Impairer {
        Impairer {
            rules: Vec::new(),
            given: 0,
            cut: false,
            lossy: (0, 1),
            random: Random::stream(seed, &wiring.end_name(end), "impairment"),
            last: Instant::ZERO,
            injected: Injected::default(),
        }
    }

    /// Somebody changes something at `now`.
    pub fn change(&mut self, change: ManualImpairment, now: Instant) {
        self.rules.retain(|rule| rule.until > now);
        match change {
            ManualImpairment::Cut(cut) => self.cut = cut,
            ManualImpairment::Lossy(chance) => self.lossy = chance,
            ManualImpairment::Rule(rule, length) => {
                // More would be somebody who only adds: the oldest go.
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

    /// What becomes of `frame`, whose last bit leaves at `at`.
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
            Action::Corrupt => {
                if let Some(frame) = &mut impaired.frames[0] {
                    flip_one_bit(frame, &mut self.random);
                    self.injected.corrupted += 1;
                }
            }
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

/// What a frame's headers say, if they can be read.
fn headers_of(frame: &Frame) -> Option<FrameHeaders> {
    classify(frame.kind, &frame.octets).ok()
}

/// Rules by hand that one port keeps.
const RULES_BY_HAND_MAX: usize = 16;

/// Where the EtherType of an Ethernet frame lies.
const ETHERTYPE: std::ops::Range<usize> = 12..14;

/// On Ethernet the FCS would tell, and no frame carries one here: that it is wrong is said beside the
/// octets. The EtherType is left alone, so that whoever counts the frame knows how far it was going.
fn flip_one_bit(frame: &mut Frame, random: &mut Random) {
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

#[cfg(test)]
mod tests;
