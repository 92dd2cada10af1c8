//! PFC-04, PFC-05, PFC-09 to PFC-13: what is paused, for how long, and what still goes; of a switch, and
//! of a NIC.
//!
//! ```text
//!   port 1, 2 ─▶  3   one priority paused, one not       6 ─▶ 7, 8 ─▶ 9, 10 ─▶ 11, 12 ─▶ 13
//!           4 ─▶  5   eight priorities, eight pauses       pauses of a length each
//!                                                       14 ─▶ 15   a pause taken back
//! ```

use super::limits;
use crate::ethernet::*;
use crate::prelude::*;
use proto::link::pause::quanta;
use proto::wire::ethernet::{MacControl, Pfc};
use testbed::deaf;
use testbed::frames::ethernet::{control, control_of, data, pfc};

static RUN: Shared<Record> = Shared::new(run);

/// Five seconds of pause. Source: the case.
const PAUSED: (Instant, Instant) = (ms(150), ms(5_150));
/// The priority that is not paused.
const OTHER: u8 = 1;

fn run(on: Level) -> Result<Record> {
    // What a script sends upon a frame of the device goes out some 10 ms ahead of its time.
    let room = memory((SHARED_FRAMES, 2 * HEADROOM_FRAMES), "", "");
    let link = "lossless = [0, 1, 2, 3, 4, 5, 6, 7]";
    play(on, &star(15, "5300 ms", link, &room), "s0", |script| {
        half_and_half(script);
        eight(script);
        for ((from, to), quanta) in LENGTHS {
            script.at(LENGTHS_AT_FIRST, move |bed| feed(bed, (from, to), LOSSLESS, 1));
            // Its last bit comes 20 µs after the pause's.
            script.at(PAUSES_BEGIN, move |bed| bed.pfc(to, 1 << LOSSLESS, quanta));
        }
        taken_back(script, (14, 15));
    })
}

/// Half of a line of each priority into one port, the one paused.
fn half_and_half(script: &mut Script) {
    // A pause lasts for 3.36 s.
    script.every(PAUSED.0, us(1_000_000), 5, |bed, _| bed.pfc(3, 1 << LOSSLESS, LONG));
    script.at(PAUSED.1, |bed| bed.pfc(3, 1 << LOSSLESS, 0));
    script.every(PAUSED.0 + us(10_000), FRAME_TIME * 2, offered(), |bed, _| {
        if bed.last_pause(1, LOSSLESS).is_none() {
            bed.send_frame(1, &data(1, 3, LOSSLESS, 0));
        }
        bed.send_frame(2, &data(2, 3, OTHER, 0));
    });
}

/// Frames of the other priority: half a line's worth.
fn offered() -> u64 {
    (PAUSED.1.since(PAUSED.0) - us(10_000)).as_ps().div_ceil(2 * FRAME_TIME.as_ps())
}

/// PFC-04.
pub fn paused_is_silent(on: Level) -> Finding {
    let record = RUN.on(on)?;
    same("frames of the paused priority", record.data_within(3, LOSSLESS, PAUSED), 0)?;
    let others = record.data(3, OTHER).total();
    same("frames of the other priority", others, offered())?;
    let accepted = record.lane(1, LOSSLESS).rx_frames;
    lies("frames accepted", accepted, SHARED_FRAMES..=SHARED_FRAMES + 2 * HEADROOM_FRAMES)?;
    same("frames of it once it may go on", record.data(3, LOSSLESS).total(), accepted)?;
    let last = record.pauses(1, LOSSLESS).last().map_or(1, |(_, quanta)| *quanta);
    same("quanta of the last pause", last, 0)?;
    record.nothing_lost(&[])?;
    let from_nic = beside_a_pause(on)?;
    Ok(format!("5 s: 0 frames paused, {others} beside, then {accepted}; a NIC {from_nic} beside"))
}

/// When one pause of two, and one of eight lengths is sent.
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
        script.at(at, move |bed| {
            let priorities = (0..8).filter(|p| paused >> p & 1 == 1);
            let sent =
                priorities.fold(Pfc::default(), |pfc, p| pfc.with(Priority::truncate(p), time(p)));
            bed.send_frame(5, &control(MacControl::Pfc(sent)));
            (0..8).for_each(|priority| feed(bed, (4, 5), priority, 1));
        });
    }
    script.at(DEMANDS_BLOCKED, |bed| bed.pfc(5, 0xff, LONG));
    script.every(DEMANDS_AT, DEMAND_EVERY, 8, |bed, priority| {
        feed(bed, (4, 5), priority as u8, SHARED_FRAMES)
    });
}

/// PFC-05.
pub fn independent_priorities(on: Level) -> Finding {
    let record = RUN.on(on)?;
    for (sent, paused) in LENGTHS_AT {
        let begin = sent + CONTROL_TIME + DELAY;
        let window = (sent, sent + us(100_000));
        for priority in 0..8 {
            let over = begin + QUANTUM * u64::from(time(priority));
            let left = record.data(5, priority).starts(RATE).into_iter();
            let left = left.filter(|at| *at >= window.0 && *at < window.1).min();
            let left = left.unwrap_or(Instant::NEVER);
            // Live, another one may be on the line.
            let late = record.within(FRAME_TIME + us(100));
            let holds = match paused >> priority & 1 {
                1 => left + record.twice_late() >= over && left <= over + late,
                _ => left < over,
            };
            ensure!(holds, "priority {priority} goes on at {left}, not {over}");
        }
        let all: u64 = (0..8).map(|p| record.data_within(5, p, window)).sum();
        same("frames that leave after the pauses", all, 8)?;
    }
    for priority in 0..8 {
        let from = DEMANDS_AT + DEMAND_EVERY * u64::from(priority);
        let pauses = record.pauses(4, priority);
        let first = pauses.first().map_or(Instant::NEVER, |(at, _)| *at);
        let due = from + FRAME_TIME * SHARED_FRAMES + DELAY + CONTROL_TIME;
        near(format!("XOFF {priority}"), first, due, record.within(us(500)))?;
    }
    Ok("2 and 8 pauses of one frame end each at its own time; 8 priorities are paused each by itself".into())
}

/// Ports and lengths of PFC-09, in quanta.
const LENGTHS: [((u8, u8), u16); 4] =
    [((6, 7), 1), ((8, 9), 100), ((10, 11), 10_000), ((12, 13), 65_535)];
const LENGTHS_AT_FIRST: Instant = ms(700);
const PAUSES_BEGIN: Instant = Instant::from_ps(
    LENGTHS_AT_FIRST.as_ps() + FRAME_TIME.as_ps() - CONTROL_TIME.as_ps() - us(20).as_ps(),
);

/// A silence of so many quanta from `begin` on ends when it must; how long it was.
fn lasted(record: &Record, begin: Instant, end: Instant, quanta: u16) -> Result<String> {
    let expected = QUANTUM * u64::from(quanta);
    let tolerance = record.within(Duration::from_ps(expected.as_ps() / 20));
    ensure!(end >= begin, "{quanta} quanta from {begin} end at {end}");
    near(format!("end of {quanta} quanta"), end, begin + expected, tolerance)?;
    Ok(format!("{quanta} quanta {} us", end.since(begin).as_ps() / 1_000_000))
}

/// PFC-09.
pub fn quanta_length(on: Level) -> Finding {
    let record = RUN.on(on)?;
    let begin = PAUSES_BEGIN + CONTROL_TIME + DELAY;
    let mut lengths = Vec::new();
    for ((_, port), quanta) in LENGTHS {
        let end = record.data(port, LOSSLESS).first_start(RATE);
        lengths.push(lasted(&record, begin, end, quanta)?);
    }
    let nic = NIC.on(on)?;
    for (at, quanta) in NIC_LENGTHS {
        lengths.push(format!("NIC {}", after_pause(&nic, at, quanta)?));
    }
    if on == Level::Engine {
        lengths.push(at_other_rates()?);
    }
    Ok(format!("silent for {}", lengths.join(", ")))
}

/// On lines of other rates: a frame that is ready a picosecond after a pause has come.
fn at_other_rates() -> Result<String> {
    for megabits in [100, 8_000, 10_000] {
        for (device, port) in [("s0", 2), ("h1", 1)] {
            for (_, length) in LENGTHS {
                silent_at(device, port, megabits, length)?;
            }
        }
    }
    Ok("also at 100 Mb/s, 8 Gb/s and 10 Gb/s, to the picosecond".into())
}

fn silent_at(device: &'static str, port: u8, megabits: u64, length: u16) -> Result<()> {
    const READY: Instant = ms(50);
    let arrived = Instant::from_ps(READY.as_ps() - 1);
    let rate = BitRate::mbps(megabits);
    let rest = vast() + &backlog("one", "h1", "h2", "sl = 3\nmessages = 1\nstart = \"50 ms\"");
    let rate_text = format!("{megabits} Mbps");
    let text = Star { nics: 2, duration: "400 ms", rate: &rate_text, rest: &rest, ..STAR };
    let stamped = |at: Instant| Label {
        stamp: Some(Instant::from_ps(at.as_ps() - DELAY.as_ps())),
        ..Label::default()
    };
    let record = play(Level::Engine, &text.text(), device, |script| {
        script.at(ms(1), move |bed| {
            bed.send_labelled(port, &pfc(1 << LOSSLESS, length).octets, stamped(arrived));
            if device == "s0" {
                bed.send_labelled(1, &data(1, 2, LOSSLESS, 0).octets, stamped(READY));
            }
        });
    })?;
    let first = record.data(port, LOSSLESS).first_start(rate);
    let exact = u128::from(length) * 512_000_000 / u128::from(megabits);
    let what = format!("picoseconds of {length} quanta at {megabits} Mb/s, {device}");
    same(what, u128::from(first.since(arrived).as_ps()), exact)?;
    same("the same as a product", quanta(length, rate).as_ps(), exact as u64)
}

const TAKEN_BACK: Instant = ms(400);

/// Port `to` is paused for three frames, and the pause is taken back.
fn taken_back(script: &mut Script, (from, to): (u8, u8)) {
    script.pause((ms(150), TAKEN_BACK), &[to], 1 << LOSSLESS);
    script.at(ms(160), move |bed| feed(bed, (from, to), LOSSLESS, 3));
}

/// How late after XON the first of three frames starts; they leave back to back.
fn released(record: &Record, port: u8) -> Result<Duration> {
    let arrived = TAKEN_BACK + CONTROL_TIME + DELAY;
    let starts = record.data(port, LOSSLESS).starts(RATE);
    same("frames that leave", starts.len(), 3)?;
    let late = starts[0].distance(arrived);
    lies("start after XON", starts[0], arrived..=arrived + record.twice_late())?;
    let exact = starts == [0, 1, 2].map(|n| arrived + FRAME_TIME * n);
    ensure!(exact || record.live.is_some(), "frames start at {starts:?}");
    Ok(late)
}

/// PFC-10: on the virtual clock also of a switch that obeys pauses late.
pub fn xon_releases(on: Level) -> Finding {
    let late = released(&*RUN.on(on)?, 15)?;
    if on == Level::Engine {
        let text = star(2, "500 ms", "response = \"491 us\"", &roomy(""));
        released(&play(on, &text, "s0", |script| taken_back(script, (1, 2)))?, 2)?;
    }
    Ok(format!("the first of 3 frames starts {} us after XON", late.as_ps() / 1_000_000))
}

/// PFC-11: a pause in the middle of the first of four frames, obeyed at once or later.
pub fn frame_in_flight(on: Level) -> Finding {
    let half = FRAME_TIME.as_ps() / 2;
    for (response, whole) in [(0, 1), (half, 1), (FRAME_TIME.as_ps() + half, 2)] {
        let room = roomy_for(Duration::from_ps(response));
        let link = format!("response = \"{} ns\"", response / 1_000);
        let begin = ms(10) + FRAME_TIME + DELAY;
        let arrived = begin + Duration::from_ps(half);
        let sent = Instant::from_ps(arrived.as_ps() - (CONTROL_TIME + DELAY).as_ps());
        let record = play(on, &star(2, "200 ms", &link, &room), "s0", |script| {
            script.at(ms(10), |bed| feed(bed, (1, 2), LOSSLESS, 4));
            script.at(sent, |bed| bed.pfc(2, 1 << LOSSLESS, LONG));
        })?;
        let starts = record.data(2, LOSSLESS).starts(RATE);
        let obeyed = arrived + Duration::from_ps(response / 1_000 * 1_000);
        let early = starts.iter().all(|start| *start < obeyed);
        ensure!(starts.len() == whole && early, "frames at {starts:?}, not {whole}");
    }
    Ok("the frame under way goes whole; none starts at or after the end of the response time"
        .into())
}

/// When the NIC has one priority paused and a backlog of another.
const BESIDE: (Instant, Instant) = (ms(200), ms(700));
/// PFC-12, the NIC: when it is paused again and again, for so many quanta each time.
const AGAIN: (Instant, u64) = (ms(900), 40);
const AGAIN_TIME: u16 = 200;
/// PFC-09, the NIC; the last is PFC-13's as well.
const NIC_LENGTHS: [(Instant, u16); 3] =
    [(ms(1_200), 100), (ms(1_300), 10_000), (ms(2_000), 65_535)];

static NIC: Shared<Record> = Shared::new(|on| {
    let rest = memory((SHARED_FRAMES, HEADROOM_FRAMES), "", "")
        + &backlog("paused", "h1", "h2", "start = \"100 ms\"")
        + &backlog("beside", "h1", "h2", "sl = 1\nstart = \"200 ms\"\nstop = \"700 ms\"");
    play(on, &star(2, "5500 ms", "", &rest), "h1", |script| {
        script.pause((ms(150), ms(800)), &[1], 1 << LOSSLESS);
        script.every(AGAIN.0, QUANTUM * (u64::from(AGAIN_TIME) / 4), AGAIN.1, |bed, _| {
            bed.pfc(1, 1 << LOSSLESS, AGAIN_TIME);
        });
        for (at, quanta) in NIC_LENGTHS {
            script.at(at, move |bed| bed.pfc(1, 1 << LOSSLESS, quanta));
        }
    })
});

/// PFC-04, the NIC: how many frames of the other priority it sends without a gap.
fn beside_a_pause(on: Level) -> Result<usize> {
    let record = NIC.on(on)?;
    let (from, to) = (BESIDE.0 + us(10_000), BESIDE.1);
    let paused = record.data_within(1, LOSSLESS, (from, ms(800)));
    same("frames of the paused priority from a NIC", paused, 0)?;
    let after = record.data_within(1, LOSSLESS, (ms(800), AGAIN.0));
    ensure!(after > 50, "{after} frames of a NIC once it may go on");
    let (count, gap) = super::back_to_back(&record, 1, from, to);
    let line = to.since(from).as_ps() / FRAME_TIME.as_ps();
    let exact = gap == 0 || record.live.is_some();
    ensure!(count as u64 + 1 >= line && exact, "{count} of {line}, a gap of {gap} ns");
    Ok(count)
}

/// How long the NIC is silent after a pause that reaches it with its last bit sent at `at`; the frame
/// under way finishes.
fn after_pause(record: &Record, at: Instant, quanta: u16) -> Result<String> {
    let begin = at + CONTROL_TIME + DELAY;
    let next = record.data(1, LOSSLESS).map(|seen| seen.start(RATE)).find(|first| *first > begin);
    lasted(record, begin, next.unwrap_or(Instant::NEVER), quanta)
}

/// PFC-12.
pub fn refresh(on: Level) -> Finding {
    let sent = limits::refreshes(on)?;
    let record = NIC.on(on)?;
    let from = AGAIN.0 + CONTROL_TIME + DELAY;
    let last = AGAIN.0 + QUANTUM * (u64::from(AGAIN_TIME) / 4 * (AGAIN.1 - 1));
    let starts = record.data(1, LOSSLESS).starts(RATE).into_iter();
    let leaked = starts.filter(|at| *at >= from && *at <= last).count();
    same("frames of a NIC between refreshes", leaked, 0)?;
    Ok(format!("XOFF {sent} times, none after XON; a NIC that receives {} sends nothing", AGAIN.1))
}

/// PFC-13: a NIC that never receives XON; on the virtual clock in a fabric too.
pub fn lost_xon(on: Level) -> Finding {
    let record = NIC.on(on)?;
    let (at, quanta) = NIC_LENGTHS[2];
    let alone = after_pause(&record, at, quanta)?;
    let after = (at + QUANTUM * u64::from(quanta) + us(20_000), Instant::NEVER);
    let goes_on = record.data_within(1, LOSSLESS, after);
    ensure!(goes_on > 10, "{goes_on} frames leave when the pause is over");
    let fabric = on.only_engine(without_xon)?;
    Ok(format!("a NIC resumes alone after {alone}, and sends {goes_on} frames{fabric}"))
}

/// A sender twice as fast as its receiver's line, which misses every XON; how many it missed.
fn without_xon() -> Result<String> {
    const MESSAGES: u64 = 500;
    let all = backlog("all", "h1", "h2", &format!("sl = 3\nmessages = {MESSAGES}"));
    let rest = memory((SHARED_FRAMES, HEADROOM_FRAMES), "", "") + &all;
    let text = Star { nics: 2, link: "pause_time = 200", rest: &rest, ..STAR }.text();
    let text = text.replace("a = \"h1:1\",", "a = \"h1:1\", rate = \"20 Mbps\",");
    let lost = Arc::new(AtomicU64::new(0));
    let is_xon = |frame: &Frame| matches!(control_of(frame), Some(MacControl::Pfc(pfc)) if pfc.times == [0; 8]);
    // Each pause lasts a little longer than it should.
    let stop = Instant::ZERO + FRAME_TIME * (10 * MESSAGES);
    let readings = hampered(
        &text,
        |_| {},
        |node, device| {
            let lost = Arc::clone(&lost);
            let misses = move |_, frame: &Frame| {
                let missed = node == 0 && is_xon(frame);
                lost.fetch_add(u64::from(missed), Ordering::Relaxed);
                missed
            };
            deaf(device, Box::new(misses))
        },
        &[stop],
    )?;
    let delivered: u64 = readings[0][1].receptions.iter().map(|flow| flow.messages).sum();
    same("messages delivered", delivered, MESSAGES)?;
    let ports = readings[0].iter().flat_map(|reading| &reading.ports);
    same("frames dropped", ports.map(|port| port.drops.total()).sum::<u64>(), 0)?;
    let lost = lost.load(Ordering::Relaxed);
    ensure!(lost > 0, "no XON was lost: the case proves nothing");
    let payload = Bytes::new(MESSAGES * 2048).get();
    Ok(format!("; a fabric that loses all {lost} XONs delivers all {payload} octets"))
}
