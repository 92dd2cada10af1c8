//! IBRX live: one switch and one NIC, each with many wrong packets in one run.

use super::cached::Cached;
use super::frames::{Packet, altered, damaged, length_of, with_length};
use super::neighbour::Voice;
use super::record::Record;
use super::stage::Stage;
use super::stimulus::{Expected, FIRST, Stimulus, finding, schedule};
use super::tester::Script;
use super::{ms, star, us};
use crate::case::{Failure, Finding, same};
use bytes::BytesMut;
use proto::counters::DropReason;
use proto::units::Instant;
use proto::wire::infiniband::crc;

/// Largest payload.
const MTU: usize = 2048;
/// Fewer words no packet has: LRH, BTH and ICRC. Source: IBTA Vol 1, 7.7.8 and 9.2.
const WORDS_MIN: u16 = 6;
/// On the device's far side there is a LID that nobody has.
const NOBODY: u16 = 99;
const GROUP: u16 = 0xc001;
const OTHER_GROUP: u16 = 0xc002;
const PERMISSIVE: u16 = 0xffff;

/// Two lanes; level 1 goes by lane 1, all others by lane 0. One class, RC.
const REST: &str = "\
sl2vl = [0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
[[fabric.multicast]]
at = \"s0\"
lid = 0xc001
ports = [1, 2, 3, 4]
[[traffic]]
name = \"the class\"
from = \"h2\"
to = \"h1\"
rate = \"1 Mbps\"
arrivals = \"paced\"
messages = 1
";

/// How long a run lasts.
const DURATION: (&str, Instant) = ("900 ms", ms(900));

static SWITCH: Cached<Record> = Cached::new(switch, |record| record.fidelity.ok);
static NIC: Cached<Record> = Cached::new(nic, |record| record.fidelity.ok);

fn switch() -> Result<Record, Failure> {
    let stage = Stage::new(&star(4, DURATION.0, "vls = 2", REST), "s0")?;
    let mut script = Script::default();
    training(&mut script, 4);
    schedule(&mut script, &at_switch());
    stage.run(script)
}

fn nic() -> Result<Record, Failure> {
    let stage = Stage::new(&star(4, DURATION.0, "vls = 2", REST), "h1")?;
    let mut script = Script::default();
    training(&mut script, 1);
    schedule(&mut script, &at_nic());
    stage.run(script)
}

/// The neighbour at `port` trains late, step by step, and tries to send data in each state.
fn training(script: &mut Script, port: u8) {
    script.at(Instant::ZERO, move |tester| tester.speak(port, Voice::Silent));
    script.at(STATES[1], move |tester| tester.speak(port, Voice::Initialize));
    script.at(STATES[2], move |tester| tester.speak(port, Voice::Normal));
    for (state, psn) in STATES.into_iter().zip(0..) {
        let to = if port == 1 { 1 } else { 2 };
        let from = if port == 1 { 2 } else { u16::from(port) };
        script.at(state + us(10_000), move |tester| {
            // In the first state it is refused, so the next one has the same number.
            let psn = u32::saturating_sub(psn, 1);
            tester.send(port, &Packet::new(from, to, psn).octets());
            tester.send(port, &management(PERMISSIVE));
        });
        if port != 1 {
            script.at(state + us(10_000), move |tester| {
                tester.send(1, &Packet::new(1, u16::from(port), psn).octets());
            });
        }
    }
}

/// Nobody has said a word; op 1 was heard; op 0 was heard.
const STATES: [Instant; 4] = [ms(20), ms(50), ms(80), ms(110)];

/// A subnet management packet: only its lane matters, and that it is not raw.
fn management(to: u16) -> BytesMut {
    Packet { lane: 15, ..Packet::new(1, to, 0) }.octets()
}

/// What a raw packet would look like on the management lane.
fn raw_management() -> BytesMut {
    let mut octets = damaged(management(PERMISSIVE), |octets| octets[1] &= 0xfc);
    crc::refresh_vcrc(&mut octets);
    octets
}

/// The same at both devices; `good` makes the next good packet, `wrong` one that must not pass.
fn at_both(good: impl Fn(Packet) -> Packet, passes: &Expected) -> Vec<Stimulus> {
    use DropReason::{Aborted, Icrc, Lane, Mtu, PacketLength, Vcrc};
    let lost = Expected::Lost;
    let plain = || good(Packet::new(2, 1, 0)).octets();
    let words = length_of(&plain());
    let mut all = vec![
        Stimulus::new("IBRX-01", "a good packet", plain(), passes.clone()),
        Stimulus::new("IBRX-01", "VCRC complemented", spoilt_vcrc(plain()), lost(Vcrc)),
        Stimulus::new("IBRX-08", "a good packet, given up", plain(), lost(Aborted)),
        Stimulus::new("IBRX-08", "the same with a bad VCRC", spoilt_vcrc(plain()), lost(Aborted)),
    ];
    all.iter_mut().skip(2).for_each(|stimulus| stimulus.aborted = true);
    for said in [words + 1, words - 1, 0, WORDS_MIN - 1, 0x7ff] {
        let what = format!("PktLen {said} of {words}");
        let octets = with_length(plain(), said);
        all.push(Stimulus::new("IBRX-03", what, octets, lost(PacketLength)));
    }
    let large = |payload| Packet { payload, ..good(Packet::new(2, 1, 0)) }.octets();
    all.push(Stimulus::new("IBRX-04", "payload of one MTU", large(MTU), passes.clone()));
    all.push(Stimulus::new("IBRX-04", "payload of MTU + 4", large(MTU + 4), lost(Mtu)));
    for lane in 2..15 {
        let octets = Packet { lane, ..good(Packet::new(2, 1, 0)) }.octets();
        all.push(Stimulus::new("IBRX-05", format!("VL{lane} of 2"), octets, lost(Lane)));
    }
    all.push(Stimulus::new("IBRX-05", "a raw packet on VL15", raw_management(), lost(Lane)));
    // Marked, so that a notification would be owed if it were taken.
    let marked = good(Packet { fecn: true, ..Packet::new(2, 1, 0) }).octets();
    let icrc = damaged(marked, |octets| {
        let at = octets.len() - 6;
        octets[at] ^= 0xff;
        crc::refresh_vcrc(octets);
    });
    let dies = if matches!(passes, Expected::Answered) { lost(Icrc) } else { passes.clone() };
    all.push(Stimulus::new("IBRX-02", "a bad ICRC under a good VCRC", icrc, dies));
    let permissive = management(PERMISSIVE);
    let ends = lost(DropReason::Management);
    all.push(Stimulus::new("IBRX-06", "the permissive LID on VL15", permissive, ends));
    all
}

fn spoilt_vcrc(octets: BytesMut) -> BytesMut {
    damaged(octets, |octets| octets.iter_mut().rev().take(2).for_each(|octet| *octet = !*octet))
}

/// All from h1 to h2.
fn at_switch() -> Vec<Stimulus> {
    let to = |from, to| move |packet| Packet { from, to, ..packet };
    let mut all = at_both(to(1, 2), &Expected::Left(vec![2], 0));
    let addressed = [
        (NOBODY, 0, Expected::Lost(DropReason::NoRoute)),
        (0, 0, Expected::Lost(DropReason::NoRoute)),
        (PERMISSIVE, 0, Expected::Lost(DropReason::NoRoute)),
        (OTHER_GROUP, 0, Expected::Lost(DropReason::NoMulticastRoute)),
        (0xfffe, 0, Expected::Lost(DropReason::NoMulticastRoute)),
        (GROUP, 0, Expected::Left(vec![2, 3, 4], 0)),
    ];
    for (dlid, lane, expected) in addressed {
        let octets = Packet { lane, ..Packet::new(1, dlid, 0) }.octets();
        all.push(Stimulus::new("IBRX-06", format!("DLID {dlid:#06x}"), octets, expected));
    }
    for (lane, level) in [(0, 1), (1, 0), (1, 1)] {
        let octets = Packet { lane, level, fecn: level == 1, ..Packet::new(1, 2, 0) }.octets();
        let what = format!("VL{lane} with SL{level}");
        all.push(Stimulus::new("IBRX-09", what, octets, Expected::Left(vec![2], level)));
    }
    all
}

/// All from h2 to h1, which expects their numbers in order: refused ones take none.
fn at_nic() -> Vec<Stimulus> {
    let mut all = at_both(|packet| packet, &Expected::Answered);
    for dlid in [3, 0, PERMISSIVE] {
        let expected = Expected::Lost(DropReason::NotForUs);
        let octets = Packet::new(2, dlid, 0).octets();
        all.push(Stimulus::new("IBRX-06", format!("DLID {dlid:#06x}"), octets, expected));
    }
    let octets = Packet::new(2, GROUP, 0).octets();
    all.push(Stimulus::new("IBRX-06", "a multicast LID", octets, Expected::Taken));
    let marked = Packet { fecn: true, lane: 1, level: 0, ..Packet::new(2, 1, 0) }.octets();
    all.push(Stimulus::new("IBRX-09", "marked, by a lane of its own", marked, Expected::Answered));
    // Three packets were taken while the link was trained.
    let mut psn = STATES.len() as u32 - 1;
    for stimulus in &mut all {
        let at = 8 + 12 - 3;
        let vcrc_holds = crc::verify_vcrc(&stimulus.octets).is_ok();
        let icrc_holds = crc::verify_icrc(&stimulus.octets).is_ok();
        let renumbered = |octets: &mut [u8]| {
            octets[at..at + 3].copy_from_slice(&psn.to_be_bytes()[1..]);
        };
        if vcrc_holds && icrc_holds {
            stimulus.octets = altered(stimulus.octets.clone(), renumbered);
        }
        psn += u32::from(matches!(stimulus.expected, Expected::Answered));
    }
    all
}

fn both(case: &'static str) -> Finding {
    let (at_switch, at_nic) = (at_switch(), at_nic());
    let (switch, nic) = (SWITCH.get()?, NIC.get()?);
    finding(case, &[("switchd", &at_switch, &switch), ("nicd", &at_nic, &nic)])
}

/// IBRX-01.
pub fn bad_vcrc() -> Finding {
    let seen = both("IBRX-01")?;
    let record = SWITCH.get()?;
    for (port, lane) in [(1, 0), (1, 1)] {
        let offers: Vec<u16> = record.flow_control(port, lane).map(|(_, told)| told.fccl).collect();
        let [first, .., last] = offers[..] else {
            return Err(Failure::Failed(format!("port {port} has said nothing of VL{lane}")));
        };
        let sent = record.neighbours[usize::from(port) - 1].lanes()[usize::from(lane)].sent;
        let room = (last + 4096 - sent) % 4096;
        same(format!("room offered on VL{lane} when all is quiet"), room, first)?;
    }
    Ok(format!("{seen}; all credit is back"))
}

/// IBRX-02.
pub fn bad_icrc() -> Finding {
    both("IBRX-02")
}

/// IBRX-03.
pub fn packet_length() -> Finding {
    both("IBRX-03")
}

/// IBRX-04.
pub fn mtu() -> Finding {
    both("IBRX-04")
}

/// IBRX-05.
pub fn lane() -> Finding {
    both("IBRX-05")
}

/// IBRX-06.
pub fn destination() -> Finding {
    both("IBRX-06")
}

/// IBRX-07.
pub fn link_state() -> Finding {
    let (switch, nic) = (SWITCH.get()?, NIC.get()?);
    for (device, record, port) in [("switchd", &switch, 4), ("nicd", &nic, 1)] {
        record.trusted()?;
        let lost = |index: usize| record.dropped(port, STATES[index], STATES[index] + us(30_000));
        let refused = [DropReason::LinkState, DropReason::Management];
        same(format!("{device} in Initialize"), names(&lost(0)), names(&refused))?;
        for (index, state) in [(1, "Arm"), (2, "Active"), (3, "Active")] {
            let only = [DropReason::Management];
            same(format!("{device} in {state}"), names(&lost(index)), names(&only))?;
        }
        let first = record.packets(port).map(|seen| seen.at).min();
        let early = first.is_none_or(|at| at < STATES[2]);
        same(format!("{device} sends data before Active"), early, false)?;
        let sent = record.packets(port).filter(|seen| seen.at < FIRST).count();
        let expected = if port == 1 { STATES.len() - 1 } else { STATES.len() };
        same(format!("what {device} sends once it is Active"), sent, expected)?;
    }
    Ok("switchd and nicd: data refused in Initialize, taken from Arm on, sent in Active; VL15 passes \
        in each"
        .to_owned())
}

fn names(reasons: &[DropReason]) -> String {
    reasons.iter().map(|reason| reason.name()).collect::<Vec<_>>().join(", ")
}

/// IBRX-08.
pub fn aborted() -> Finding {
    both("IBRX-08")
}

/// IBRX-09.
pub fn relabelled() -> Finding {
    let seen = both("IBRX-09")?;
    let marked = super::ibcc::marks_keep_icrc()?;
    Ok(format!("{seen}; {marked}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::stimulus::slot;

    #[test]
    fn every_stimulus_has_its_slot_before_the_run_is_over() {
        for count in [at_switch().len(), at_nic().len()] {
            assert!(slot(count + 5) < DURATION.1, "{count} stimuli");
        }
    }
}
