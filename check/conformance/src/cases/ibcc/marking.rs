//! IBCC, the switch: what it marks, with and without credit, and what it leaves alone.
//!
//! Ports 1 and 2 send twice what port 3 or 4 can take. Port 4 marks victims too.

use super::account;
use crate::prelude::*;
use crate::star::star;
use crate::stimulus::{Expected, Stimulus, finding, schedule};
use proto::frame::{FrameClass, FrameHeaders};
use proto::wire::infiniband::{
    Aeth, ExtendedHeaders, Opcode, Packet as Parsed, Syndrome, crc, set_fecn,
};
use testbed::frames::infiniband::Packet;

/// Packets shorter than this are not to be marked, in units of 64 octets.
const PACKET_SIZE: u64 = 8;
/// Credit for one full frame. Units: blocks.
const ONE_FRAME: u16 = 33;

static MARKS: Shared<Record> = Shared::new(|on| marking(on, PACKET_SIZE));
static QUIET: [Shared<Record>; 2] =
    [Shared::new(|on| uncongested(on, 0)), Shared::new(|on| uncongested(on, 1))];

fn scheme(threshold: u8, packet_size: u64) -> String {
    format!(
        "[scheme]\nkind = \"ib-cca\"\nthreshold = {threshold}\nmarking_rate = 0\n\
         packet_size = {packet_size}\nvictim_mask = [4]\n"
    )
}

/// Both sources send to port 3, which has credit.
const ROOT: (Instant, Instant) = (ms(200), ms(1_100));
/// Both send to ports 3 and 4, which get credit for a frame at a time, less than their lines take.
const VICTIM: (Instant, Instant) = (ms(1_200), ms(1_500));

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
    script.at(ROOT.0, move |bed| {
        for port in [1, 2] {
            (0..each).for_each(|psn| bed.enqueue(port, mixture(port.into(), psn).octets()));
        }
    });
}

fn marking(on: Level, packet_size: u64) -> Result<Record> {
    play(on, &star(4, "1900 ms", "", &scheme(15, packet_size)), "s0", |script| {
        overloaded(script, 800);
        script.at(VICTIM.0, |bed| {
            for port in [3, 4] {
                bed.credits(port).refresh = us(4_000);
                bed.offer(port, 0, ONE_FRAME);
            }
        });
        script.at(VICTIM.0 + us(5_000), |bed| {
            for (port, to) in [(1, 3), (2, 4)] {
                for psn in 0..150 {
                    let packet =
                        Packet { payload: 2048, ..Packet::new(port.into(), to, 10_000 + psn) };
                    bed.enqueue(port, packet.octets());
                }
            }
        });
        script.at(VICTIM.1, |bed| [3, 4].iter().for_each(|port| bed.offer(*port, 0, OFFER_MAX)));
    })
}

/// Packets just long enough to be eligible, by each of two ports; and so many at once.
const EACH: u32 = 5_200;
const AT_ONCE: u32 = 100;

static MANY: Shared<Record> = Shared::new(|on| {
    play(on, &star(3, "4900 ms", "", &scheme(15, PACKET_SIZE)), "s0", |script| {
        // Their lines take half as many in that time, so none runs dry.
        script.every(ROOT.0, us(41_000), u64::from(EACH / AT_ONCE), |bed, turn| {
            for port in [1, 2] {
                for psn in (AT_ONCE * turn as u32..).take(AT_ONCE as usize) {
                    let shape = Packet::new(port.into(), 3, psn);
                    bed.enqueue(port, Packet { payload: 488, ..shape }.octets());
                }
            }
        });
    })
});

static NEVER: Shared<Record> = Shared::new(|on| {
    play(on, &star(4, "500 ms", "", &scheme(0, PACKET_SIZE)), "s0", |script| {
        overloaded(script, 200);
    })
});

/// What the headers say of whatever left by `port` in `[from, to)`, in order.
fn left(record: &Record, port: u8, from: Instant, to: Instant) -> Vec<FrameHeaders> {
    let read = |seen: &Seen| classify(FrameKind::Infiniband, &seen.frame.octets).ok();
    record.packets(port).within((from, to)).filter_map(read).collect()
}

/// Of a queue that fills and drains, what leaves in between: `edge` packets at each end left out.
fn in_the_middle(all: &[FrameHeaders], edge: usize) -> Result<&[FrameHeaders]> {
    all.get(edge..all.len().saturating_sub(edge))
        .filter(|middle| middle.len() > edge)
        .ok_or_else(|| Failure::Failed(format!("only {} packets have left", all.len())))
}

type IsOfKind = fn(&FrameHeaders) -> bool;

fn is_eligible(headers: &FrameHeaders) -> bool {
    headers.class == FrameClass::Data && headers.size.get() >= PACKET_SIZE * 64
}

/// IBCC-01.
pub fn threshold_zero(on: Level) -> Finding {
    let record = NEVER.on(on)?;
    let all = left(&record, 3, ROOT.0, Instant::NEVER);
    let marked = all.iter().filter(|headers| headers.fecn).count();
    ensure!(all.len() > 200, "only {} packets have left", all.len());
    same("packets marked at threshold 0", marked, 0)?;
    let control = left(&*MARKS.on(on)?, 3, ROOT.0, ROOT.1);
    let control = control.iter().filter(|headers| headers.fecn).count();
    ensure!(control > 0, "the same load marks nothing at threshold 15 either");
    Ok(format!("twice the line's load: 0 of {} packets marked", all.len()))
}

/// IBCC-03.
pub fn root_not_victim(on: Level) -> Finding {
    let record = MARKS.on(on)?;
    let with_credit = left(&record, 3, ROOT.0, ROOT.1);
    let root = in_the_middle(&with_credit, 60)?;
    let eligible = root.iter().filter(|headers| is_eligible(headers)).count();
    let marked = root.iter().filter(|headers| headers.fecn).count();
    same("eligible packets marked at a root", marked, eligible)?;
    let mut seen = vec![format!("with credit {marked} of {eligible} eligible marked")];
    for (port, mask) in [(3, "without"), (4, "with")] {
        let held = left(&record, port, VICTIM.0 + us(20_000), VICTIM.1);
        let held = in_the_middle(&held, 5)?;
        let marked = held.iter().filter(|headers| headers.fecn).count();
        let expected = if port == 4 { held.len() } else { 0 };
        same(format!("victims marked {mask} the mask"), marked, expected)?;
        let of = held.len();
        seen.push(format!("victims {mask} the Victim_Mask bit: {marked} of {of}"));
    }
    if on == Level::Engine {
        seen.push(account::root_and_victim()?);
    }
    Ok(seen.join("; "))
}

/// IBCC-04.
pub fn packet_size(on: Level) -> Finding {
    let seen = sizes(&*MARKS.on(on)?, PACKET_SIZE)?;
    on.only_engine(|| sizes(&marking(on, 0)?, 0))?;
    Ok(seen)
}

fn sizes(record: &Record, packet_size: u64) -> Finding {
    let all = left(record, 3, ROOT.0, ROOT.1);
    let middle = in_the_middle(&all, 60)?;
    let of = |wanted: IsOfKind| {
        let those = middle.iter().filter(move |headers| wanted(headers));
        (those.clone().filter(|headers| headers.fecn).count(), those.count())
    };
    let kinds: [(&str, IsOfKind, bool); 5] = [
        ("acknowledgements", |h| h.class == FrameClass::Ack, false),
        ("notifications", |h| h.class == FrameClass::Notification, false),
        (
            "data of 90 and 510 octets",
            |h| h.class == FrameClass::Data && !is_eligible(h),
            packet_size == 0,
        ),
        ("data of 514 octets", |h| h.size.get() == 514, true),
        ("full frames", |h| h.size.get() == 2074, true),
    ];
    let mut seen = Vec::new();
    for (what, wanted, is_marked) in kinds {
        let (marked, count) = of(wanted);
        ensure!(count > 20, "only {count} {what}");
        same(format!("{what} marked"), marked, if is_marked { count } else { 0 })?;
        seen.push(format!("{what} {marked} of {count}"));
    }
    Ok(seen.join(", "))
}

/// What carries FECN through a switch that has nothing else to do, from a lane that stays and from one that
/// changes.
///
/// Live without the short ones: a daemon learns of their departure too late to be on time.
fn passing(on: Level) -> Vec<Stimulus> {
    let aeth = Some(Aeth { syndrome: Syndrome::Ack { credits: 31 }, message_sequence_number: 1 });
    let data = Packet { fecn: true, ..Packet::new(1, 2, 0) };
    let extended = ExtendedHeaders { aeth, ..ExtendedHeaders::NONE };
    let kinds = [
        ("data", data, vec![2]),
        ("ACK", Packet { opcode: Opcode::RC_ACKNOWLEDGE, payload: 0, extended, ..data }, vec![2]),
        ("CN", Packet { opcode: Opcode::CNP, payload: 16, ..data }, vec![2]),
        ("multicast", Packet { to: 0xc001, ..data }, vec![2, 3]),
        ("data without FECN", Packet { fecn: false, ..data }, vec![2]),
    ];
    let mut all = Vec::new();
    let long = |packet: &Packet| on != Level::Live || packet.payload >= 1_024;
    for (what, packet, ports) in kinds.into_iter().filter(|(_, packet, _)| long(packet)) {
        for lane in [0, 1] {
            let octets = Packet { lane, ..packet }.octets();
            let what = format!("{what} from lane {lane}");
            all.push(Stimulus::new("IBCC-05", what, octets, Expected::Left(ports.clone(), 0)));
        }
    }
    all
}

fn uncongested(on: Level, threshold: u8) -> Result<Record> {
    let rest = "sl2vl = [0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]\n\
                [[fabric.multicast]]\nat = \"s0\"\nlid = 0xc001\nports = [1, 2, 3]\n"
        .to_owned();
    let text = star(4, "300 ms", "vls = 2", &(rest + &scheme(threshold, 0)));
    play(on, &text, "s0", |script| schedule(script, &passing(on)))
}

/// IBCC-05.
pub fn never_cleared(on: Level) -> Finding {
    for (shared, threshold) in QUIET.iter().zip([0, 1]) {
        let record = shared.on(on)?;
        finding("IBCC-05", &[(&format!("threshold {threshold}"), &passing(on), &record)])?;
    }
    Ok("data, ACK, CN and multicast keep FECN, also where the lane and with it the VCRC changes"
        .into())
}

/// IBCC-11.
pub fn every_eligible_packet(on: Level) -> Finding {
    const ELIGIBLE: usize = 10_000;
    let record = MANY.on(on)?;
    let all = left(&record, 3, ROOT.0, Instant::NEVER);
    let eligible = in_the_middle(&all, 120)?;
    ensure!(eligible.len() >= ELIGIBLE, "only {} packets have left", all.len());
    ensure!(eligible.iter().all(is_eligible), "a packet is too short");
    let marked = eligible.iter().filter(|headers| headers.fecn).count();
    same("marked", marked, eligible.len())?;
    let counted: u64 = record.port(3).lanes.iter().map(|lane| lane.counters.marks).sum();
    let fecn = left(&record, 3, ROOT.0, Instant::NEVER).iter().filter(|h| h.fecn).count();
    same("marks counted", counted, fecn as u64)?;
    Ok(format!("{marked} of {} eligible packets over the threshold marked", eligible.len()))
}

/// The part of IBRX-09 that needs congestion: a mark changes FECN and the VCRC, and nothing else.
///
/// # Errors
/// The first marked packet that was changed otherwise.
pub fn marks_keep_icrc(on: Level) -> Finding {
    let record = MARKS.on(on)?;
    let mut count = 0;
    for seen in record.packets(3).within(ROOT) {
        let packet = Parsed::parse(&seen.frame.octets)?;
        let bth = packet.bth.ok_or("a raw packet")?;
        if bth.fecn {
            let mut sent = mixture(packet.lrh.slid.get(), bth.psn.get()).octets();
            set_fecn(&mut sent);
            crc::refresh_vcrc(&mut sent);
            let unchanged = seen.frame.octets == sent;
            ensure!(unchanged, "marked packet {} leaves changed otherwise", bth.psn);
            count += 1;
        }
    }
    Ok(format!("{count} marked packets keep all but FECN and VCRC"))
}
