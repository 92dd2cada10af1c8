//! PFC-04, PFC-05, PFC-09, PFC-10, PFC-12 and PFC-13 live: who is silent, for how long, what still
//! goes; of a switch, and of a NIC.
//!
//! ```text
//!   port 1, 2 ─▶  3   one priority paused, one not       6 ─▶ 7, 8 ─▶ 9, 10 ─▶ 11, 12 ─▶ 13
//!           4 ─▶  5   eight priorities, eight pauses       pauses of a length each
//!                                                       14 ─▶ 15   a pause taken back
//! ```

use super::{back_to_back, feed, limits};
use crate::bench::packets::ethernet::{control, data};
use crate::case::{Failure, Finding, ensure, same};
use crate::live::cached::Cached;
use crate::live::ethernet::{
    CONTROL_TIME, DELAY, FRAME_TIME, HEADROOM_FRAMES, LONG, LOSSLESS, QUANTUM, SHARED_FRAMES,
    apart, memory, star, start,
};
use crate::live::record::Record;
use crate::live::stage::Stage;
use crate::live::tester::Script;
use crate::live::{ms, us};
use proto::ids::Priority;
use proto::units::{Duration, Instant};
use proto::wire::ethernet::{MacControl, Pfc};

static RUN: Cached<Record> = Cached::new(run, |record| record.fidelity.ok);
static NIC: Cached<Record> = Cached::new(nic, |record| record.fidelity.ok);

/// Five seconds of pause. Source: the case.
const PAUSED: (Instant, Instant) = (ms(150), ms(5_150));
/// The priority that is not paused.
const OTHER: u8 = 1;

fn run() -> Result<Record, Failure> {
    // What a script sends by what it has heard goes out some 10 ms ahead of its time.
    let room = memory((SHARED_FRAMES, 2 * HEADROOM_FRAMES), "", "");
    let link = "lossless = [0, 1, 2, 3, 4, 5, 6, 7]";
    let stage = Stage::new(&star(15, "5300 ms", link, &room), "s0")?;
    let mut script = Script::default();
    half_and_half(&mut script);
    eight(&mut script);
    lengths(&mut script);
    script.at(ms(150), |tester| tester.pfc(15, 1 << LOSSLESS, LONG));
    script.at(ms(160), |tester| feed(tester, (14, 15), LOSSLESS, 3));
    script.at(TAKEN_BACK, |tester| tester.pfc(15, 1 << LOSSLESS, 0));
    stage.run(script)
}

/// Half of a line of each priority into one port, the one paused.
fn half_and_half(script: &mut Script) {
    for second in 0..5u64 {
        // A pause lasts for 3.36 s.
        let at = PAUSED.0 + us(1_000_000) * second;
        script.at(at, |tester| tester.pfc(3, 1 << LOSSLESS, LONG));
    }
    script.at(PAUSED.1, |tester| tester.pfc(3, 1 << LOSSLESS, 0));
    let mut at = PAUSED.0 + us(10_000);
    while at < PAUSED.1 {
        script.at(at, |tester| {
            if tester.asked_last(1, LOSSLESS).is_none() {
                tester.send_frame(1, &data(1, 3, LOSSLESS, 0));
            }
            tester.send_frame(2, &data(2, 3, OTHER, 0));
        });
        at = at + FRAME_TIME * 2;
    }
}

/// PFC-04.
pub fn paused_is_silent() -> Finding {
    let record = RUN.get()?;
    let record = record.trusted()?;
    same("frames of the paused priority", record.data_within(3, LOSSLESS, PAUSED), 0)?;
    let offered = (PAUSED.1.since(PAUSED.0) - us(10_000)).as_ps().div_ceil(2 * FRAME_TIME.as_ps());
    let others = record.data(3, OTHER).count() as u64;
    same("frames of the other priority", others, offered)?;
    let accepted = record.port(1).lanes[usize::from(LOSSLESS)].counters.rx_frames;
    ensure((SHARED_FRAMES..=SHARED_FRAMES + 2 * HEADROOM_FRAMES).contains(&accepted), || {
        format!("{accepted} frames were accepted, not a threshold and what comes after XOFF")
    })?;
    same("frames of it once it may go on", record.data(3, LOSSLESS).count() as u64, accepted)?;
    record.nothing_lost(&[])?;
    let from_nic = beside_a_pause()?;
    Ok(format!(
        "5 s: 0 frames of priority 3, all {others} of the other through a switch; then the {accepted} \
         it had taken; a NIC sends {from_nic} of the other back to back"
    ))
}

/// When one pause of two, and one of eight lengths is said.
const LENGTHS_AT: [(Instant, u8); 2] = [(ms(200), 0b0001_1000), (ms(300), 0xff)];
/// When all priorities are paused, and when each is filled up to XOFF.
const DEMANDS_BLOCKED: Instant = ms(440);
const DEMANDS_AT: Instant = ms(450);
const DEMAND_EVERY: Duration = us(20_000);

/// Far enough apart that each frame is gone when the next may go.
fn time(priority: u8) -> u16 {
    400 + 50 * u16::from(priority)
}

fn eight(script: &mut Script) {
    for (at, paused) in LENGTHS_AT {
        script.at(at, move |tester| {
            let priorities = (0..8).filter(|p| paused >> p & 1 == 1);
            let said =
                priorities.fold(Pfc::default(), |pfc, p| pfc.with(Priority::truncate(p), time(p)));
            tester.send_frame(5, &control(MacControl::Pfc(said)));
            (0..8).for_each(|priority| feed(tester, (4, 5), priority, 1));
        });
    }
    script.at(DEMANDS_BLOCKED, |tester| tester.pfc(5, 0xff, LONG));
    for priority in 0..8 {
        let at = DEMANDS_AT + DEMAND_EVERY * u64::from(priority);
        script.at(at, move |tester| feed(tester, (4, 5), priority, SHARED_FRAMES));
    }
}

/// PFC-05.
pub fn independent_priorities() -> Finding {
    let record = RUN.get()?;
    let record = record.trusted()?;
    for (said, paused) in LENGTHS_AT {
        let begin = said + CONTROL_TIME + DELAY;
        let window = (said, said + us(100_000));
        for priority in (0..8).filter(|p| paused >> p & 1 == 1) {
            let over = begin + QUANTUM * u64::from(time(priority));
            let left = record.data(5, priority);
            let left = left.map(start).find(|at| *at >= window.0 && *at < window.1);
            let left = left.unwrap_or(Instant::NEVER);
            // Another one may be on the line.
            ensure(
                left + record.twice_late() >= over && left <= over + FRAME_TIME + slack(record),
                || format!("priority {priority} goes on at {left}, its pause ends at {over}"),
            )?;
        }
        let all: usize = (0..8).map(|p| record.data_within(5, p, window)).sum();
        same("frames that leave after the pauses", all, 8)?;
    }
    for priority in 0..8 {
        let from = DEMANDS_AT + DEMAND_EVERY * u64::from(priority);
        let asked = record.asked(4, priority);
        let first = asked.first().map_or(Instant::NEVER, |(at, _)| *at);
        let due = from + FRAME_TIME * SHARED_FRAMES + DELAY + CONTROL_TIME;
        ensure(apart(first, due) <= us(500) + record.twice_late(), || {
            format!("XOFF of priority {priority} leaves at {first}, expected {due}")
        })?;
    }
    Ok("2 and 8 pauses of one frame end each at its own time; 8 priorities ask for silence each by itself"
        .to_owned())
}

/// How late something may be seen to be done beside twice the lateness of timers.
fn slack(record: &Record) -> Duration {
    record.twice_late() + us(100)
}

/// Ports and lengths of PFC-09, in quanta.
const LENGTHS: [((u8, u8), u16); 4] =
    [((6, 7), 1), ((8, 9), 100), ((10, 11), 10_000), ((12, 13), 65_535)];
const LENGTHS_AT_FIRST: Instant = ms(700);
const PAUSES_BEGIN: Instant = Instant::from_ps(
    LENGTHS_AT_FIRST.as_ps() + FRAME_TIME.as_ps() - CONTROL_TIME.as_ps() - us(20).as_ps(),
);

fn lengths(script: &mut Script) {
    for ((from, to), quanta) in LENGTHS {
        script.at(LENGTHS_AT_FIRST, move |tester| feed(tester, (from, to), LOSSLESS, 1));
        // Its last bit comes 20 µs after the pause's.
        script.at(PAUSES_BEGIN, move |tester| tester.pfc(to, 1 << LOSSLESS, quanta));
    }
}

/// A silence of so many quanta from `begin` on ends when it must; how long it was.
fn lasted(record: &Record, begin: Instant, end: Instant, quanta: u16) -> Result<String, Failure> {
    let expected = QUANTUM * u64::from(quanta);
    let tolerance = Duration::from_ps(expected.as_ps() / 20) + record.twice_late();
    ensure(end >= begin && apart(end, begin + expected) <= tolerance, || {
        format!(
            "{quanta} quanta from {begin}: the next frame starts at {end}, due {expected} later"
        )
    })?;
    Ok(format!("{quanta} quanta {} us", end.since(begin).as_ps() / 1_000_000))
}

/// PFC-09.
pub fn quanta_length() -> Finding {
    let record = RUN.get()?;
    let record = record.trusted()?;
    let begin = PAUSES_BEGIN + CONTROL_TIME + DELAY;
    let mut told = Vec::new();
    for ((_, port), quanta) in LENGTHS {
        let end = record.data(port, LOSSLESS).map(start).next().unwrap_or(Instant::NEVER);
        told.push(lasted(record, begin, end, quanta)?);
    }
    let nic = NIC.get()?;
    let nic = nic.trusted()?;
    for (at, quanta) in NIC_LENGTHS {
        told.push(format!("NIC {}", after_pause(nic, at, quanta)?));
    }
    Ok(format!("silent for {}", told.join(", ")))
}

const TAKEN_BACK: Instant = ms(400);

/// PFC-10.
pub fn xon_releases() -> Finding {
    let record = RUN.get()?;
    let record = record.trusted()?;
    let heard = TAKEN_BACK + CONTROL_TIME + DELAY;
    let starts: Vec<Instant> = record.data(15, LOSSLESS).map(start).collect();
    same("frames that leave", starts.len(), 3)?;
    let late = apart(starts[0], heard);
    ensure(starts[0] >= heard && late <= record.twice_late(), || {
        format!("XON is heard at {heard}, the first frame starts at {}", starts[0])
    })?;
    Ok(format!("the first of 3 frames starts {} us after XON", late.as_ps() / 1_000_000))
}

/// When the NIC has one priority paused and a backlog of another.
const BESIDE: (Instant, Instant) = (ms(200), ms(700));
/// PFC-12, the NIC: when it is silenced again and again, for so many quanta each time.
const AGAIN: (Instant, u64) = (ms(900), 40);
const AGAIN_TIME: u16 = 200;
/// PFC-09, the NIC; the last is PFC-13's as well.
const NIC_LENGTHS: [(Instant, u16); 3] =
    [(ms(1_200), 100), (ms(1_300), 10_000), (ms(2_000), 65_535)];

fn nic() -> Result<Record, Failure> {
    let item = |name: &str, keys: &str| {
        format!(
            "[[traffic]]\nname = \"{name}\"\nfrom = \"h1\"\nto = \"h2\"\narrivals = \"backlog\"\n\
             size = \"2048 B\"\ntransport = \"uc\"\n{keys}\n"
        )
    };
    let rest = format!(
        "{}{}{}",
        memory((SHARED_FRAMES, HEADROOM_FRAMES), "", ""),
        item("paused", "start = \"100 ms\""),
        item("beside", "sl = 1\nstart = \"200 ms\"\nstop = \"700 ms\"")
    );
    let stage = Stage::new(&star(2, "5500 ms", "", &rest), "h1")?;
    let mut script = Script::default();
    script.at(ms(150), |tester| tester.pfc(1, 1 << LOSSLESS, LONG));
    script.at(ms(800), |tester| tester.pfc(1, 1 << LOSSLESS, 0));
    for number in 0..AGAIN.1 {
        let at = AGAIN.0 + QUANTUM * (u64::from(AGAIN_TIME) / 4 * number);
        script.at(at, |tester| tester.pfc(1, 1 << LOSSLESS, AGAIN_TIME));
    }
    for (at, quanta) in NIC_LENGTHS {
        script.at(at, move |tester| tester.pfc(1, 1 << LOSSLESS, quanta));
    }
    stage.run(script)
}

/// PFC-04, the NIC: how many frames of the other priority it sends without a gap.
fn beside_a_pause() -> Result<usize, Failure> {
    let record = NIC.get()?;
    let record = record.trusted()?;
    let (from, to) = (BESIDE.0 + us(10_000), BESIDE.1);
    same(
        "frames of the paused priority from a NIC",
        record.data_within(1, LOSSLESS, (from, to)),
        0,
    )?;
    let (count, gap) = back_to_back(record, 1, from, to);
    let line = to.since(from).as_ps() / FRAME_TIME.as_ps();
    ensure(count as u64 + 1 >= line, || {
        format!("{count} of {line} frames of the other, {gap} ns the longest gap")
    })?;
    Ok(count)
}

/// How long the NIC is silent after a pause that reaches it with its last bit sent at `at`; the
/// frame under way finishes.
fn after_pause(record: &Record, at: Instant, quanta: u16) -> Result<String, Failure> {
    let begin = at + CONTROL_TIME + DELAY;
    let next = record.data(1, LOSSLESS).map(start).find(|first| *first > begin);
    lasted(record, begin, next.unwrap_or(Instant::NEVER), quanta)
}

/// PFC-12.
pub fn refresh() -> Finding {
    let said = limits::refreshes()?;
    let record = NIC.get()?;
    let record = record.trusted()?;
    let from = AGAIN.0 + CONTROL_TIME + DELAY;
    let last = AGAIN.0 + QUANTUM * (u64::from(AGAIN_TIME) / 4 * (AGAIN.1 - 1));
    let starts = record.data(1, LOSSLESS).map(start);
    let leaked = starts.filter(|at| *at >= from && *at <= last).count();
    same("frames of a NIC between refreshes", leaked, 0)?;
    Ok(format!(
        "XOFF {said} times, each before the pause runs out, silence after XON; a NIC that hears {} sends \
         0 frames in between",
        AGAIN.1
    ))
}

/// PFC-13.
pub fn lost_xon() -> Finding {
    let record = NIC.get()?;
    let record = record.trusted()?;
    let (at, quanta) = NIC_LENGTHS[2];
    let alone = after_pause(record, at, quanta)?;
    let after = (at + QUANTUM * u64::from(quanta) + us(20_000), Instant::NEVER);
    let goes_on = record.data_within(1, LOSSLESS, after);
    ensure(goes_on > 10, || format!("{goes_on} frames leave when the pause is over"))?;
    Ok(format!(
        "no XON: the NIC resumes alone after {alone}, and sends {goes_on} frames by the end"
    ))
}
