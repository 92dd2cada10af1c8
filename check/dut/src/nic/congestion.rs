//! CNP: notifications of RoCEv2, sent and obeyed.

use super::pair::{PATH_MTU, Pair, Terms};
use super::{Got, Nic, Scripts};
use crate::verdict::{Check, Fault, must};
use proto::ids::Ecn;
use proto::units::Duration;
use proto::wire::infiniband::Opcode;
use proto::wire::roce::checks::verify_icrc;
use proto::wire::roce::notification;
use verbs::work::Operation;

pub(super) const SCRIPTS: Scripts = &[
    ("CNP-01", answers_marks),
    ("CNP-02", names_pair),
    ("CNP-03", not_each),
    ("CNP-04", no_mark_no_notice),
    ("CNP-05", layout),
    ("CNP-06", takes),
    ("CNP-07", delivers_marked),
    ("CNP-08", obeys),
];

/// The notifications that a burst of `count` SENDs with this code point draws.
fn notices(nic: &mut Nic<'_>, ecn: Ecn, count: u32) -> Check<(Pair, Vec<Got>)> {
    let pair = nic.connect(Terms::default())?;
    nic.post_receives(&pair, 8)?;
    let mark = nic.mark();
    for n in 0..count {
        let mut packet = pair.message(n);
        packet.ecn = ecn;
        nic.send(&packet)?;
    }
    let got = nic.packets(mark, count as usize)?;
    let is_notice = |got: &Got| got.bth.opcode == Opcode::ROCEV2_CNP;
    Ok((pair, got.into_iter().filter(is_notice).collect()))
}

fn marked(nic: &mut Nic<'_>) -> Check<(Pair, Got)> {
    let (pair, notices) = notices(nic, Ecn::CongestionExperienced, 1)?;
    let first = notices.into_iter().next();
    Ok((pair, first.ok_or_else(|| Fault::fail("a packet with CE draws no CNP"))?))
}

fn answers_marks(nic: &mut Nic<'_>) -> Check {
    marked(nic)?;
    Ok("a packet with CE draws a CNP".to_owned())
}

fn names_pair(nic: &mut Nic<'_>) -> Check {
    let (pair, notice) = marked(nic)?;
    must!(
        notice.bth.destination == pair.own,
        "it names queue pair {:06x}",
        notice.bth.destination.get()
    );
    must!(notice.ip.destination == nic.file.peer, "it goes to {}", notice.ip.destination);
    Ok("it goes to the queue pair that sent the marked packet".to_owned())
}

fn not_each(nic: &mut Nic<'_>) -> Check {
    let (_, notices) = notices(nic, Ecn::CongestionExperienced, 8)?;
    must!(!notices.is_empty(), "eight packets with CE draw no CNP");
    if notices.len() == 8 {
        return Err(Fault::deviation("each of eight packets back to back draws a CNP"));
    }
    Ok(format!("eight packets with CE back to back draw {} CNPs", notices.len()))
}

fn no_mark_no_notice(nic: &mut Nic<'_>) -> Check {
    for ecn in [Ecn::Capable0, Ecn::Capable1, Ecn::NotCapable] {
        let (_, notices) = notices(nic, ecn, 2)?;
        must!(notices.is_empty(), "{ecn:?} draws a CNP");
    }
    Ok("packets without CE draw no CNP".to_owned())
}

fn layout(nic: &mut Nic<'_>) -> Check {
    let (_, notice) = marked(nic)?;
    verify_icrc(&notice.octets).map_err(Fault::fail)?;
    must!(notice.bth.becn, "BECN is 0");
    must!(notice.payload == [0; 16], "{} octets behind the BTH", notice.payload.len());
    must!(notice.ip.ecn != Ecn::CongestionExperienced, "it carries CE itself");
    Ok("BECN, sixteen zeros behind the BTH, right ICRC".to_owned())
}

/// CNPs for a queue pair that sends nothing do no harm.
fn takes(nic: &mut Nic<'_>) -> Check {
    let pair = nic.connect(Terms::default())?;
    nic.post_receives(&pair, 1)?;
    let mark = nic.mark();
    for _ in 0..20 {
        let bth = notification::bth(pair.number, 0xffff);
        let payload = vec![0; notification::BODY_LEN];
        nic.send(&super::Packet { bth, payload, ..pair.message(0) })?;
    }
    nic.during(mark, Duration::from_us(5_000))?;
    let got = nic.packets(mark, 0)?;
    must!(got.is_empty(), "a CNP is answered");
    let mark = nic.mark();
    nic.send(&pair.message(0))?;
    nic.answer(&pair, mark)?;
    Ok("twenty CNPs draw nothing, and the queue pair goes on".to_owned())
}

fn delivers_marked(nic: &mut Nic<'_>) -> Check {
    let pair = nic.connect(Terms::default())?;
    nic.post_receives(&pair, 1)?;
    let mut packet = pair.message(0);
    packet.ecn = Ecn::CongestionExperienced;
    nic.send(&packet)?;
    let received = nic.received(&pair, 1)?;
    must!(received.len() == 1, "a packet with CE is not delivered");
    Ok("a packet with CE is delivered".to_owned())
}

/// How long a message of 32 packets takes, which is number `n` of its queue pair.
fn message_time(nic: &mut Nic<'_>, pair: &Pair, n: u32) -> Check<Duration> {
    const PACKETS: usize = 32;
    let (mark, first) = (nic.mark(), n * PACKETS as u32);
    nic.post(pair, Operation::Send, u64::from(n), (PACKETS * PATH_MTU.1) as u32)?;
    let got = nic.first(mark, PACKETS)?;
    must!(got.len() >= PACKETS, "{} of {PACKETS} packets come", got.len());
    nic.acknowledge(pair, pair.out_psn(first + PACKETS as u32 - 1), n + 1)?;
    Ok(got[PACKETS - 1].at.since(got[0].at))
}

/// The standard leaves the rate to the device; a reaction point of any scheme takes longer than before.
fn obeys(nic: &mut Nic<'_>) -> Check {
    const NOTICES: u32 = 50;
    let pair = nic.connect(Terms::default())?;
    let before: Check<Vec<Duration>> = (0..3).map(|n| message_time(nic, &pair, n)).collect();
    let before = before?.into_iter().max().unwrap_or(Duration::ZERO);
    for _ in 0..NOTICES {
        let bth = notification::bth(pair.number, 0xffff);
        let payload = vec![0; notification::BODY_LEN];
        nic.send(&super::Packet { bth, payload, ..pair.message(0) })?;
        let mark = nic.mark();
        nic.during(mark, Duration::from_us(200))?;
    }
    let behind = message_time(nic, &pair, 3)?;
    let in_us = |time: Duration| time.as_ps() / 1_000_000;
    let text = format!(
        "32 packets take at most {} us before, {} us behind {NOTICES} CNPs",
        in_us(before),
        in_us(behind)
    );
    must!(behind >= before * 2 && behind > nic.file.tolerance.quiet, "{text}");
    Ok(text)
}
