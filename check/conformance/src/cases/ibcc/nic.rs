//! IBCC, the NIC: what it returns for a mark, and how it paces its packets.

use super::{pacing, returns};
use crate::ethernet::RATE;
use crate::prelude::*;
use crate::star::star;
use crate::stimulus::slot;
use proto::wire::infiniband::{Aeth, Deth, ExtendedHeaders, Opcode, Packet as Parsed, Syndrome};
use testbed::frames::infiniband::Packet;

/// The Q_Key of all datagram queue pairs of this project's adapters.
const QUEUE_KEY: u32 = 0x0070_6264;
/// Connection classes, in the order of the traffic below; RC is the first.
const UC: u8 = 1;
const UD: u8 = 2;
/// The service level of UD, and the lane it has here.
const UD_LEVEL: (u8, u8) = (3, 1);
const GROUP: u16 = 0xc001;
/// Time of a full frame of 2 KiB, and of a packet of 256 octets, at 10 Mb/s.
const FULL: Duration = Duration::from_ns(2_074 * 800);
const SMALL: Duration = Duration::from_ns(282 * 800);

static BY_QUEUE_PAIR: Shared<Record> = Shared::new(|on| paced(on, "queue-pair"));
static BY_LEVEL: Shared<Record> = Shared::new(|on| paced(on, "service-level"));

/// One message somewhere else, for the sake of its connection class.
fn class(name: &str, keys: &str) -> String {
    let once = "arrivals = \"paced\"\nrate = \"1 Mbps\"\nmessages = 1";
    traffic(name, "h2", "h1", &format!("{once}\n{keys}"))
}

/// Marked and unmarked packets of every kind that can carry a mark.
const ROUNDS: usize = 8;

struct Mark {
    case: &'static str,
    what: &'static str,
    octets: BytesMut,
    expected: Answer,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    Nothing,
    Ack {
        becn: bool,
    },
    /// A CN to the queue pair of this class, on this level and lane.
    Notification {
        class: u8,
        level: u8,
        lane: u8,
    },
}

fn marks() -> Vec<Mark> {
    let source = QueuePairNumber::planned(UD, Lid::new(1));
    let deth = Some(Deth { queue_key: QUEUE_KEY, reserved8: 0, source });
    let aeth = Aeth { syndrome: Syndrome::Ack { credits: 31 }, message_sequence_number: 0 };
    let extended = |deth, aeth| ExtendedHeaders { deth, aeth, ..ExtendedHeaders::NONE };
    let mut all = Vec::new();
    for round in 0..ROUNDS as u32 {
        let fecn = round % 2 == 0;
        let plain = Packet { fecn, ..Packet::new(2, 1, round) };
        let uc = Packet { class: UC, opcode: Opcode::UC_SEND_ONLY, ..plain };
        let ud = Packet {
            class: UD,
            opcode: Opcode::UD_SEND_ONLY,
            level: UD_LEVEL.0,
            lane: UD_LEVEL.1,
            extended: extended(deth, None),
            ..plain
        };
        let note = |class, level, lane| match fecn {
            true => Answer::Notification { class, level, lane },
            false => Answer::Nothing,
        };
        let mut add = |case, what, packet: Packet, expected| {
            all.push(Mark { case, what, octets: packet.octets(), expected });
        };
        add("IBCC-06", "RC data", plain, Answer::Ack { becn: fecn });
        add("IBCC-07", "UC data", uc, note(UC, 0, 0));
        add("IBCC-07", "UD data", ud, note(UD, UD_LEVEL.0, UD_LEVEL.1));
        let acknowledgement = Packet {
            opcode: Opcode::RC_ACKNOWLEDGE,
            payload: 0,
            fecn: true,
            extended: extended(None, Some(aeth)),
            ..plain
        };
        let notification = Packet { opcode: Opcode::CNP, payload: 16, fecn: true, ..uc };
        let multicast = Packet { to: GROUP, fecn: true, ..ud };
        add("IBCC-08", "an acknowledgement", acknowledgement, Answer::Nothing);
        add("IBCC-08", "a CN", notification, Answer::Nothing);
        add("IBCC-08", "a multicast packet", multicast, Answer::Nothing);
    }
    all
}

static ANSWERS: Shared<Record> = Shared::new(|on| {
    let rest = [
        "sl2vl = [0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]\n".to_owned(),
        "[scheme]\nkind = \"ib-cca\"\n".to_owned(),
        class("rc", "transport = \"rc\""),
        class("uc", "transport = \"uc\""),
        class("ud", "transport = \"ud\"\nsl = 3"),
    ]
    .concat();
    play(on, &star(2, "600 ms", "vls = 2", &rest), "h1", |script| {
        for (index, mark) in marks().into_iter().enumerate() {
            script.at(slot(index), move |bed| bed.send(1, &mark.octets));
        }
    })
});

fn answered(on: Level, case: &str) -> Finding {
    let record = ANSWERS.on(on)?;
    let mut counts = (0, 0);
    for (index, mark) in marks().iter().enumerate().filter(|(_, mark)| mark.case == case) {
        let (from, to) = (slot(index), slot(index + 1));
        let here = record.packets(1).filter(|seen| seen.at >= from && seen.at < to);
        let found = here.map(read).collect::<Result<Vec<_>>>()?;
        let expected = match mark.expected {
            Answer::Nothing => Vec::new(),
            answer => vec![answer],
        };
        ensure!(found == expected, "{} in slot {index}: {found:?}", mark.what);
        counts.0 += 1;
        counts.1 += found.iter().filter(|answer| **answer != Answer::Ack { becn: false }).count();
    }
    Ok(format!("{} packets, {} returns, each as expected", counts.0, counts.1))
}

fn read(seen: &Seen) -> Result<Answer> {
    let packet = Parsed::parse(&seen.frame.octets)?;
    let bth = packet.bth.ok_or("a raw packet")?;
    match bth.opcode {
        Opcode::RC_ACKNOWLEDGE => Ok(Answer::Ack { becn: bth.becn }),
        Opcode::CNP => {
            same("LID to which the CN goes", packet.lrh.dlid.get(), 2)?;
            same("BECN of the CN", bth.becn, true)?;
            let (class, peer) = bth.destination.plan().ok_or("no such pair")?;
            same("peer whose queue pair the CN goes to", peer.get(), 1)?;
            let (level, lane) = (packet.lrh.service_level.get(), packet.lrh.virtual_lane.get());
            Ok(Answer::Notification { class, level, lane })
        }
        other => Err(Failure::Failed(format!("answered by {other}"))),
    }
}

/// IBCC-06.
pub fn on_acknowledgements(on: Level) -> Finding {
    let seen = answered(on, "IBCC-06")?;
    Ok(seen + on.only_engine(returns::coalesced)?)
}

/// IBCC-07.
pub fn as_notifications(on: Level) -> Finding {
    let seen = answered(on, "IBCC-07")?;
    Ok(seen + on.only_engine(returns::field_by_field)?)
}

/// IBCC-08.
pub fn no_answer(on: Level) -> Finding {
    // Every mark is counted, that on a packet which is never answered too.
    let marks = marks();
    let marked = marks.iter().filter(|mark| mark.octets[12] & 0x80 != 0).count() as u64;
    same("marks counted", ANSWERS.on(on)?.named(1, "port_rcv_fecn"), marked)?;
    answered(on, "IBCC-08")
}

/// Entries of the table: none, half of a packet time three times, twice, and fifteen whole ones.
const TABLE: [u32; 4] = [0, 1 << 14 | 3, 1 << 14 | 4, 15];
/// One flow of full frames at index 1.
const LARGE_ALONE: (Instant, Instant) = (ms(300), ms(4_600));
/// One flow of small packets at index 1.
const SMALL_ALONE: (Instant, Instant) = (ms(4_700), ms(5_400));
/// Two flows of full frames on one level; one of them goes to index 3.
const TOGETHER: (Instant, Instant) = (ms(5_500), ms(6_000));
/// When the notifications reach the flows.
const NOTIFIED: [Instant; 4] = [ms(310), ms(4_710), ms(5_510), ms(5_520)];

fn paced(on: Level, scope: &str) -> Result<Record> {
    let flow = |name: &str, to: &str, size: u32, (from, stop): (Instant, Instant)| {
        let ms = |at: Instant| at.as_ps() / 1_000_000_000;
        let keys = format!(
            "arrivals = \"backlog\"\ntransport = \"uc\"\nsize = \"{size} B\"\n\
             start = \"{} ms\"\nstop = \"{} ms\"",
            ms(from),
            ms(stop)
        );
        traffic(name, "h1", to, &keys)
    };
    let rest = [
        format!(
            "[scheme]\nkind = \"ib-cca\"\nscope = \"{scope}\"\nccti_increase = 1\n\
             ccti_limit = 3\nccti_timer = 0\ntrigger_threshold = 3\ncct = {TABLE:?}\n"
        ),
        flow("large", "h2", 2048, LARGE_ALONE),
        flow("small", "h3", 256, SMALL_ALONE),
        flow("told", "h2", 2048, TOGETHER),
        flow("beside", "h4", 2048, TOGETHER),
    ]
    .concat();
    play(on, &star(4, "6050 ms", "", &rest), "h1", |script| {
        for (at, from) in NOTIFIED.into_iter().zip([2, 3, 2, 2]) {
            script.at(at, move |bed| {
                bed.send(1, &Packet::cnp(from, 1).octets());
            });
        }
    })
}

/// When packets for LID `to` left, in `[from, to)` without the first moments, in order.
fn departures(record: &Record, lid: u16, (from, stop): (Instant, Instant)) -> Vec<Instant> {
    let begin = from + us(60_000);
    let here = record.packets(1).filter(|seen| seen.at >= begin && seen.at < stop);
    let is_for = |seen: &&Seen| {
        Parsed::parse(&seen.frame.octets).is_ok_and(|packet| packet.lrh.dlid.get() == lid)
    };
    here.filter(is_for).map(|seen| seen.at).collect()
}

/// The fewest gaps whose mean is judged.
const GAPS: usize = 1_000;

/// IBCC-12.
pub fn packet_delay(on: Level) -> Finding {
    let record = BY_QUEUE_PAIR.on(on)?;
    let late = record.late().as_ps();
    let mut seen = Vec::new();
    for (what, lid, window, time) in
        [("2 KiB", 2, LARGE_ALONE, FULL), ("256 B", 3, SMALL_ALONE, SMALL)]
    {
        let at = departures(&record, lid, window);
        ensure!(at.len() > GAPS, "{what}: only {} packets", at.len());
        let span = at[at.len() - 1].since(at[0]).as_ps();
        let gap = span / (at.len() as u64 - 1) - time.as_ps();
        let expected = (time.as_ps() >> 1) * 3;
        let tolerance = if on == Level::Live { expected / 20 + 2 * late } else { 0 };
        near(format!("{what}: ps of a mean gap"), gap, expected, tolerance)?;
        let (us, due) = (gap / 1_000_000, expected / 1_000_000);
        seen.push(format!(
            "{what}: mean of {} gaps {us} µs, (packet time >> 1) × 3 = {due} µs",
            at.len() - 1
        ));
    }
    if on == Level::Engine {
        seen.push(pacing::every_gap()?);
    }
    Ok(seen.join("; "))
}

/// IBCC-14.
pub fn scope(on: Level) -> Finding {
    let window = TOGETHER;
    let most = (window.1.since(window.0 + us(60_000)).as_ps() / FULL.as_ps()) as usize;
    let [pair, level] = [BY_QUEUE_PAIR.on(on)?, BY_LEVEL.on(on)?];
    let count = |record: &Record, lid| departures(record, lid, window).len();
    let [(slowed, beside), (slowed_too, both)] =
        [(count(&pair, 2), count(&pair, 4)), (count(&level, 2), count(&level, 4))];
    // Fifteen packet times after each packet leave a sixteenth of the line.
    let slow = most / 16;
    near(format!("packets of the slowed flow, of {most}"), slowed, slow, 2)?;
    ensure!(beside * 100 >= (most - slowed) * 95, "the other flow sent {beside} of {most}");
    let sum = slowed_too + both;
    ensure!(sum <= slow + 2 && sum + 2 >= slow, "both flows sent {sum} of {most}, not {slow}");
    if on == Level::Engine {
        // Exactly so: the line is never idle by queue pair, and every gap is fifteen packet times by level.
        let here = |record: &Record| -> Vec<_> {
            let (from, to) = (window.0 + us(60_000), window.1);
            record.line(1).filter(|seen| seen.at >= from && seen.at < to).cloned().collect()
        };
        let [pair, level] = [here(&pair), here(&level)];
        OnLine::never_idle(&OnLine::all(pair.iter(), RATE))?;
        OnLine::paced(&OnLine::all(level.iter(), RATE), |_| FULL * 15)?;
    }
    Ok(format!("of {most}: {slowed} and {beside} by queue pair; {slowed_too} and {both} by level"))
}

/// IBCC-15.
pub fn trigger(on: Level) -> Finding {
    let record = BY_QUEUE_PAIR.on(on)?;
    let crossed: Vec<_> = record
        .events(1, ALWAYS)
        .filter_map(|event| match event.kind {
            EventKind::Trigger { flow, qp, sl, ccti } => Some((event.at, flow, qp, sl, ccti)),
            _ => None,
        })
        .collect();
    same("log entries", crossed.len(), 1)?;
    same("counter rp_trigger_events", record.named(1, "rp_trigger_events"), 1)?;
    let (at, flow, qp, sl, ccti) = crossed[0];
    same("QPN of the entry", qp, QueuePairNumber::planned(0, Lid::new(2)))?;
    same("SL of the entry", sl.get(), 0)?;
    same("index of the entry", ccti, 3)?;
    same("remote LID of the entry", flow.destination, 2)?;
    ensure!(at >= NOTIFIED[3] && at < NOTIFIED[3] + us(2_000), "logged at {at}");
    let again = on.only_engine(pacing::second_crossing)?;
    Ok("index 1, 2, 3 at threshold 3: one entry, at the third notification, and counted once"
        .to_owned()
        + again)
}
