//! PFCWD live: queues that are paused for ever, at a switch that looks every 10 ms; and a ring whose
//! buffers wait in a circle ([`ring`]).
//!
//! ```text
//!   port 1 ─▶ 2       a short storm           6 ─▶ 7 … 10   twenty storms
//!        3 ─▶ 4       a long one              12            a pause of an empty queue
//!        3 ─▶ 5       beside it              13 ─▶ 14       a frame gets out now and then
//! ```

pub mod link;
pub mod ring;

use super::cached::Cached;
use super::ethernet::{
    CONTROL_TIME, DELAY, FRAME_TIME, HEADROOM_FRAMES, LONG, LOSSLESS, SHARED_FRAMES, memory, star,
};
use super::record::Record;
use super::stage::Stage;
use super::tester::{Script, Tester};
use super::{in_ms, ms, us};
use crate::bench::packets::ethernet::data;
use crate::case::{Failure, Finding, ensure, same};
use proto::events::EventKind;
use proto::units::{Duration, Instant};

/// How long a queue must stand, and how long it must be quiet.
const DETECTION: Duration = us(40_000);
/// How often the watchdog looks.
const POLL: Duration = us(10_000);

static DROP: Cached<Record> = Cached::new(dropping_run, |record| record.fidelity.ok);
static FORWARD: Cached<Record> = Cached::new(forwarding_run, |record| record.fidelity.ok);

/// A star whose switch s0 is watched.
fn guarded(nics: u8, duration: &str, action: &str) -> String {
    let guard = format!(
        ", watchdog = {{ detection = \"40 ms\", restoration = \"40 ms\", poll = \"10 ms\", \
         action = \"{action}\" }}"
    );
    star(nics, duration, "", &memory((SHARED_FRAMES, HEADROOM_FRAMES), &guard, ""))
}

fn feed(tester: &mut Tester, (from, to): (u8, u8), priority: u8, count: u64) {
    for psn in 0..count {
        tester.send_frame(from, &data(from.into(), to.into(), priority, psn as u32));
    }
}

/// The neighbour at `port` pauses the lossless priority from the one instant to the other.
fn storm(script: &mut Script, port: u8, (from, to): (Instant, Instant)) {
    script.at(from, move |tester| tester.pfc(port, 1 << LOSSLESS, LONG));
    script.at(to, move |tester| tester.pfc(port, 1 << LOSSLESS, 0));
}

/// When storms of `port` were told of, and when their ends.
fn told(record: &Record, port: u8) -> (Vec<Instant>, Vec<Instant>) {
    let at = |is: fn(&EventKind) -> bool| {
        let events = record.events(port, Instant::ZERO, Instant::NEVER);
        events.filter(|event| is(&event.kind)).map(|event| event.at).collect()
    };
    let begun = at(|kind| matches!(kind, EventKind::Storm { .. }));
    (begun, at(|kind| matches!(kind, EventKind::StormOver { .. })))
}

const SHORT: (Instant, Instant) = (ms(103), ms(133));
const STORM: (Instant, Instant) = (ms(103), ms(303));
/// When frames come for the queue that was given up, and when beside it.
const LATER: Instant = ms(200);
/// When all of it is over.
const CALM: Instant = ms(400);
const LATER_FRAMES: u64 = 10;
const BESIDE: u64 = 5;

fn dropping_run() -> Result<Record, Failure> {
    let stage = Stage::new(&guarded(14, "1150 ms", "drop"), "s0")?;
    let mut script = Script::default();
    storm(&mut script, 2, SHORT);
    script.at(SHORT.0, |tester| feed(tester, (1, 2), LOSSLESS, SHARED_FRAMES));
    storm(&mut script, 4, STORM);
    script.at(STORM.0, |tester| feed(tester, (3, 4), LOSSLESS, SHARED_FRAMES + HEADROOM_FRAMES));
    script.at(LATER, |tester| {
        feed(tester, (3, 4), LOSSLESS, LATER_FRAMES);
        feed(tester, (3, 4), 1, BESIDE);
        feed(tester, (3, 5), LOSSLESS, BESIDE);
    });
    twenty(&mut script);
    storm(&mut script, 12, (ms(103), ms(303)));
    draining(&mut script);
    script.at(CALM, |tester| {
        for priority in 0..8 {
            pairs().for_each(|pair| feed(tester, pair, priority, 1));
        }
    });
    stage.run(script)
}

/// Every pair of the first four ports.
fn pairs() -> impl Iterator<Item = (u8, u8)> {
    let pairs = (1..=4).flat_map(|from| (1..=4).map(move |to| (from, to)));
    pairs.filter(|(from, to)| from != to)
}

/// PFCWD-01.
pub fn short() -> Finding {
    let record = DROP.get()?;
    let record = record.trusted()?;
    let (begun, _) = told(record, 2);
    ensure(begun.is_empty(), || format!("a storm was found at {begun:?}"))?;
    same("frames during the storm", record.data_within(2, LOSSLESS, SHORT), 0)?;
    let after = record.data_within(2, LOSSLESS, (SHORT.1, CALM)) as u64;
    same("frames after it", after, SHARED_FRAMES)?;
    same("losses", record.lost(2), "nothing".to_owned())?;
    Ok(format!("30 ms of storm: none found, {after} frames later, 0 lost"))
}

/// PFCWD-02.
pub fn dropping() -> Finding {
    let record = DROP.get()?;
    let record = record.trusted()?;
    let (begun, _) = told(record, 4);
    let waits = STORM.0 + FRAME_TIME + DELAY;
    ensure(begun.len() == 1, || format!("storms were found at {begun:?}"))?;
    let waited = begun[0].since(waits);
    ensure(DETECTION < waited && waited <= DETECTION + POLL + record.twice_late(), || {
        format!("it was found {waited} after frames came, expected {DETECTION} and up to a poll")
    })?;
    let dropped = SHARED_FRAMES + HEADROOM_FRAMES + LATER_FRAMES;
    same("losses of the port", record.lost(4), format!("wd_drop {dropped}"))?;
    let counted = record.named(4, "queue3_deadlock_dropped_packets");
    same("queue3_deadlock_dropped_packets", counted, dropped)?;
    same("losses of the input", record.lost(3), "nothing".to_owned())?;
    let asked = record.asked(3, LOSSLESS);
    let after: Vec<u16> = asked.iter().filter(|(at, _)| *at >= begun[0]).map(|(_, t)| *t).collect();
    ensure(after == [0], || format!("upstream hears {after:?} once it was found, expected XON"))?;
    let beside = record.data_within(4, 1, (LATER, CALM)) as u64;
    same("frames of another priority", beside, BESIDE)?;
    let beside = record.data_within(5, LOSSLESS, (LATER, CALM)) as u64;
    same("frames to another port", beside, BESIDE)?;
    Ok(format!(
        "found after {}; {dropped} frames dropped, counted as wd_drop; no XOFF upstream from then on; \
         another priority and another port whole",
        in_ms(waited)
    ))
}

/// PFCWD-07.
pub fn clean_afterwards() -> Finding {
    let record = DROP.get()?;
    let record = record.trusted()?;
    let (_, over) = told(record, 4);
    ensure(over.len() == 1 && over[0] < CALM, || {
        format!("over at {over:?}, expected before {CALM}")
    })?;
    for (to, priority) in (1..=4).flat_map(|to| (0..8).map(move |priority| (to, priority))) {
        let came = record.data_within(to, priority, (CALM, Instant::NEVER));
        same(format!("frames of priority {priority} to port {to}"), came, 3)?;
    }
    Ok(format!(
        "12 pairs of ports × 8 priorities, all delivered, {} after the storm's end",
        in_ms(CALM.since(over[0]))
    ))
}

/// PFCWD-04: the first of twenty storms, how far apart they are, and how long each is. They begin at
/// all phases of the watchdog's looks.
const FIRST: Instant = ms(101);
const ROUNDS: u64 = 5;
const PLACES: [u8; 4] = [7, 8, 9, 10];
const ROUND: Duration = us(190_000);
const PHASE: Duration = us(3_000);
const LENGTH: Duration = us(80_000);

/// Port, beginning and end of each.
fn storms() -> impl Iterator<Item = (u8, Instant, Instant)> {
    (0..ROUNDS).flat_map(|round| {
        (0u64..).zip(PLACES).map(move |(place, port)| {
            let from = FIRST + ROUND * round + PHASE * (place + round);
            (port, from, from + LENGTH)
        })
    })
}

fn twenty(script: &mut Script) {
    for (port, from, to) in storms() {
        storm(script, port, (from, to));
        script.at(from, move |tester| feed(tester, (6, port), LOSSLESS, 1));
    }
}

/// The middle of `lengths`, which must lie between `least` and a look more.
fn middle(record: &Record, what: &str, mut lengths: Vec<Duration>) -> Result<Duration, Failure> {
    lengths.sort();
    same(format!("{what}s"), lengths.len() as u64, ROUNDS * PLACES.len() as u64)?;
    let middle = lengths[lengths.len() / 2];
    ensure(middle >= DETECTION && middle <= DETECTION + POLL + record.twice_late(), || {
        format!("the median {what} is {middle}, expected {DETECTION} and up to {POLL} more")
    })?;
    Ok(middle)
}

/// PFCWD-04.
pub fn timing() -> Finding {
    let record = DROP.get()?;
    let record = record.trusted()?;
    let (mut detections, mut restorations) = (Vec::new(), Vec::new());
    for (port, from, to) in storms() {
        let (begun, over) = told(record, port);
        // The frame waits once its last bit is in; four of them share a line.
        let first = begun.into_iter().find(|at| *at > from);
        let end = over.into_iter().find(|at| *at > to);
        detections.extend(first.map(|at| at.since(from + FRAME_TIME + DELAY)));
        restorations.extend(end.map(|at| at.since(to + CONTROL_TIME + DELAY)));
    }
    let detection = middle(record, "detection", detections)?;
    let restoration = middle(record, "restoration", restorations)?;
    Ok(format!(
        "20 storms: median detection {}, restoration {}; 40 ms and a look every 10 ms",
        in_ms(detection),
        in_ms(restoration)
    ))
}

/// PFCWD-05: how often a frame gets out of a paused queue.
const TRICKLE: Duration = us(30_000);
const TRICKLE_FROM: Instant = ms(103);

fn draining(script: &mut Script) {
    script.at(TRICKLE_FROM, |tester| {
        tester.pfc(14, 1 << LOSSLESS, LONG);
        feed(tester, (13, 14), LOSSLESS, SHARED_FRAMES);
    });
    for number in 1..=SHARED_FRAMES {
        script.at(TRICKLE_FROM + TRICKLE * number, |tester| {
            tester.pfc(14, 1 << LOSSLESS, 0);
            tester.pfc(14, 1 << LOSSLESS, LONG);
        });
    }
}

/// PFCWD-05.
pub fn needs_a_backlog() -> Finding {
    let record = DROP.get()?;
    let record = record.trusted()?;
    for (what, port) in [("an empty queue", 12), ("a draining queue", 14)] {
        let (begun, _) = told(record, port);
        ensure(begun.is_empty(), || format!("a storm of {what} was found at {begun:?}"))?;
        same(format!("losses of {what}"), record.lost(port), "nothing".to_owned())?;
    }
    same(
        "frames out of the draining queue",
        record.data(14, LOSSLESS).count() as u64,
        SHARED_FRAMES,
    )?;
    Ok("no storm of an empty queue in 200 ms, none of one that sends a frame every 30 ms"
        .to_owned())
}

/// PFCWD-03: after the storm the queue is paused once more, with a frame in it.
const OBEYS: (Instant, Instant) = (ms(460), ms(490));

fn forwarding_run() -> Result<Record, Failure> {
    let stage = Stage::new(&guarded(2, "600 ms", "forward"), "s0")?;
    let mut script = Script::default();
    storm(&mut script, 2, STORM);
    script.at(STORM.0, |tester| feed(tester, (1, 2), LOSSLESS, SHARED_FRAMES));
    script.at(LATER, |tester| feed(tester, (1, 2), LOSSLESS, LATER_FRAMES));
    storm(&mut script, 2, OBEYS);
    script.at(OBEYS.0, |tester| feed(tester, (1, 2), LOSSLESS, 1));
    stage.run(script)
}

/// PFCWD-03.
pub fn forwarding() -> Finding {
    let record = FORWARD.get()?;
    let record = record.trusted()?;
    let (begun, over) = told(record, 2);
    ensure(begun.len() == 1 && over.len() == 1, || {
        format!("found at {begun:?}, over at {over:?}")
    })?;
    let early = record.data_within(2, LOSSLESS, (STORM.0, begun[0]));
    same("frames that leave before it is found", early, 0)?;
    let during = record.data_within(2, LOSSLESS, (begun[0], STORM.1)) as u64;
    same("frames that leave in the storm", during, SHARED_FRAMES + LATER_FRAMES)?;
    same("frames that leave a paused queue afterwards", record.data_within(2, LOSSLESS, OBEYS), 0)?;
    same("frames in all", record.data(2, LOSSLESS).count() as u64, during + 1)?;
    record.nothing_lost(&[])?;
    Ok(format!("{during} frames leave in the storm, 0 dropped; afterwards pauses are obeyed"))
}
