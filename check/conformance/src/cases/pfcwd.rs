//! PFCWD: Ethernet: PFC watchdog and deadlock: queues that are paused for ever, at a switch that looks every
//! 10 ms; and a ring whose buffers wait in a circle ([`ring`]).
//!
//! ```text
//!   port 1 ─▶ 2       a short storm           6 ─▶ 7 … 10   twenty storms
//!        3 ─▶ 4       a long one              12            a pause of an empty queue
//!        3 ─▶ 5       beside it              13 ─▶ 14       a frame gets out now and then
//! ```

pub mod ring;

use crate::ethernet::*;
use crate::prelude::*;
use testbed::frames::ethernet::data;
use testbed::sleepy;

/// The scripts of the group, by case.
pub const SCRIPTS: Scripts = &[
    ("PFCWD-01", short),
    ("PFCWD-02", dropping),
    ("PFCWD-03", forwarding),
    ("PFCWD-04", timing),
    ("PFCWD-05", needs_a_backlog),
    ("PFCWD-06", elapsed_time),
    ("PFCWD-07", clean_afterwards),
    ("PFCWD-08", link_down),
    ("PFCWD-09", ring::found_before_start),
    ("PFCWD-10", ring::seen_at_run_time),
];

/// How long a queue must stand, and how long it must be quiet.
const DETECTION: Duration = us(40_000);
/// How often the watchdog looks.
const POLL: Duration = us(10_000);

static DROP: Shared<Record> = Shared::new(|on| watched_run(on, "drop"));

/// A star whose switch s0 is watched.
fn guarded(nics: u8, duration: &str, action: &str) -> String {
    let guard = format!(
        ", watchdog = {{ detection = \"40 ms\", restoration = \"40 ms\", poll = \"10 ms\", \
         action = \"{action}\" }}"
    );
    star(nics, duration, "", &memory((SHARED_FRAMES, HEADROOM_FRAMES), &guard, ""))
}

/// The neighbour at `port` pauses the lossless priority from the one instant to the other.
fn storm(script: &mut Script, port: u8, when: (Instant, Instant)) {
    script.pause(when, &[port], 1 << LOSSLESS);
}

const SHORT: (Instant, Instant) = (ms(103), ms(133));
const STORM: (Instant, Instant) = (ms(103), ms(303));
/// When frames come for the queue that was given up, and when beside it.
const LATER: Instant = ms(200);
/// When all of it is over.
const CALM: Instant = ms(400);
const LATER_FRAMES: u64 = 10;
const BESIDE: u64 = 5;

fn watched_run(on: Level, action: &str) -> Result<Record> {
    play(on, &guarded(14, "1150 ms", action), "s0", |script| {
        storm(script, 2, SHORT);
        script.at(SHORT.0, |bed| feed(bed, (1, 2), LOSSLESS, SHARED_FRAMES));
        storm(script, 4, STORM);
        script.at(STORM.0, |bed| feed(bed, (3, 4), LOSSLESS, SHARED_FRAMES + HEADROOM_FRAMES));
        script.at(LATER, |bed| {
            feed(bed, (3, 4), LOSSLESS, LATER_FRAMES);
            feed(bed, (3, 4), 1, BESIDE);
            feed(bed, (3, 5), LOSSLESS, BESIDE);
        });
        twenty(script);
        storm(script, 12, (ms(103), ms(303)));
        draining(script);
        script.at(CALM, |bed| {
            for priority in 0..8 {
                pairs().for_each(|pair| feed(bed, pair, priority, 1));
            }
        });
    })
}

/// Every pair of the first four ports.
fn pairs() -> impl Iterator<Item = (u8, u8)> {
    let pairs = (1..=4).flat_map(|from| (1..=4).map(move |to| (from, to)));
    pairs.filter(|(from, to)| from != to)
}

/// When storms of `port` were found, and when their ends.
fn storm_at(record: &Record, port: u8) -> (Vec<Instant>, Vec<Instant>) {
    let begun = record.events_of(port, |kind| matches!(kind, EventKind::Storm { .. }));
    (begun, record.events_of(port, |kind| matches!(kind, EventKind::StormOver { .. })))
}

/// Judges the run with the action drop, and on the virtual clock those with every other action.
fn each_action(on: Level, judge: fn(&Record) -> Finding) -> Finding {
    let seen = judge(&*DROP.on(on)?)?;
    for action in on.swept(&["forward", "alert"]) {
        judge(&watched_run(on, action)?).map_err(|failure| failure.of(action))?;
    }
    Ok(seen)
}

/// PFCWD-01.
pub fn short(on: Level) -> Finding {
    each_action(on, short_storm)
}

fn short_storm(record: &Record) -> Finding {
    let (begun, _) = storm_at(record, 2);
    ensure!(begun.is_empty(), "a storm was found at {begun:?}");
    same("frames during the storm", record.data_within(2, LOSSLESS, SHORT), 0)?;
    let after = record.data_within(2, LOSSLESS, (SHORT.1, CALM));
    same("frames after it", after, SHARED_FRAMES)?;
    same("losses", record.lost(2), "nothing")?;
    Ok(format!("30 ms of storm: none found, {after} frames later, 0 lost"))
}

/// PFCWD-02.
pub fn dropping(on: Level) -> Finding {
    let record = DROP.on(on)?;
    let (begun, _) = storm_at(&record, 4);
    let waits = STORM.0 + FRAME_TIME + DELAY;
    ensure!(begun.len() == 1, "storms were found at {begun:?}");
    let waited = begun[0].since(waits);
    let most = DETECTION + POLL + record.twice_late();
    ensure!(DETECTION < waited && waited <= most, "found after {waited}");
    let dropped = SHARED_FRAMES + HEADROOM_FRAMES + LATER_FRAMES;
    same("losses of the port", record.lost(4), format!("wd_drop {dropped}"))?;
    let counted = record.named(4, "queue3_deadlock_dropped_packets");
    same("queue3_deadlock_dropped_packets", counted, dropped)?;
    same("losses of the input", record.lost(3), "nothing")?;
    let sent = record.pauses(3, LOSSLESS);
    let after: Vec<u16> = sent.iter().filter(|(at, _)| *at >= begun[0]).map(|(_, t)| *t).collect();
    ensure!(after == [0], "upstream receives {after:?} once it was found, expected XON");
    let beside = record.data_within(4, 1, (LATER, CALM));
    same("frames of another priority", beside, BESIDE)?;
    let beside = record.data_within(5, LOSSLESS, (LATER, CALM));
    same("frames to another port", beside, BESIDE)?;
    Ok(format!("found after {}; {dropped} frames dropped as wd_drop; others whole", in_ms(waited)))
}

/// PFCWD-07.
pub fn clean_afterwards(on: Level) -> Finding {
    each_action(on, clean)
}

fn clean(record: &Record) -> Finding {
    let (_, over) = storm_at(record, 4);
    ensure!(over.len() == 1 && over[0] < CALM, "over at {over:?}");
    for (to, priority) in (1..=4).flat_map(|to| (0..8).map(move |priority| (to, priority))) {
        let came = record.data_within(to, priority, (CALM, Instant::NEVER));
        same(format!("frames of priority {priority} to port {to}"), came, 3)?;
    }
    Ok(format!("96 flows delivered, {} after the storm's end", in_ms(CALM.since(over[0]))))
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
        script.at(from, move |bed| feed(bed, (6, port), LOSSLESS, 1));
    }
}

/// The middle of `lengths`, which must lie between `least` and a look more.
fn middle(record: &Record, what: &str, mut lengths: Vec<Duration>) -> Result<Duration> {
    lengths.sort();
    same(format!("{what}s"), lengths.len() as u64, ROUNDS * PLACES.len() as u64)?;
    let middle = lengths[lengths.len() / 2];
    lies(format!("the median {what}"), middle, DETECTION..=DETECTION + POLL + record.twice_late())?;
    Ok(middle)
}

/// PFCWD-04.
pub fn timing(on: Level) -> Finding {
    let record = DROP.on(on)?;
    let (mut detections, mut restorations) = (Vec::new(), Vec::new());
    for (port, from, to) in storms() {
        let (begun, over) = storm_at(&record, port);
        // The frame waits once its last bit is in; four of them share a line.
        let first = begun.into_iter().find(|at| *at > from);
        let end = over.into_iter().find(|at| *at > to);
        detections.extend(first.map(|at| at.since(from + FRAME_TIME + DELAY)));
        restorations.extend(end.map(|at| at.since(to + CONTROL_TIME + DELAY)));
    }
    let detection = middle(&record, "detection", detections)?;
    let restoration = middle(&record, "restoration", restorations)?;
    Ok(format!("20 storms: median {} and {}", in_ms(detection), in_ms(restoration)))
}

/// PFCWD-05: how often a frame gets out of a paused queue.
const TRICKLE: Duration = us(30_000);
const TRICKLE_FROM: Instant = ms(103);

fn draining(script: &mut Script) {
    script.at(TRICKLE_FROM, |bed| {
        bed.pfc(14, 1 << LOSSLESS, LONG);
        feed(bed, (13, 14), LOSSLESS, SHARED_FRAMES);
    });
    for number in 1..=SHARED_FRAMES {
        script.at(TRICKLE_FROM + TRICKLE * number, |bed| {
            bed.pfc(14, 1 << LOSSLESS, 0);
            bed.pfc(14, 1 << LOSSLESS, LONG);
        });
    }
}

/// PFCWD-05.
pub fn needs_a_backlog(on: Level) -> Finding {
    let record = DROP.on(on)?;
    for (what, port) in [("an empty queue", 12), ("a draining queue", 14)] {
        let (begun, _) = storm_at(&record, port);
        ensure!(begun.is_empty(), "a storm of {what} was found at {begun:?}");
        same(format!("losses of {what}"), record.lost(port), "nothing")?;
    }
    same("frames out of the draining queue", record.data(14, LOSSLESS).total(), SHARED_FRAMES)?;
    Ok("no storm of an empty queue in 200 ms, none of one that sends a frame every 30 ms".into())
}

/// PFCWD-03: after the storm the queue is paused once more, with a frame in it.
const OBEYS: (Instant, Instant) = (ms(460), ms(490));

static FORWARD: Shared<Record> = Shared::new(|on| {
    play(on, &guarded(2, "600 ms", "forward"), "s0", |script| {
        storm(script, 2, STORM);
        script.at(STORM.0, |bed| feed(bed, (1, 2), LOSSLESS, SHARED_FRAMES));
        script.at(LATER, |bed| feed(bed, (1, 2), LOSSLESS, LATER_FRAMES));
        storm(script, 2, OBEYS);
        script.at(OBEYS.0, |bed| feed(bed, (1, 2), LOSSLESS, 1));
    })
});

/// PFCWD-03.
pub fn forwarding(on: Level) -> Finding {
    let record = FORWARD.on(on)?;
    let (begun, over) = storm_at(&record, 2);
    ensure!(begun.len() == 1 && over.len() == 1, "found at {begun:?}, over at {over:?}");
    let early = record.data_within(2, LOSSLESS, (STORM.0, begun[0]));
    same("frames that leave before it is found", early, 0)?;
    let during = record.data_within(2, LOSSLESS, (begun[0], STORM.1));
    same("frames that leave in the storm", during, SHARED_FRAMES + LATER_FRAMES)?;
    same("frames that leave a paused queue afterwards", record.data_within(2, LOSSLESS, OBEYS), 0)?;
    same("frames in all", record.data(2, LOSSLESS).total(), during + 1)?;
    record.nothing_lost(&[])?;
    Ok(format!("{during} frames leave in the storm, 0 dropped; afterwards pauses are obeyed"))
}

/// PFCWD-06: a watchdog that wakes only every third time.
pub fn elapsed_time(on: Level) -> Finding {
    const SLOW: Duration = us(30_000);
    let stage = Stage::new(on, &guarded(2, "1 s", "drop"), "s0")?;
    let mut bench = Stage { wrap: |device| sleepy(device, SLOW), ..stage }.bench()?;
    bench.pfc(2, 1 << LOSSLESS, LONG);
    bench.inject(1, data(1, 2, LOSSLESS, 0));
    bench.run_for(SLOW * 4);
    let found = bench.events_of(|kind| matches!(kind, EventKind::Storm { .. }));
    let found: Vec<_> = found.iter().map(|event| event.0).collect();
    let expected = Instant::ZERO + SLOW * 2;
    ensure!(found == [expected], "storms found at {found:?}, expected {expected}");
    let quiet = bench.now();
    bench.pfc(2, 1 << LOSSLESS, 0);
    bench.run_for(SLOW * 12);
    let over = bench.events_of(|kind| matches!(kind, EventKind::StormOver { .. }));
    let waited = over.first().map_or(Duration::ZERO, |event| event.0.since(quiet));
    same("polls until it is restored", (over.len(), waited), (1, SLOW * 2))?;
    Ok(format!("polls {SLOW} apart: found after {}, restored after {waited}", SLOW * 2))
}

static DOWN: Shared<Record> = Shared::new(|on| down(on, UP_AGAIN));

/// PFCWD-08: the link is down for two seconds of a pause of 3.36 s. Source: the case. On the virtual clock
/// also for longer than the pause.
const UP_AGAIN: Instant = ms(2_130);
const UP_LATER: Instant = ms(4_130);

fn down(on: Level, up: Instant) -> Result<Record> {
    let to = up.as_ps() / 1_000_000_000;
    let outage = format!("[[outage]]\nat = \"s0:2\"\nfrom = \"130 ms\"\nto = \"{to} ms\"\n");
    let text = format!("{}{outage}", guarded(2, &format!("{} ms", to + 270), "drop"));
    play(on, &text, "s0", |script| {
        script.at(ms(105), |bed| bed.pfc(2, 1 << LOSSLESS, LONG));
        script.at(ms(106), |bed| feed(bed, (1, 2), LOSSLESS, SHARED_FRAMES));
        script.at(ms(1_000), |bed| bed.send_frame(2, &data(2, 1, LOSSLESS, 0)));
    })
}

/// PFCWD-08.
pub fn link_down(on: Level) -> Finding {
    on.only_engine(|| no_storm(&down(on, UP_LATER)?, UP_LATER))?;
    no_storm(&*DOWN.on(on)?, UP_AGAIN)
}

fn no_storm(record: &Record, up: Instant) -> Finding {
    let (begun, _) = storm_at(record, 2);
    ensure!(begun.is_empty(), "a storm was found at {begun:?}");
    same("frames while it is down", record.data_within(2, LOSSLESS, (Instant::ZERO, up)), 0)?;
    let starts = record.data(2, LOSSLESS).starts(RATE);
    same("frames afterwards", starts.len() as u64, SHARED_FRAMES)?;
    let late = starts[0].since(up);
    ensure!(late <= record.within(us(100)), "the first frame starts {late} after the link is up");
    same("what the port has lost", record.lost(2), "link_state 1")?;
    record.nothing_lost(&[2])?;
    Ok(format!("no storm; {SHARED_FRAMES} frames kept, sent {late} after the link is up"))
}
