//! Stimuli and what must become of them: many in one run, each in a time slot of its own.

use crate::case::{Failure, Finding, ensure};
use crate::record::Record;
use crate::star::{ms, us};
use bytes::BytesMut;
use proto::counters::DropReason;
use proto::frame::FrameKind;
use proto::ids::VirtualLane;
use proto::units::{Duration, Instant};
use proto::wire::classify::classify;
use proto::wire::infiniband::{crc, set_virtual_lane};
use testbed::{Label, Script, Seen};

/// Room for one full frame inwards, one outwards, and flow control between them.
const SLOT: Duration = us(6_000);

/// When the first slot begins: the links have been trained by then.
pub const FIRST: Instant = ms(150);

/// What must become of a packet.
#[derive(Clone, Debug)]
pub enum Expected {
    /// It ends at the port it came in by, for this reason, and nothing leaves.
    Lost(DropReason),
    /// Exactly these ports send a copy, the same but for lane and VCRC; the lane is this one.
    Left(Vec<u8>, u8),
    /// It is acknowledged.
    Answered,
    /// It is taken without an answer.
    Taken,
}

/// A packet that reaches a device, and what must become of it.
#[derive(Clone, Debug)]
pub struct Stimulus {
    /// The case it belongs to.
    pub case: &'static str,
    /// What is special about it.
    pub what: String,
    /// By which port of the device.
    pub port: u8,
    /// Its octets.
    pub octets: BytesMut,
    /// Ended as a bad packet.
    pub aborted: bool,
    /// What must become of it.
    pub expected: Expected,
}

impl Stimulus {
    /// A stimulus at port 1.
    pub fn new(
        case: &'static str,
        what: impl Into<String>,
        octets: BytesMut,
        expected: Expected,
    ) -> Stimulus {
        Stimulus { case, what: what.into(), port: 1, octets, aborted: false, expected }
    }
}

/// When slot `index` begins.
pub fn slot(index: usize) -> Instant {
    FIRST + SLOT * index as u64
}

/// Has every stimulus sent in a slot of its own.
pub fn schedule(script: &mut Script, stimuli: &[Stimulus]) {
    for (index, stimulus) in stimuli.iter().enumerate() {
        let Stimulus { port, octets, aborted, .. } = stimulus.clone();
        script.at(slot(index), move |bed| {
            bed.send_labelled(port, &octets, Label { aborted, ..Label::default() });
        });
    }
}

/// Looks at what became of the stimuli of `case`; how many there were.
///
/// # Errors
/// The first of which something else became.
pub fn judge(case: &str, stimuli: &[Stimulus], record: &Record) -> Result<usize, Failure> {
    let mut count = 0;
    for (index, stimulus) in stimuli.iter().enumerate() {
        if stimulus.case == case {
            let became = became(stimulus, record, index);
            became.map_err(|wrong| {
                Failure::Failed(format!("{} at port {}: {wrong}", stimulus.what, stimulus.port))
            })?;
            count += 1;
        }
    }
    ensure(count > 0, || format!("no stimulus belongs to {case}"))?;
    Ok(count)
}

fn became(stimulus: &Stimulus, record: &Record, index: usize) -> Result<(), String> {
    let (from, to) = (slot(index), slot(index + 1));
    let lost = record.dropped(stimulus.port, from, to);
    let left: Vec<&Seen> =
        record.all_packets().filter(|seen| seen.at >= from && seen.at < to).collect();
    let names = lost.iter().map(|reason| reason.name()).collect::<Vec<_>>().join(", ");
    match &stimulus.expected {
        Expected::Lost(reason) if lost != [*reason] => {
            Err(format!("dropped for [{names}], expected {}", reason.name()))
        }
        Expected::Lost(_) | Expected::Taken if !left.is_empty() => {
            Err(format!("port {} has sent something", left[0].port))
        }
        Expected::Left(..) | Expected::Answered | Expected::Taken if !lost.is_empty() => {
            Err(format!("dropped for [{names}]"))
        }
        Expected::Lost(_) | Expected::Taken => Ok(()),
        Expected::Left(ports, lane) => copies(&stimulus.octets, &left, ports, *lane),
        Expected::Answered => answered(&stimulus.octets, &left),
    }
}

fn copies(octets: &BytesMut, left: &[&Seen], ports: &[u8], lane: u8) -> Result<(), String> {
    let mut by: Vec<u8> = left.iter().map(|seen| seen.port).collect();
    by.sort_unstable();
    if by != ports {
        return Err(format!("left by ports {by:?}, expected {ports:?}"));
    }
    let mut expected = octets.clone();
    set_virtual_lane(&mut expected, VirtualLane::truncate(lane));
    // Only what a switch may change has changed, and the VCRC with it: the ICRC is as it came in.
    crc::refresh_vcrc(&mut expected);
    match left.iter().find(|seen| seen.frame.octets != expected) {
        None => Ok(()),
        Some(seen) => Err(format!(
            "port {} sent other octets than it must: {:02x?}…",
            seen.port,
            &seen.frame.octets[..20.min(seen.frame.octets.len())]
        )),
    }
}

fn answered(octets: &BytesMut, left: &[&Seen]) -> Result<(), String> {
    let read =
        |octets: &[u8]| classify(FrameKind::Infiniband, octets).map_err(|error| error.to_string());
    let sent = read(octets)?;
    let [answer] = left else { return Err(format!("{} packets in answer", left.len())) };
    let answer = read(&answer.frame.octets)?;
    let fits = answer.class == proto::frame::FrameClass::Ack && answer.psn == sent.psn;
    if fits { Ok(()) } else { Err(format!("answered by {answer:?}")) }
}

/// A finding over the stimuli of one case at several devices.
///
/// # Errors
/// As [`judge`], with the device's name.
pub fn finding(case: &str, runs: &[(&str, &[Stimulus], &Record)]) -> Finding {
    let mut seen = Vec::new();
    for (device, stimuli, record) in runs {
        let count = judge(case, stimuli, record).map_err(|failure| match failure {
            Failure::Failed(reason) => Failure::Failed(format!("{device}: {reason}")),
            other => other,
        })?;
        seen.push(format!("{device}: {count} of {count} stimuli as expected"));
    }
    Ok(seen.join("; "))
}
