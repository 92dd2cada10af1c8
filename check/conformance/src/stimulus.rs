//! Stimuli and what must become of them: many in one run, each in a time slot of its own.

use crate::prelude::*;
use proto::frame::FrameClass;
use proto::wire::infiniband::{Opcode, Syndrome, crc, set_virtual_lane};
use testbed::frames::ethernet::{acknowledged, opcode};

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
    /// This port sends exactly these octets, and no other anything.
    Sent(u8, BytesMut),
    /// It draws RoCE packets of these opcodes, in any order.
    Draws(Vec<Opcode>),
    /// It is acknowledged.
    Answered,
    /// It draws one acknowledgement of RoCE with this syndrome, and with this PSN and MSN; it is lost for the reason, if
    /// there is one.
    Replies(Option<DropReason>, Syndrome, [u32; 2]),
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

/// The time of slot `index`.
pub fn slot_time(index: usize) -> (Instant, Instant) {
    (slot(index), slot(index + 1))
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
pub fn judge(case: &str, stimuli: &[Stimulus], record: &Record) -> Result<usize> {
    let mut count = 0;
    for (index, stimulus) in stimuli.iter().enumerate() {
        if stimulus.case == case {
            became(stimulus, record, index).map_err(|failure| {
                failure.of(format!("{} at port {}", stimulus.what, stimulus.port))
            })?;
            count += 1;
        }
    }
    ensure!(count > 0, "no stimulus belongs to {case}");
    Ok(count)
}

fn became(stimulus: &Stimulus, record: &Record, index: usize) -> Result<()> {
    let lost: Vec<_> = record.dropped(stimulus.port, slot_time(index));
    let left: Vec<&Seen> = record.all_packets().within(slot_time(index)).collect();
    let (reasons, count): (&[DropReason], _) = match &stimulus.expected {
        Expected::Lost(reason) => (std::slice::from_ref(reason), 0),
        Expected::Taken => (&[], 0),
        Expected::Replies(reason, ..) => (reason.as_slice(), 1),
        Expected::Answered | Expected::Sent(..) => (&[], 1),
        Expected::Left(ports, _) => (&[], ports.len()),
        Expected::Draws(opcodes) => (&[], opcodes.len()),
    };
    same("drops", lost, reasons)?;
    same("packets that leave", left.len(), count)?;
    match &stimulus.expected {
        Expected::Lost(_) | Expected::Taken => Ok(()),
        Expected::Left(ports, lane) => copies(&stimulus.octets, &left, ports, *lane),
        Expected::Draws(opcodes) => {
            let drawn: Vec<_> = left.iter().filter_map(|seen| opcode(&seen.frame)).collect();
            ensure!(opcodes.iter().all(|opcode| drawn.contains(opcode)), "it draws {drawn:?}");
            Ok(())
        }
        Expected::Answered => answered(&stimulus.octets, left[0]),
        Expected::Replies(_, syndrome, [psn, msn]) => {
            same("the answer", acknowledged(&left[0].frame), Some((*psn, *syndrome, *msn)))
        }
        Expected::Sent(port, octets) => {
            same("the packet that leaves", (left[0].port, &left[0].frame.octets), (*port, octets))
        }
    }
}

fn copies(octets: &BytesMut, left: &[&Seen], ports: &[u8], lane: u8) -> Result<()> {
    let mut by: Vec<u8> = left.iter().map(|seen| seen.port).collect();
    by.sort_unstable();
    same("ports", by, ports)?;
    let mut expected = octets.clone();
    set_virtual_lane(&mut expected, VirtualLane::truncate(lane));
    // Only what a switch may change has changed, and the VCRC with it: the ICRC is as it came in.
    crc::refresh_vcrc(&mut expected);
    left.iter().try_for_each(|seen| {
        same(format!("what leaves by port {}", seen.port), &seen.frame.octets, &expected)
    })
}

fn answered(octets: &BytesMut, answer: &Seen) -> Result<()> {
    let sent = classify(FrameKind::Infiniband, octets)?;
    let answer = classify(FrameKind::Infiniband, &answer.frame.octets)?;
    let fits = answer.class == FrameClass::Ack && answer.psn == sent.psn;
    ensure!(fits, "answered by {answer:?}");
    Ok(())
}

/// A finding over the stimuli of one case at several devices.
///
/// # Errors
/// As [`judge`], with the device's name.
pub fn finding(case: &str, runs: &[(&str, &[Stimulus], &Record)]) -> Finding {
    let mut seen = Vec::new();
    for (device, stimuli, record) in runs {
        let count = judge(case, stimuli, record).map_err(|failure| failure.of(device))?;
        seen.push(format!("{device}: {count} of {count} stimuli as expected"));
    }
    Ok(seen.join("; "))
}
