//! PFC-01 to PFC-03, PFC-12, PFC-14, PFC-15 and PFC-19 live: where silence is asked for and where it
//! ends, how far headroom goes, and what a neighbour does to it that hears badly.
//!
//! ```text
//!   port  1 ─▶  2   over every limit                5 ─▶  6   misses an XOFF
//!         3 ─▶  4   over XOFF, then one by one      7 ─▶  8   misses two
//!         9 ─▶ 10   stays above XON                11 … 15 ─▶ 16   obey late
//! ```

use super::{feed, release_one};
use crate::case::{Failure, Finding, ensure, same};
use crate::live::cached::Cached;
use crate::live::ethernet::{
    CONTROL_TIME, DELAY, FRAME, FRAME_TIME, HEADROOM_FRAMES, HYSTERESIS_FRAMES, LONG, LOSSLESS,
    OCTET, QUANTUM, SHARED_FRAMES, apart, memory, star,
};
use crate::live::record::Record;
use crate::live::stage::Stage;
use crate::live::tester::Script;
use crate::live::{ms, us};
use proto::counters::DropReason;
use proto::units::{Duration, Instant};

/// Frames that fit: the last of them is the end of headroom.
const FIT: u64 = SHARED_FRAMES + HEADROOM_FRAMES;
/// At so many left XON is due.
const XON: u64 = SHARED_FRAMES - HYSTERESIS_FRAMES;
/// How long a pause of ours holds, in quanta; it is said again after a quarter of that.
const PAUSE_TIME: u64 = 400;
const REFRESH: Duration = Duration::from_ns(51_200 * PAUSE_TIME / 4);
/// When the outputs are blocked.
const BLOCKED: Instant = ms(100);

static RUN: Cached<Record> = Cached::new(run, |record| record.fidelity.ok);
static POOL: Cached<Record> = Cached::new(pool, |record| record.fidelity.ok);

fn run() -> Result<Record, Failure> {
    let room = memory((SHARED_FRAMES, HEADROOM_FRAMES), "", "");
    let link = format!("pause_time = {PAUSE_TIME}");
    let stage = Stage::new(&star(16, "750 ms", &link, &room), "s0")?;
    let mut script = Script::default();
    script.at(BLOCKED, |tester| {
        [2, 4, 6, 8, 10, 16].iter().for_each(|port| tester.pfc(*port, 1 << LOSSLESS, LONG));
    });
    phases(&mut script);
    one_by_one(&mut script);
    deaf(&mut script);
    script.at(REFRESHED.0, |tester| feed(tester, (9, 10), LOSSLESS, SHARED_FRAMES));
    script.at(REFRESHED.1, |tester| tester.pfc(10, 1 << LOSSLESS, 0));
    stage.run(script)
}

/// PFC-01: when each phase begins, and how many frames there are then in all. Source: the case, with
/// m = 0.
const PHASES: [(Instant, u64); 4] =
    [(ms(120), SHARED_FRAMES - 1), (ms(150), SHARED_FRAMES), (ms(180), FIT), (ms(210), FIT + 1)];
const PHASES_END: Instant = ms(240);

fn phases(script: &mut Script) {
    let mut sent = 0;
    for (at, total) in PHASES {
        let count = total - std::mem::replace(&mut sent, total);
        script.at(at, move |tester| feed(tester, (1, 2), LOSSLESS, count));
    }
    script.at(PHASES_END, |tester| tester.pfc(2, 1 << LOSSLESS, 0));
}

/// PFC-01.
pub fn xoff_limit() -> Finding {
    let record = RUN.get()?;
    let record = record.trusted()?;
    let asked = record.asked(1, LOSSLESS);
    let drops = |from, to| record.dropped(1, from, to);
    let ends = PHASES.iter().skip(1).map(|(at, _)| *at).chain([PHASES_END]);
    for (phase, ((from, _), to)) in PHASES.into_iter().zip(ends).enumerate() {
        let said = asked.iter().any(|(at, time)| *at >= from && *at < to && *time > 0);
        same(format!("XOFF in phase {}", phase + 1), said, phase > 0)?;
        let lost = drops(from, to);
        let expected: &[DropReason] = if phase == 3 { &[DropReason::HeadroomOverrun] } else { &[] };
        ensure(lost == expected, || format!("phase {}: {lost:?} dropped", phase + 1))?;
    }
    let due = PHASES[1].0 + FRAME_TIME + DELAY + CONTROL_TIME;
    let said = asked.first().map_or(Instant::NEVER, |(at, _)| *at);
    ensure(apart(said, due) <= us(500) + record.twice_late(), || {
        format!("XOFF leaves at {said}, expected {due}")
    })?;
    same("losses at the input", record.lost(1), "headroom_overrun 1".to_owned())?;
    same("losses at the output", record.lost(2), "nothing".to_owned())?;
    same("frames that leave afterwards", record.data(2, LOSSLESS).count() as u64, FIT)?;
    Ok(format!(
        "frame {SHARED_FRAMES} leads to XOFF, frame {} is lost at the input, none else and nowhere else",
        FIT + 1
    ))
}

/// PFC-02: two frames over the limit, and when one of them is let go.
const OVER: u64 = SHARED_FRAMES + 2;
const RELEASES: Instant = ms(200);
const RELEASE_EVERY: Duration = us(10_000);

fn one_by_one(script: &mut Script) {
    script.at(ms(120), |tester| feed(tester, (3, 4), LOSSLESS, OVER));
    for number in 0..OVER {
        let at = RELEASES + RELEASE_EVERY * number;
        script.at(at, |tester| release_one(tester, 4, LOSSLESS));
    }
}

/// PFC-02.
pub fn xon_limit() -> Finding {
    let record = RUN.get()?;
    let record = record.trusted()?;
    let left: Vec<Instant> = record.data(4, LOSSLESS).map(|seen| seen.at).collect();
    same("frames that leave", left.len() as u64, OVER)?;
    for (number, at) in left.iter().enumerate() {
        let (from, to) = (RELEASES + RELEASE_EVERY * number as u64, *at);
        ensure(to >= from && to < from + RELEASE_EVERY, || {
            format!("frame {number} leaves at {to}, let go at {from}")
        })?;
    }
    let asked = record.asked(3, LOSSLESS);
    let said: Vec<Instant> =
        asked.iter().filter(|(_, time)| *time == 0).map(|(at, _)| *at).collect();
    let due = left[(OVER - XON) as usize - 1] + CONTROL_TIME;
    ensure(said.len() == 1 && apart(said[0], due) <= us(500) + record.twice_late(), || {
        format!("XON leaves at {said:?}, expected once, at {due}")
    })?;
    let after = asked.iter().filter(|(at, _)| *at > due + REFRESH).count();
    same("words after XON", after, 0)?;
    same("losses", record.lost(3), "nothing".to_owned())?;
    Ok(format!("{OVER} frames held; XON once, with the frame that brings them down to {XON}"))
}

/// Headroom for all, in frames: less than each priority of each port may take by itself.
const HEADROOM_POOL: u64 = 12;
const GROUPS: [(u8, u8); 6] = [(1, 3), (1, 4), (2, 3), (2, 4), (3, 3), (3, 4)];
/// When a group is filled up to XOFF, and when with as many as its own headroom would hold.
const FILLS: (Instant, Instant) = (ms(120), ms(260));
const FILL_EVERY: Duration = us(20_000);
/// When the other half of the run releases what waits.
const RELEASED: Instant = ms(500);

fn pool() -> Result<Record, Failure> {
    let pool = format!(", headroom_pool = \"{} B\"", HEADROOM_POOL * FRAME);
    let room = memory((SHARED_FRAMES, HEADROOM_FRAMES), "", &pool);
    let stage = Stage::new(&star(6, "720 ms", "lossless = [3, 4]", &room), "s0")?;
    let mut script = Script::default();
    script.at(BLOCKED, |tester| [4, 6].iter().for_each(|port| tester.pfc(*port, 0xff, LONG)));
    for (number, (port, priority)) in (0u64..).zip(GROUPS) {
        for (at, count) in [(FILLS.0, SHARED_FRAMES), (FILLS.1, HEADROOM_FRAMES)] {
            let at = at + FILL_EVERY * number;
            script.at(at, move |tester| feed(tester, (port, 4), priority, count));
        }
    }
    // PFC-19, at ports 5 and 6.
    for priority in 0..8u8 {
        let at = FILLS.0 + FILL_EVERY * u64::from(priority);
        script.at(at, move |tester| feed(tester, (5, 6), priority, SHARED_FRAMES + 1));
    }
    script.at(RELEASED, |tester| tester.pfc(6, 0xff, 0));
    stage.run(script)
}

/// PFC-03.
pub fn headroom_pool() -> Finding {
    let record = POOL.get()?;
    let record = record.trusted()?;
    // Of port 5, two groups stand a frame over their threshold by then.
    let mut room = HEADROOM_POOL - 2;
    let mut told = Vec::new();
    for (number, (port, priority)) in (0u64..).zip(GROUPS) {
        let from = FILLS.0 + FILL_EVERY * number;
        let asked = record.asked(port, priority).iter().any(|(at, _)| *at >= from && *at < FILLS.1);
        same(format!("XOFF of priority {priority} at port {port}"), asked, true)?;
        let from = FILLS.1 + FILL_EVERY * number;
        let lost = record.dropped(port, from, from + FILL_EVERY).len() as u64;
        let fits = room.min(HEADROOM_FRAMES);
        same(format!("lost of priority {priority} at port {port}"), lost, HEADROOM_FRAMES - fits)?;
        room -= fits;
        told.push(lost.to_string());
    }
    same(
        "headroom_pool_watermark",
        record.named(1, "headroom_pool_watermark"),
        HEADROOM_POOL * FRAME,
    )?;
    Ok(format!(
        "a pool of {HEADROOM_POOL} frames, 2 of them taken elsewhere: of {HEADROOM_FRAMES} frames each \
         six groups lose {}; watermark {HEADROOM_POOL} frames",
        told.join(", ")
    ))
}

/// PFC-19.
pub fn asymmetric() -> Finding {
    let record = POOL.get()?;
    let record = record.trusted()?;
    let held: usize = (0..8).map(|p| record.data_within(6, p, (BLOCKED, RELEASED))).sum();
    same("frames out while all is paused", held, 0)?;
    for priority in 0..8 {
        let asked = !record.asked(5, priority).is_empty();
        same(format!("silence asked of priority {priority}"), asked, [3, 4].contains(&priority))?;
    }
    // A lossy priority loses what it may not share.
    same("what the input loses", record.lost(5), "buffer_full 6".to_owned())?;
    let out: usize = (0..8).map(|p| record.data_within(6, p, (RELEASED, Instant::NEVER))).sum();
    same("frames out afterwards", out as u64, 8 * SHARED_FRAMES + 2)?;
    Ok("pauses of all eight priorities are obeyed; PFC is sent for 3 and 4 alone".to_owned())
}

/// PFC-12: from when until when a group stays above XON, ten pause times and some.
const REFRESHED: (Instant, Instant) = (ms(120), ms(360));

/// PFC-12, the switch: how often it asks, and that it stops.
///
/// # Errors
/// If it lets the pause run out, or goes on after XON.
pub fn refreshes() -> Result<usize, Failure> {
    let record = RUN.get()?;
    let record = record.trusted()?;
    let asked = record.asked(9, LOSSLESS);
    let Some(end) = asked.iter().position(|(_, time)| *time == 0) else {
        return Err("no XON".to_owned().into());
    };
    same("words after XON", asked.len() - end - 1, 0)?;
    let most = QUANTUM * PAUSE_TIME;
    let gaps = asked[..end].windows(2).map(|pair| pair[1].0.since(pair[0].0));
    let longest = gaps.max().unwrap_or(most);
    ensure(longest < most, || format!("{longest} from one XOFF to the next, the pause is {most}"))?;
    ensure(end >= 40, || format!("XOFF was said {end} times in ten pause times"))?;
    Ok(end)
}

/// PFC-14 and PFC-15: who sends to whom, how many XOFFs it misses, and how late it obeys, in quanta.
///
/// Headroom holds two frames beside what comes during both delays and 58 quanta.
const DEAF: [((u8, u8), u64, u64); 7] = [
    ((5, 6), 1, 0),
    ((7, 8), 2, 0),
    ((11, 16), 0, 0),
    ((12, 16), 0, 45),
    ((13, 16), 0, 78),
    ((14, 16), 0, 144),
    ((15, 16), 0, 210),
];
const DEAF_AT: Instant = ms(130);

/// From the first bit of the first frame until such a neighbour falls silent.
fn heard_after(missed: u64, late: u64) -> Duration {
    FRAME_TIME * SHARED_FRAMES + DELAY * 2 + CONTROL_TIME + REFRESH * missed + QUANTUM * late
}

/// Frames that it begins until then.
fn sent_until(length: Duration) -> u64 {
    length.as_ps().div_ceil(FRAME_TIME.as_ps())
}

fn deaf(script: &mut Script) {
    for (pair, missed, late) in DEAF {
        let count = sent_until(heard_after(missed, late));
        script.at(DEAF_AT, move |tester| feed(tester, pair, LOSSLESS, count));
    }
}

/// What the row's switch port loses, which must be what was computed; by how much more than that the
/// neighbour would have sent by the XOFFs that were seen, nothing.
fn lost_by(record: &Record, row: usize) -> Result<u64, Failure> {
    let ((port, _), missed, late) = DEAF[row];
    let sent = sent_until(heard_after(missed, late));
    let asked = record.asked(port, LOSSLESS);
    let obeyed = asked.get(missed as usize).ok_or_else(|| format!("port {port}: no such XOFF"))?;
    let silent = (obeyed.0 + DELAY + QUANTUM * late).since(DEAF_AT);
    same(format!("frames until port {port} hears XOFF"), sent_until(silent), sent)?;
    let lost = sent.saturating_sub(FIT);
    let expected =
        if lost == 0 { "nothing".to_owned() } else { format!("headroom_overrun {lost}") };
    same(format!("what port {port} loses"), record.lost(port), expected)?;
    Ok(lost)
}

/// PFC-14.
pub fn lost_xoff() -> Finding {
    let record = RUN.get()?;
    let record = record.trusted()?;
    let (one, two) = (lost_by(record, 0)?, lost_by(record, 1)?);
    ensure(one == 0 && two > 0, || format!("{one} lost with one XOFF, {two} with two"))?;
    Ok(format!("one XOFF missed: {one} frames lost, headroom absorbs; two: {two}, each counted"))
}

/// PFC-15.
pub fn slow_responder() -> Finding {
    let record = RUN.get()?;
    let record = record.trusted()?;
    // rate * (delay both ways + N) + 2 frames = headroom
    let room = FRAME_TIME * (HEADROOM_FRAMES - 2) - DELAY * 2;
    let computed = room.as_ps() / QUANTUM.as_ps();
    let beyond = computed + (FRAME_TIME * 2).as_ps() / QUANTUM.as_ps();
    let mut told = Vec::new();
    for (row, (_, _, late)) in DEAF.iter().enumerate().skip(2) {
        let lost = lost_by(record, row)?;
        let holds = if *late <= computed { lost == 0 } else { *late <= beyond || lost > 0 };
        ensure(holds, || format!("{late} quanta late: {lost} lost, computed are {computed}"))?;
        told.push(format!("{late}: {lost}"));
    }
    let octets = room.as_ps() / OCTET.as_ps();
    Ok(format!(
        "harmless up to {computed} quanta ({octets} octets); lost by lateness {}",
        told.join(", ")
    ))
}
