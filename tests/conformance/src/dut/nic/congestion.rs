//! CNP: notifications of RoCEv2, sent and obeyed.

use super::pair::{Pair, Terms};
use super::{Got, Nic, Scripts};
use crate::dut::verdict::{Check, Fault, must};
use proto::ids::Ecn;
use proto::units::Duration;
use proto::wire::infiniband::Opcode;
use proto::wire::roce::checks::verify_icrc;
use proto::wire::roce::notification;

pub(super) const SCRIPTS: Scripts = &[
    ("CNP-01", answers_marks),
    ("CNP-02", names_pair),
    ("CNP-03", not_each),
    ("CNP-04", no_mark_no_notice),
    ("CNP-05", layout),
    ("CNP-06", takes),
    ("CNP-07", delivers_marked),
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
