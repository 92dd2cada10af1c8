//! IBCC live, the switch: what it marks, with and without credit, and what it leaves alone.
//!
//! Ports 1 and 2 send twice what port 3 or 4 can take. Port 4 marks victims too.

pub mod nic;

use super::cached::Cached;
use super::frames::Packet;
use super::neighbour::OFFER_MAX;
use super::record::Record;
use super::stage::Stage;
use super::tester::{Script, Seen};
use super::{ms, star, us};
use crate::case::{Failure, Finding, ensure, same};
use proto::frame::{FrameClass, FrameHeaders, FrameKind};
use proto::units::Instant;
use proto::wire::classify::classify;
use proto::wire::infiniband::extended_headers::ExtendedHeaders;
use proto::wire::infiniband::{Aeth, Opcode, Syndrome, crc};

/// Packets shorter than this are not to be marked, in units of 64 octets.
const PACKET_SIZE: u64 = 8;
/// Credit for one full frame. Units: blocks.
const ONE_FRAME: u16 = 33;

static MARKS: Cached<Record> = Cached::new(marking, |record| record.fidelity.ok);
static MANY: Cached<Record> = Cached::new(many, |record| record.fidelity.ok);
static NEVER: Cached<Record> = Cached::new(never, |record| record.fidelity.ok);

fn scheme(threshold: u8) -> String {
    format!(
        "[scheme]\nkind = \"ib-cca\"\nthreshold = {threshold}\nmarking_rate = 0\n\
         packet_size = {PACKET_SIZE}\nvictim_mask = [4]\n"
    )
}

/// A marked packet passes a switch with nothing else to do.
const LONELY: Instant = ms(150);
/// Both sources send to port 3, which has credit.
const ROOT: (Instant, Instant) = (ms(200), ms(1_100));
/// Both send to ports 3 and 4, which get credit for a frame at a time, less than their lines take.
const VICTIM: (Instant, Instant) = (ms(1_200), ms(1_500));

fn lonely(script: &mut Script) {
    for (after, fecn) in [(0, true), (5_000, false)] {
        script.at(LONELY + us(after), move |tester| {
            let packet = Packet { fecn, payload: 2048, ..Packet::new(1, 3, after as u32) };
            tester.send(1, &packet.octets());
        });
    }
}

/// Small, large, acknowledgement, notification; large ones twice.
fn mixture(from: u16, psn: u32) -> Packet {
    let shape = Packet::new(from, 3, psn);
    let aeth = Aeth { syndrome: Syndrome::Ack { credits: 31 }, message_sequence_number: psn };
    match psn % 6 {
        0 => Packet { payload: 64, ..shape },
        1 => Packet {
            opcode: Opcode::RC_ACKNOWLEDGE,
            payload: 0,
            extended: ExtendedHeaders { aeth: Some(aeth), ..ExtendedHeaders::NONE },
            ..shape
        },
        2 => Packet { opcode: Opcode::CNP, payload: 16, ..shape },
        // On both sides of Packet_Size: 510 and 514 octets, LRH to VCRC.
        3 => Packet { payload: 484, ..shape },
        4 => Packet { payload: 488, ..shape },
        _ => Packet { payload: 2048, ..shape },
    }
}

fn overloaded(script: &mut Script, each: u32) {
    script.at(ROOT.0, move |tester| {
        for port in [1, 2] {
            (0..each).for_each(|psn| tester.enqueue(port, mixture(port.into(), psn).octets()));
        }
    });
}

fn marking() -> Result<Record, Failure> {
    let stage = Stage::new(&star(4, "1900 ms", "", &scheme(15)), "s0")?;
    let mut script = Script::default();
    lonely(&mut script);
    overloaded(&mut script, 800);
    script.at(VICTIM.0, |tester| {
        for port in [3, 4] {
            tester.credits(port).refresh = us(4_000);
            tester.offer(port, 0, ONE_FRAME);
        }
    });
    script.at(VICTIM.0 + us(5_000), |tester| {
        for (port, to) in [(1, 3), (2, 4)] {
            for psn in 0..150 {
                let packet = Packet { payload: 2048, ..Packet::new(port.into(), to, 10_000 + psn) };
                tester.enqueue(port, packet.octets());
            }
        }
    });
    script.at(VICTIM.1, |tester| [3, 4].iter().for_each(|port| tester.offer(*port, 0, OFFER_MAX)));
    stage.run(script)
}

/// Packets just long enough to be eligible, by each of two ports; and so many at once.
const EACH: u32 = 5_200;
const AT_ONCE: u32 = 100;

fn many() -> Result<Record, Failure> {
    let stage = Stage::new(&star(3, "4900 ms", "", &scheme(15)), "s0")?;
    let mut script = Script::default();
    for turn in 0..EACH / AT_ONCE {
        // Their lines take half as many in that time, so none runs dry.
        script.at(ROOT.0 + us(41_000) * u64::from(turn), move |tester| {
            for port in [1, 2] {
                for psn in AT_ONCE * turn..AT_ONCE * (turn + 1) {
                    let shape = Packet::new(port.into(), 3, psn);
                    tester.enqueue(port, Packet { payload: 488, ..shape }.octets());
                }
            }
        });
    }
    stage.run(script)
}

fn never() -> Result<Record, Failure> {
    let stage = Stage::new(&star(4, "500 ms", "", &scheme(0)), "s0")?;
    let mut script = Script::default();
    lonely(&mut script);
    overloaded(&mut script, 200);
    stage.run(script)
}

/// What the headers say of whatever left by `port` in `[from, to)`, in order.
fn left(record: &Record, port: u8, from: Instant, to: Instant) -> Vec<FrameHeaders> {
    let here = record.packets(port).filter(|seen| seen.at >= from && seen.at < to);
    let read = |seen: &Seen| classify(FrameKind::Infiniband, &seen.frame.octets).ok();
    here.filter_map(read).collect()
}

/// Of a queue that fills and drains, what leaves in between: `edge` packets at each end left out.
fn in_the_middle(all: &[FrameHeaders], edge: usize) -> Result<&[FrameHeaders], Failure> {
    all.get(edge..all.len().saturating_sub(edge))
        .filter(|middle| middle.len() > edge)
        .ok_or_else(|| Failure::Failed(format!("only {} packets have left", all.len())))
}

type IsOfKind = fn(&FrameHeaders) -> bool;

fn is_eligible(headers: &FrameHeaders) -> bool {
    headers.class == FrameClass::Data && headers.size.get() >= PACKET_SIZE * 64
}

/// IBCC-01.
pub fn threshold_zero() -> Finding {
    let record = NEVER.get()?;
    let record = record.trusted()?;
    let all = left(record, 3, ROOT.0, Instant::NEVER);
    let marked = all.iter().filter(|headers| headers.fecn).count();
    ensure(all.len() > 200, || format!("only {} packets have left", all.len()))?;
    same("packets marked at threshold 0", marked, 0)?;
    Ok(format!("twice the line's load: 0 of {} packets marked", all.len()))
}

/// IBCC-03.
pub fn root_not_victim() -> Finding {
    let record = MARKS.get()?;
    let record = record.trusted()?;
    let with_credit = left(record, 3, ROOT.0, ROOT.1);
    let root = in_the_middle(&with_credit, 60)?;
    let eligible = root.iter().filter(|headers| is_eligible(headers)).count();
    let marked = root.iter().filter(|headers| headers.fecn).count();
    same("eligible packets marked at a root", marked, eligible)?;
    let mut seen = vec![format!("with credit {marked} of {eligible} eligible marked")];
    for (port, mask) in [(3, "without"), (4, "with")] {
        let held = left(record, port, VICTIM.0 + us(20_000), VICTIM.1);
        let held = in_the_middle(&held, 5)?;
        let marked = held.iter().filter(|headers| headers.fecn).count();
        let expected = if port == 4 { held.len() } else { 0 };
        same(format!("victims marked {mask} the mask"), marked, expected)?;
        let of = held.len();
        seen.push(format!("victims {mask} the Victim_Mask bit: {marked} of {of}"));
    }
    Ok(seen.join("; "))
}

/// IBCC-04.
pub fn packet_size() -> Finding {
    let record = MARKS.get()?;
    let record = record.trusted()?;
    let all = left(record, 3, ROOT.0, ROOT.1);
    let middle = in_the_middle(&all, 60)?;
    let of = |wanted: IsOfKind| {
        let those = middle.iter().filter(move |headers| wanted(headers));
        (those.clone().filter(|headers| headers.fecn).count(), those.count())
    };
    let kinds: [(&str, IsOfKind, bool); 5] = [
        ("acknowledgements", |h| h.class == FrameClass::Ack, false),
        ("notifications", |h| h.class == FrameClass::Notification, false),
        ("data of 90 and 510 octets", |h| h.class == FrameClass::Data && !is_eligible(h), false),
        ("data of 514 octets", |h| h.size.get() == 514, true),
        ("full frames", |h| h.size.get() == 2074, true),
    ];
    let mut seen = Vec::new();
    for (what, wanted, is_marked) in kinds {
        let (marked, count) = of(wanted);
        ensure(count > 20, || format!("only {count} {what}"))?;
        same(format!("{what} marked"), marked, if is_marked { count } else { 0 })?;
        seen.push(format!("{what} {marked} of {count}"));
    }
    Ok(seen.join(", "))
}

/// IBCC-05.
pub fn never_cleared() -> Finding {
    for (cached, what) in [(&NEVER, "threshold 0"), (&MARKS, "threshold 15")] {
        let record = cached.get()?;
        let passed = left(record.trusted()?, 3, LONELY, ROOT.0);
        let fecn: Vec<bool> = passed.iter().map(|headers| headers.fecn).collect();
        ensure(fecn == [true, false], || format!("{what}: FECN leaves as {fecn:?}"))?;
    }
    Ok("uncongested, thresholds 0 and 15: FECN stays set, and stays clear".to_owned())
}

/// IBCC-11.
pub fn every_eligible_packet() -> Finding {
    const ELIGIBLE: usize = 10_000;
    let record = MANY.get()?;
    let record = record.trusted()?;
    let all = left(record, 3, ROOT.0, Instant::NEVER);
    let eligible = in_the_middle(&all, 120)?;
    ensure(eligible.len() >= ELIGIBLE, || format!("only {} packets have left", all.len()))?;
    ensure(eligible.iter().all(is_eligible), || "a packet is too short".to_owned())?;
    let marked = eligible.iter().filter(|headers| headers.fecn).count();
    same("marked", marked, eligible.len())?;
    let counted: u64 = record.port(3).lanes.iter().map(|lane| lane.counters.marks).sum();
    let fecn = left(record, 3, ROOT.0, Instant::NEVER).iter().filter(|h| h.fecn).count();
    same("marks counted", counted, fecn as u64)?;
    Ok(format!("{marked} of {} eligible packets over the threshold marked", eligible.len()))
}

/// The part of IBRX-09 that needs congestion: a mark changes the VCRC and nothing else.
///
/// # Errors
/// The first marked packet whose CRCs do not hold.
pub fn marks_keep_icrc() -> Finding {
    let record = MARKS.get()?;
    let record = record.trusted()?;
    let marked = record.packets(3).filter(|seen| {
        classify(FrameKind::Infiniband, &seen.frame.octets).is_ok_and(|headers| headers.fecn)
    });
    let mut count = 0;
    for seen in marked {
        let octets = &seen.frame.octets;
        crc::verify_vcrc(octets)
            .and_then(|()| crc::verify_icrc(octets))
            .map_err(|error| Failure::Failed(format!("a marked packet: {error}")))?;
        count += 1;
    }
    Ok(format!("{count} marked packets keep both CRCs"))
}
