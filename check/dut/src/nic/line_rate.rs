//! LINE: the rate of the NIC's line, and pauses of it.

use super::pair::{Pair, Terms};
use super::{Nic, Scripts};
use crate::rate;
use crate::verdict::{Check, Fault};
use proto::units::{Duration, Instant};
use proto::wire::roce::notification;
use testbed::frames::ethernet::pfc;
use verbs::work::Operation;

pub(super) const SCRIPTS: Scripts = &[
    ("LINE-01", |nic| rate::two_of_three(|| no_faster(nic))),
    ("LINE-02", |nic| rate::two_of_three(|| stops(nic))),
];

/// Messages, and packets of each.
const MESSAGES: u32 = 16;
const PACKETS: u32 = 32;
const MESSAGE: u32 = PACKETS * super::pair::PATH_MTU.1 as u32;

/// Posts all messages at once. Returns their queue pair, and the number of the first frame that can come.
fn backlog(nic: &mut Nic<'_>) -> Check<(Pair, usize)> {
    // Lossless by default in our files.
    let pair = nic.connect(Terms { traffic_class: 3 << 5, ..Terms::default() })?;
    let mark = nic.mark();
    for number in 0..MESSAGES {
        nic.post(&pair, Operation::Send, u64::from(number), MESSAGE)?;
    }
    Ok((pair, mark))
}

/// The packets of messages that have come.
fn packets(nic: &Nic<'_>, mark: usize) -> Vec<rate::Came> {
    rate::came(nic.line, mark, 1, |seen| seen.frame.octets.len() > 1_000)
}

/// Acknowledges what comes until nothing has come for twice the quiet time.
fn drain(nic: &mut Nic<'_>, pair: &Pair, mark: usize) -> Check<Vec<rate::Came>> {
    let (mut last, mut acknowledged, mut count) = (nic.line.now(), 0, 0);
    loop {
        nic.during(mark, Duration::from_us(1_000))?;
        let all = packets(nic, mark);
        let messages = all.len() as u32 / PACKETS;
        if messages > acknowledged {
            acknowledged = messages;
            nic.acknowledge(pair, pair.out_psn(messages * PACKETS - 1), messages)?;
        }
        if all.len() > count {
            (last, count) = (nic.line.now(), all.len());
        } else if nic.line.now() >= last + nic.file.tolerance.quiet * 2 {
            return Ok(all);
        }
    }
}

/// A backlog, and CNPs that slow it down if the NIC obeys them: whatever raises its rate again, the line stays as it is.
fn no_faster(nic: &mut Nic<'_>) -> Check {
    let (pair, mark) = backlog(nic)?;
    for _ in 0..4 {
        let bth = notification::bth(pair.number, 0xffff);
        let payload = vec![0; notification::BODY_LEN];
        nic.send(&super::Packet { bth, payload, ..pair.message(0) })?;
    }
    let all = drain(nic, &pair, mark)?;
    rate::no_faster(&all, nic.file.tolerance.line_rate, nic.line.doubt())
}

/// A backlog on all priorities is paused, and goes on afterwards at the rate of the line.
fn stops(nic: &mut Nic<'_>) -> Check {
    let mbps = nic.file.tolerance.pause_rate;
    let length = Duration::from_ns(u64::from(u16::MAX) * 512 * 1_000 / mbps / 2);
    if length < nic.file.tolerance.quiet {
        return Err(Fault::unclear("the longest pause is shorter than twice the quiet time"));
    }
    let (pair, mark) = backlog(nic)?;
    let began: Instant = nic.line.now();
    nic.send_octets(&pfc(0xff, u16::MAX).octets)?;
    nic.during(mark, length)?;
    let until = nic.line.now();
    nic.send_octets(&pfc(0xff, 0).octets)?;
    let all = drain(nic, &pair, mark)?;
    let before = rate::silent(&all, (began, until), mbps, nic.line.doubt())?;
    if before + 16 > all.len() {
        return Err(Fault::unclear(format!(
            "{before} of {} packets had come before it could stop",
            all.len()
        )));
    }
    Ok(format!("{before} packets come until it stops, and {} afterwards", all.len() - before))
}
