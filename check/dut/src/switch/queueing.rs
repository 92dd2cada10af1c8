//! QUE: marks and shares of a port that gets more than it can send, from captured frames alone.
//!
//! A burst fills the queue faster than the port drains it. Frames that are given to the device and have not come out are
//! what the queue holds, to one frame.

use super::{Scripts, Switch};
use crate::verdict::{Check, Fault, must};
use proto::frame::Frame;
use proto::ids::Ecn;
use proto::units::Instant;
use proto::wire::ethernet::MacAddress;
use proto::wire::roce::Packet;
use proto::wire::roce::checks::{verify_checksums, verify_icrc};
use std::collections::BTreeMap;
use testbed::frames::ethernet::{frame, pfc, readdressed, roce, with_dscp, with_ecn};

pub(super) const SCRIPTS: Scripts = &[
    ("QUE-01", threshold),
    ("QUE-02", below),
    ("QUE-03", not_capable),
    ("QUE-04", marked_frames),
    ("QUE-05", strict),
    ("QUE-06", shares),
    ("QUE-07", inputs),
];

/// Octets of a frame of a burst without FCS.
pub(super) const SIZE: usize = 1000;
/// Ethernet, IPv4, UDP, BTH and ICRC.
const HEADERS: usize = 14 + 20 + 8 + 12 + 4;

/// A frame that came out of a burst.
pub(super) struct Came {
    pub(super) number: u32,
    pub(super) at: Instant,
    pub(super) ecn: Ecn,
    frame: Frame,
}

/// The threshold in frames of a burst.
pub(super) fn threshold_frames(switch: &Switch<'_>) -> Check<u32> {
    let at = switch.file.queue.mark_at;
    let at = at.ok_or_else(|| Fault::absent("the DUT file states no threshold"))?;
    Ok((at.get() / SIZE as u64) as u32)
}

/// Frames that fill the queue of a port.
pub(super) struct Load {
    port: u8,
    mark: usize,
    is_held: bool,
    /// When each was sent.
    pub(super) sent: Vec<Instant>,
}

/// Sends frames with these code points to a port, as fast as they can be sent, by `inputs` in turn; where PFC can hold the
/// port it is held.
pub(super) fn fill(
    switch: &mut Switch<'_>,
    inputs: &[u8],
    port: u8,
    kinds: &[(u8, Ecn)],
) -> Check<Load> {
    let to = switch.station(1);
    switch.teach(port, to)?;
    for input in inputs {
        switch.teach(*input, switch.station(1 + u16::from(*input)))?;
    }
    let mark = switch.line.seen.len();
    let is_held = is_held(switch, port);
    let mut load = Load { port, mark, is_held, sent: Vec::new() };
    load.hold(switch)?;
    let numbered = (0..).zip(kinds).zip(inputs.iter().cycle());
    let frames: Vec<(u8, Frame)> = numbered
        .map(|((number, kind), input)| {
            let from = switch.station(1 + u16::from(*input));
            (*input, one(to, from, number, *kind))
        })
        .collect();
    for (input, frame) in &frames {
        switch.line.send(*input, &frame.octets)?;
        load.sent.push(switch.line.now());
        switch.line.poll()?;
    }
    Ok(load)
}

/// Whether PFC can hold this port.
pub(super) fn is_held(switch: &Switch<'_>, port: u8) -> bool {
    switch.file.claims("pfc") && switch.file.tolerance.pfc_port == port
}

impl Load {
    /// Holds the port, if PFC can.
    pub(super) fn hold(&self, switch: &mut Switch<'_>) -> Check<()> {
        if self.is_held {
            switch.line.send(self.port, &pfc(0xff, u16::MAX).octets)?;
            switch.passes(self.port, switch.file.tolerance.patience)?;
        }
        Ok(())
    }

    /// Lets the port go, and returns what has come out once `wanted` have, or a patience has passed without another frame:
    /// dropped frames leave no trace.
    pub(super) fn drain(&self, switch: &mut Switch<'_>, wanted: usize) -> Check<Vec<Came>> {
        if self.is_held {
            switch.line.send(self.port, &pfc(0xff, 0).octets)?;
        }
        let mut count = switch.line.seen.len() - self.mark;
        loop {
            let until = switch.line.now() + switch.file.tolerance.patience;
            let more = switch.line.wait(until, |seen| seen.len() > self.mark + count)?;
            count = switch.line.seen.len() - self.mark;
            if more && count < wanted {
                continue;
            }
            let came = came(switch, self.mark, self.port);
            if !more || came.len() >= wanted {
                return Ok(came);
            }
        }
    }
}

/// A burst of such frames: when each was sent, and what came out.
pub(super) fn burst(
    switch: &mut Switch<'_>,
    inputs: &[u8],
    port: u8,
    kinds: &[(u8, Ecn)],
) -> Check<(Vec<Instant>, Vec<Came>)> {
    let load = fill(switch, inputs, port, kinds)?;
    let came = load.drain(switch, kinds.len())?;
    Ok((load.sent, came))
}

fn one(to: MacAddress, from: MacAddress, number: u32, (dscp, ecn): (u8, Ecn)) -> Frame {
    let builder = with_dscp(&with_ecn(&roce(1, 2, 0, number), ecn), dscp);
    readdressed(frame(&builder, SIZE - HEADERS), to, from)
}

fn came(switch: &Switch<'_>, mark: usize, port: u8) -> Vec<Came> {
    let here = switch.line.seen[mark..].iter().filter(|seen| seen.port == port);
    here.filter_map(|seen| {
        let packet = Packet::parse(&seen.frame.octets).ok().flatten()?;
        let ecn = match packet.network {
            proto::wire::roce::NetworkHeaders::Ipv4(ip, ..) => ip.ecn,
            _ => return None,
        };
        let number = packet.transport.bth.psn.get();
        Some(Came { number, at: seen.at, ecn, frame: seen.frame.clone() })
    })
    .collect()
}

/// Frames of the burst before frame `number` that are still in the device when it is sent.
pub(super) fn waiting(sent: &[Instant], came: &[Came], number: u32) -> u32 {
    let at = sent[number as usize];
    number - came.iter().filter(|came| came.at <= at).count() as u32
}

pub(super) fn is_marked(came: &Came) -> bool {
    came.ecn == Ecn::CongestionExperienced
}

/// A burst of three times the threshold.
fn overload(switch: &mut Switch<'_>) -> Check<(u32, Vec<Instant>, Vec<Came>)> {
    let limit = threshold_frames(switch)?;
    let dscp = switch.file.queue.mark_dscp;
    let kinds = vec![(dscp, Ecn::Capable0); limit as usize * 3];
    let port = switch.file.queue.mark_port;
    let (sent, came) = burst(switch, &[1], port, &kinds)?;
    must!(came.len() == kinds.len(), "{} of {} frames with ECT come", came.len(), kinds.len());
    Ok((limit, sent, came))
}

/// Devices mark what enters behind a full queue, or what leaves before one: a suffix of the burst, or a prefix.
fn threshold(switch: &mut Switch<'_>) -> Check {
    let (limit, sent, came) = overload(switch)?;
    let marked: Vec<bool> = came.iter().map(is_marked).collect();
    let count = marked.iter().filter(|marked| **marked).count();
    must!(count > 0, "none of {} frames is marked, the threshold is {limit} frames", came.len());
    let changes = marked.windows(2).filter(|pair| pair[0] != pair[1]).count();
    must!(changes <= 1, "marked and unmarked frames alternate {changes} times");
    let first = marked.iter().position(|marked| *marked).unwrap_or(0);
    let (what, depth) = match first {
        // The first frames that leave are marked: those behind them fill the queue.
        0 => ("leaves before", (came.len() - count) as u32),
        _ => ("enters behind", waiting(&sent, &came, came[first].number)),
    };
    let text = format!("a frame is marked that {what} {depth} frames; the threshold is {limit}");
    // No standard sets it: the DUT file does.
    match depth.abs_diff(limit) {
        0 | 1 => Ok(text),
        _ => Err(Fault::deviation(text)),
    }
}

fn below(switch: &mut Switch<'_>) -> Check {
    let limit = threshold_frames(switch)?;
    let kinds = vec![(switch.file.queue.mark_dscp, Ecn::Capable1); limit as usize - 1];
    let port = switch.file.queue.mark_port;
    let (_, came) = burst(switch, &[1], port, &kinds)?;
    must!(came.len() == kinds.len(), "{} of {} frames come", came.len(), kinds.len());
    let marked = came.iter().filter(|came| is_marked(came)).count();
    must!(marked == 0, "{marked} of {} frames are marked below the threshold", came.len());
    Ok(format!("none of {} frames is marked, one less than the threshold", came.len()))
}

/// Frames that are not capable lose no octet; a queue with WRED drops them where it would mark others.
fn not_capable(switch: &mut Switch<'_>) -> Check {
    let limit = threshold_frames(switch)?;
    let kinds = vec![(switch.file.queue.mark_dscp, Ecn::NotCapable); limit as usize * 3];
    let port = switch.file.queue.mark_port;
    let (_, came) = burst(switch, &[1], port, &kinds)?;
    let altered = came.iter().filter(|came| came.ecn != Ecn::NotCapable).count();
    must!(altered == 0, "{altered} frames without ECT leave with another code point");
    must!(came.len() >= limit as usize - 1, "{} frames come below the threshold", came.len());
    let lost = kinds.len() - came.len();
    if switch.file.claims("wred") {
        must!(lost > 0, "none of {} frames is dropped above the threshold", kinds.len());
    }
    Ok(format!("none of {} is marked, {lost} are dropped", kinds.len()))
}

fn marked_frames(switch: &mut Switch<'_>) -> Check {
    let (_, _, came) = overload(switch)?;
    let marked: Vec<&Came> = came.iter().filter(|came| is_marked(came)).collect();
    must!(!marked.is_empty(), "none of {} frames is marked", came.len());
    for Came { number, frame, .. } in &marked {
        verify_checksums(&frame.octets)
            .map_err(|error| Fault::fail(format!("frame {number}: {error}")))?;
        verify_icrc(&frame.octets)
            .map_err(|error| Fault::fail(format!("frame {number}: {error}")))?;
    }
    Ok(format!("{} marked frames have right checksums and their ICRC", marked.len()))
}

/// By class, which come in turn, the frames that came while every class had frames waiting, behind those that left before the burst was complete.
fn backlogged(sent: &[Instant], came: &[Came], classes: &[u8]) -> BTreeMap<u8, usize> {
    let last = sent.last().copied().unwrap_or(Instant::ZERO);
    backlogged_within(sent.len(), came, classes, |at| at > last)
}

/// The same of those whose instant is `within` an interval, of `total` frames that were sent.
pub(super) fn backlogged_within(
    total: usize,
    came: &[Came],
    classes: &[u8],
    within: impl Fn(Instant) -> bool,
) -> BTreeMap<u8, usize> {
    let class = |came: &Came| classes[came.number as usize % classes.len()];
    let each = total / classes.len();
    let (mut seen, mut counted) = (BTreeMap::new(), BTreeMap::new());
    for came in came {
        let dscp = class(came);
        let total = seen.entry(dscp).or_insert(0);
        *total += 1;
        if within(came.at) {
            *counted.entry(dscp).or_insert(0) += 1;
        }
        if *total == each {
            break;
        }
    }
    counted
}

fn mixed(switch: &mut Switch<'_>, classes: &[u8], each: usize) -> Check<BTreeMap<u8, usize>> {
    let kinds: Vec<(u8, Ecn)> =
        (0..classes.len() * each).map(|n| (classes[n % classes.len()], Ecn::Capable0)).collect();
    let port = switch.file.queue.share_port;
    let (sent, came) = burst(switch, &[1], port, &kinds)?;
    must!(came.len() == kinds.len(), "{} of {} frames come", came.len(), kinds.len());
    Ok(backlogged(&sent, &came, classes))
}

fn strict(switch: &mut Switch<'_>) -> Check {
    let first = switch.file.queue.strict_dscp;
    let first = first.ok_or_else(|| Fault::absent("the DUT file states no strict class"))?;
    let (other, _) = weights(switch)?.swap_remove(0);
    let counts = mixed(switch, &[first, other], 100)?;
    let (high, low) =
        (counts.get(&first).copied().unwrap_or(0), counts.get(&other).copied().unwrap_or(0));
    let text =
        format!("{high} frames of the strict class leave and {low} of another while both wait");
    must!(high > 50 && low * 50 <= high, "{text}");
    Ok(text)
}

/// DSCP and weight of each class.
fn weights(switch: &Switch<'_>) -> Check<Vec<(u8, u64)>> {
    parsed(switch.file.queue.shares.as_deref())
}

/// The same of words DSCP=WEIGHT.
pub(super) fn parsed(words: Option<&[String]>) -> Check<Vec<(u8, u64)>> {
    let parsed = words.unwrap_or_default().iter().map(|share| {
        let (dscp, weight) = share.split_once('=')?;
        Some((dscp.parse().ok().filter(|dscp| *dscp < 64)?, weight.parse().ok()?))
    });
    let parsed: Option<Vec<(u8, u64)>> = parsed.collect();
    let parsed = parsed.ok_or_else(|| Fault::unclear("shares are words DSCP=WEIGHT"))?;
    match parsed.len() {
        0 | 1 => Err(Fault::absent("the DUT file states no shares of two classes")),
        _ => Ok(parsed),
    }
}

fn shares(switch: &mut Switch<'_>) -> Check {
    let weights = weights(switch)?;
    let classes: Vec<u8> = weights.iter().map(|(dscp, _)| *dscp).collect();
    let counts = mixed(switch, &classes, 150)?;
    fair(&weights, &counts)
}

/// That each class has the share of its weight, within 2 % of the rate.
pub(super) fn fair(weights: &[(u8, u64)], counts: &BTreeMap<u8, usize>) -> Check {
    let (total, all): (usize, u64) =
        (counts.values().sum(), weights.iter().map(|(_, weight)| weight).sum());
    if total < 100 {
        let text = format!("only {total} frames leave while all classes wait");
        return Err(Fault::unclear(text));
    }
    let mut said = Vec::new();
    let mut is_fair = true;
    for (dscp, weight) in weights {
        let count = counts.get(dscp).copied().unwrap_or(0);
        let (is, wanted) =
            (count as f64 * 100.0 / total as f64, *weight as f64 * 100.0 / all as f64);
        is_fair &= (is - wanted).abs() <= 2.0;
        said.push(format!("DSCP {dscp} {is:.1} % of {wanted:.1} %"));
    }
    must!(is_fair, "{}", said.join(", "));
    Ok(format!("{}, of {total} frames", said.join(", ")))
}

/// No standard sets the order of inputs; switches serve them in turn.
fn inputs(switch: &mut Switch<'_>) -> Check {
    const EACH: usize = 150;
    let port = switch.file.queue.share_port;
    let inputs: Vec<u8> = switch.others(port).into_iter().take(2).collect();
    let (dscp, _) = weights(switch)?.swap_remove(0);
    let kinds = vec![(dscp, Ecn::Capable0); EACH * inputs.len()];
    let (sent, came) = burst(switch, &inputs, port, &kinds)?;
    must!(came.len() == kinds.len(), "{} of {} frames come", came.len(), kinds.len());
    let counts = backlogged(&sent, &came, &inputs);
    let of = |input: u8| counts.get(&input).copied().unwrap_or(0);
    let (one, other) = (of(inputs[0]), of(inputs[1]));
    let text = format!("{one} frames of one port leave and {other} of the other while both wait");
    must!(one + other >= 50, "{text}");
    match one.abs_diff(other) * 10 <= one + other {
        true => Ok(text),
        false => Err(Fault::deviation(text)),
    }
}
