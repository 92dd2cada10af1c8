//! PFC-01 to PFC-03, PFC-12, PFC-14, PFC-15 and PFC-19: where a pause is sent and where it ends, how far
//! headroom goes, and neighbours that miss pauses or obey late.
//!
//! ```text
//!   port  1 ─▶  2   over every limit                5 ─▶  6   misses an XOFF
//!         3 ─▶  4   over XOFF, then one by one      7 ─▶  8   misses two
//!         9 ─▶ 10   stays above XON                11 … 15 ─▶ 16   obey late
//! ```

use crate::ethernet::*;
use crate::prelude::*;
use scenario::render::Lab;

/// A memory model whose limits are known in full frames of one input.
#[derive(Clone, Copy)]
struct Model {
    kind: &'static str,
    /// The frame that leads to XOFF.
    xoff: u64,
    /// The frames that fit.
    fit: u64,
    /// At so many left XON is due.
    xon: u64,
    /// How long each phase of PFC-01 takes.
    phase: Duration,
}

/// Each model, with [`SHARED_FRAMES`] and [`HEADROOM_FRAMES`] a port; live the first alone. The buffers
/// of four ports are one in the last, and one input may take all of it.
const MODELS: [Model; 3] = [
    Model { kind: "shared-pool", xoff: 8, fit: FIT, xon: 5, phase: us(30_000) },
    Model { kind: "per-input", xoff: 8, fit: FIT, xon: 4, phase: us(30_000) },
    Model { kind: "global-watermark", xoff: 32, fit: 48, xon: 16, phase: us(100_000) },
];

/// Frames that fit: the last of them is the end of headroom.
const FIT: u64 = SHARED_FRAMES + HEADROOM_FRAMES;
/// How long a pause of ours holds, in quanta; it is sent again after a quarter of that.
const PAUSE_TIME: u64 = 400;
/// When the outputs are blocked, and when frames come.
const BLOCKED: Instant = ms(100);
const COME: Instant = ms(120);

const fn refresh_of(time: u64) -> Duration {
    Duration::from_ns(51_200 * time / 4)
}

static RUN: Shared<Record> = Shared::new(|on| run(on, PAUSE_TIME));

fn run(on: Level, time: u64) -> Result<Record> {
    let room = memory((SHARED_FRAMES, HEADROOM_FRAMES), "", "");
    let link = format!("pause_time = {time}");
    play(on, &star(16, "750 ms", &link, &room), "s0", |script| {
        block(script, &[2, 4, 6, 8, 10, 16]);
        phases(script, &MODELS[0]);
        one_by_one(script, &MODELS[0]);
        for (pair, missed, late) in DEAF {
            let count = sent_until(heard_after(missed, late, time));
            script.at(DEAF_AT, move |bed| feed(bed, pair, LOSSLESS, count));
        }
        script.at(REFRESHED.0, |bed| feed(bed, (9, 10), LOSSLESS, SHARED_FRAMES));
        script.at(REFRESHED.1, |bed| bed.pfc(10, 1 << LOSSLESS, 0));
    })
}

/// Pauses the outputs `ports`.
fn block(script: &mut Script, ports: &'static [u8]) {
    script.at(BLOCKED, |bed| ports.iter().for_each(|port| bed.pfc(*port, 1 << LOSSLESS, LONG)));
}

/// The runs of each model: the common one for the first, and one of their own for the others, on the
/// virtual clock alone.
fn each_model(
    on: Level,
    add: fn(&mut Script, &Model),
    judge: fn(&Record, &Model) -> Result<()>,
) -> Result<usize> {
    judge(&*RUN.on(on)?, &MODELS[0])?;
    let others = on.swept(&MODELS[1..]);
    for model in others {
        let (buffer, headroom) = (FIT * FRAME, HEADROOM_FRAMES * FRAME);
        let room = format!(
            "switch = {{ memory = \"{}\", buffer = \"{buffer} B\", headroom = \"{headroom} B\", \
             jitter = \"0 ns\" }}\n",
            model.kind
        );
        let link = format!("pause_time = {PAUSE_TIME}");
        let record = play(on, &star(4, "1 s", &link, &room), "s0", |script| {
            block(script, &[2, 4]);
            add(script, model);
        })?;
        judge(&record, model).map_err(|failure| failure.of(model.kind))?;
    }
    Ok(1 + others.len())
}

/// PFC-01: when each phase begins, and how many frames there are then in all. Source: the case, with
/// m = 0.
fn totals(model: &Model) -> [(Instant, u64); 4] {
    let mut begin = COME;
    [model.xoff - 1, model.xoff, model.fit, model.fit + 1].map(|total| {
        begin = begin + model.phase;
        (Instant::from_ps(begin.as_ps() - model.phase.as_ps()), total)
    })
}

fn phases(script: &mut Script, model: &Model) {
    let mut sent = 0;
    let totals = totals(model);
    for (at, total) in totals {
        let count = total - std::mem::replace(&mut sent, total);
        script.at(at, move |bed| feed(bed, (1, 2), LOSSLESS, count));
    }
    if model.kind == "shared-pool" {
        // Another priority has limits of its own.
        script.at(totals[2].0 + us(20_000), |bed| feed(bed, (1, 2), 1, 1));
    }
    script.at(totals[3].0 + model.phase, |bed| bed.pfc(2, 1 << LOSSLESS, 0));
}

fn four_phases(record: &Record, model: &Model) -> Result<()> {
    let (totals, end) = (totals(model), totals(model)[3].0 + model.phase);
    let pauses = record.pauses(1, LOSSLESS);
    for (phase, (from, _)) in totals.into_iter().enumerate() {
        let to = from + model.phase;
        let sent = pauses.iter().any(|(at, time)| *at >= from && *at < to && *time > 0);
        same(format!("XOFF in phase {}", phase + 1), sent, phase > 0)?;
        let lost = record.dropped(1, (from, to));
        let expected: &[DropReason] = if phase == 3 { &[DropReason::HeadroomOverrun] } else { &[] };
        ensure!(lost == expected, "phase {}: {lost:?} dropped", phase + 1);
    }
    let due = totals[1].0 + FRAME_TIME + DELAY + CONTROL_TIME;
    let within = record.within(us(500));
    // XOFF is sent again while the port is over its limit, and at no other time.
    let xoffs = pauses.iter().filter(|(at, _)| *at < end).zip(0..);
    for ((at, time), n) in xoffs.take(if record.live.is_some() { 1 } else { usize::MAX }) {
        near(format!("XOFF {n}"), *at, due + refresh_of(PAUSE_TIME) * n, within)?;
        same("its quanta", u64::from(*time), PAUSE_TIME)?;
    }
    same("losses at the input", record.lost(1), "headroom_overrun 1")?;
    same("losses at the output", record.lost(2), "nothing")?;
    let drops = record.events(1, ALWAYS);
    let drops = drops.filter(|event| matches!(event.kind, EventKind::Drop { .. }));
    ensure!(drops.map(|event| event.tc).eq([LOSSLESS]), "another priority lost");
    same("frames that leave afterwards", record.data(2, LOSSLESS).total(), model.fit)
}

/// PFC-01.
pub fn xoff_limit(on: Level) -> Finding {
    let models = each_model(on, phases, four_phases)?;
    Ok(format!("XOFF at frame {SHARED_FRAMES}, loss at frame {}; {models} memory models", FIT + 1))
}

/// PFC-02: when one frame after the other is let go of two over the limit.
const RELEASES: Instant = ms(200);
const RELEASE_EVERY: Duration = us(10_000);

fn one_by_one(script: &mut Script, model: &Model) {
    let over = model.xoff + 2;
    script.at(COME, move |bed| feed(bed, (3, 4), LOSSLESS, over));
    script.every(RELEASES, RELEASE_EVERY, over, |bed, _| {
        bed.pfc(4, 1 << LOSSLESS, 0);
        bed.pfc(4, 1 << LOSSLESS, LONG);
    });
    // The frame has left by then.
    script.every(RELEASES + us(9_000), RELEASE_EVERY, over, |bed, _| bed.sample());
}

fn xon_once(record: &Record, model: &Model) -> Result<()> {
    let over = model.xoff + 2;
    let left = record.data(4, LOSSLESS).times();
    same("frames that leave", left.len() as u64, over)?;
    for (number, at) in left.iter().enumerate() {
        let from = RELEASES + RELEASE_EVERY * number as u64;
        lies(format!("frame {number}"), *at, from..from + RELEASE_EVERY)?;
    }
    if record.live.is_none() {
        let held: Vec<u64> = (0..over).rev().map(|left| left * FRAME).collect();
        same("octets held after each release", record.held(3, LOSSLESS), held)?;
    }
    let pauses = record.pauses(3, LOSSLESS);
    let xons: Vec<_> = pauses.iter().filter(|(_, time)| *time == 0).map(|(at, _)| *at).collect();
    let due = left[(over - model.xon) as usize - 1] + CONTROL_TIME;
    same("XONs", xons.len(), 1)?;
    near("XON", xons[0], due, record.within(us(500)))?;
    let after = pauses.iter().filter(|(at, _)| *at > due + refresh_of(PAUSE_TIME)).count();
    same("pauses after XON", after, 0)?;
    same("losses", record.lost(3), "nothing".to_owned())
}

/// PFC-02.
pub fn xon_limit(on: Level) -> Finding {
    let models = each_model(on, one_by_one, xon_once)?;
    Ok(format!("XON once, with the frame that reaches the limit; {models} memory models"))
}

/// Headroom for all, in frames: less than each priority of each port may take by itself.
const HEADROOM_POOL: u64 = 12;
const GROUPS: [(u8, u8); 6] = [(1, 3), (1, 4), (2, 3), (2, 4), (3, 3), (3, 4)];
/// When a group is filled up to XOFF, and when with as many as its own headroom would hold.
const FILLS: (Instant, Instant) = (COME, ms(260));
const FILL_EVERY: Duration = us(20_000);
/// When the outputs are opened.
const RELEASED: Instant = ms(500);

static POOL: Shared<Record> = Shared::new(|on| {
    let pool = format!(", headroom_pool = \"{} B\"", HEADROOM_POOL * FRAME);
    let room = memory((SHARED_FRAMES, HEADROOM_FRAMES), "", &pool);
    play(on, &star(6, "720 ms", "lossless = [3, 4]", &room), "s0", |script| {
        script.pause((BLOCKED, RELEASED), &[4, 6], 0xff);
        for (number, (port, priority)) in (0u64..).zip(GROUPS) {
            for (at, count) in [(FILLS.0, SHARED_FRAMES), (FILLS.1, HEADROOM_FRAMES)] {
                let at = at + FILL_EVERY * number;
                script.at(at, move |bed| feed(bed, (port, 4), priority, count));
            }
        }
        let filled = FILLS.1 + us(19_000);
        script.every(filled, FILL_EVERY, GROUPS.len() as u64, |bed, _| bed.sample());
        // PFC-19, at ports 5 and 6.
        script.every(FILLS.0, FILL_EVERY, 8, |bed, priority| {
            feed(bed, (5, 6), priority as u8, SHARED_FRAMES + 1)
        });
    })
});

/// PFC-03.
pub fn headroom_pool(on: Level) -> Finding {
    let record = POOL.on(on)?;
    // Two groups of port 5 stand a frame over their threshold by then.
    let mut room = HEADROOM_POOL - 2;
    let mut losses = Vec::new();
    for (number, (port, priority)) in (0u64..).zip(GROUPS) {
        let what = format!("priority {priority} of port {port}");
        let from = FILLS.0 + FILL_EVERY * number;
        let pauses = record.pauses(port, priority);
        let pauses = pauses.iter().filter(|(at, _)| *at >= from && *at < FILLS.1).count();
        same(format!("XOFFs for {what}"), pauses, 1)?;
        let from = FILLS.1 + FILL_EVERY * number;
        let lost = record.events(port, (from, from + FILL_EVERY));
        let overrun =
            |kind| matches!(kind, EventKind::Drop { reason: DropReason::HeadroomOverrun, .. });
        let lost = lost.filter(|event| overrun(event.kind) && event.tc == priority).count() as u64;
        let fits = room.min(HEADROOM_FRAMES);
        same(format!("frames lost of {what}"), lost, HEADROOM_FRAMES - fits)?;
        let held = record.lane(port, priority).in_queue.max;
        same(format!("most octets held of {what}"), held, (SHARED_FRAMES + fits) * FRAME)?;
        if let Some(held) = record.held(port, priority).get(number as usize) {
            same(format!("octets held of {what}"), *held, (SHARED_FRAMES + fits) * FRAME)?;
        }
        room -= fits;
        losses.push(lost.to_string());
    }
    let watermark = record.named(1, "headroom_pool_watermark");
    same("headroom_pool_watermark", watermark, HEADROOM_POOL * FRAME)?;
    let out = record.packets(4).since(RELEASED).total();
    same("frames that leave afterwards", out, 6 * SHARED_FRAMES + HEADROOM_POOL - 2)?;
    Ok(format!("{HEADROOM_POOL} frames of headroom for all: six groups lose {}", losses.join(", ")))
}

/// PFC-19.
pub fn asymmetric(on: Level) -> Finding {
    let record = POOL.on(on)?;
    let held: u64 = (0..8).map(|p| record.data_within(6, p, (BLOCKED, RELEASED))).sum();
    same("frames out while all is paused", held, 0)?;
    for priority in 0..8 {
        let pauses = !record.pauses(5, priority).is_empty();
        same(format!("pauses for priority {priority}"), pauses, [3, 4].contains(&priority))?;
    }
    // A lossy priority loses what it may not share.
    same("losses of the input", record.lost(5), "buffer_full 6")?;
    let out: u64 = (0..8).map(|p| record.data_within(6, p, (RELEASED, Instant::NEVER))).sum();
    same("frames out afterwards", out, 8 * SHARED_FRAMES + 2)?;
    Ok("pauses of all eight priorities are obeyed; PFC is sent for 3 and 4 alone".into())
}

/// PFC-12: from when until when a group stays above XON, ten pause times and some.
const REFRESHED: (Instant, Instant) = (COME, ms(360));

/// PFC-12, the switch: how often XOFF is sent, and that it ends.
///
/// # Errors
/// If the pause runs out, or XOFF is sent after XON.
pub fn refreshes(on: Level) -> Result<usize> {
    let record = RUN.on(on)?;
    let pauses = record.pauses(9, LOSSLESS);
    let end = pauses.iter().position(|(_, time)| *time == 0).ok_or("no XON")?;
    same("pauses after XON", pauses.len() - end - 1, 0)?;
    let most = QUANTUM * PAUSE_TIME;
    for gap in pauses[..end].windows(2).map(|pair| pair[1].0.since(pair[0].0)) {
        let holds = if record.live.is_some() { gap < most } else { gap == refresh_of(PAUSE_TIME) };
        ensure!(holds, "{gap} from one XOFF to the next, the pause is {most}");
    }
    ensure!(end >= 40, "XOFF was sent {end} times in ten pause times");
    Ok(end)
}

/// PFC-14 and PFC-15: ports from and to, how many XOFFs the neighbour misses, and how late it obeys, in
/// quanta. Headroom holds two frames beside what comes during both delays and 58 quanta.
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

/// From the first bit of the first frame until such a neighbour stops.
fn heard_after(missed: u64, late: u64, time: u64) -> Duration {
    let xoff = FRAME_TIME * SHARED_FRAMES + DELAY * 2 + CONTROL_TIME;
    xoff + refresh_of(time) * missed + QUANTUM * late
}

/// Frames that it begins until then.
fn sent_until(length: Duration) -> u64 {
    length.as_ps().div_ceil(FRAME_TIME.as_ps())
}

/// The losses of the row's switch port, which must be those computed from the XOFFs that were seen.
fn lost_by(record: &Record, row: usize, time: u64) -> Result<u64> {
    let ((port, _), missed, late) = DEAF[row];
    let sent = sent_until(heard_after(missed, late, time));
    let pauses = record.pauses(port, LOSSLESS);
    let obeyed = pauses.get(missed as usize).ok_or_else(|| format!("port {port}: no such XOFF"))?;
    let silent = (obeyed.0 + DELAY + QUANTUM * late).since(DEAF_AT);
    same(format!("frames until port {port} receives XOFF"), sent_until(silent), sent)?;
    let lost = sent.saturating_sub(FIT);
    same(
        format!("headroom overruns of port {port}"),
        record.drops(port, DropReason::HeadroomOverrun),
        lost,
    )?;
    same(format!("losses of port {port}"), record.port(port).drops.total(), lost)?;
    Ok(lost)
}

/// PFC-14: with several pause times on the virtual clock.
pub fn lost_xoff(on: Level) -> Finding {
    let record = RUN.on(on)?;
    let (one, two) = (lost_by(&record, 0, PAUSE_TIME)?, lost_by(&record, 1, PAUSE_TIME)?);
    ensure!(one == 0 && two > 0, "{one} lost with one XOFF, {two} with two");
    let mut parts = Vec::new();
    for time in on.swept(&[160, 600, 1_000]) {
        let record = run(on, *time)?;
        parts.push(format!("; {} with {time} quanta", lost_by(&record, 0, *time)?));
    }
    Ok(format!("one XOFF missed: {one} lost; two: {two}, each counted{}", parts.concat()))
}

/// PFC-15: neighbours that are played, and on the virtual clock a NIC that obeys late.
pub fn slow_responder(on: Level) -> Finding {
    let record = RUN.on(on)?;
    // rate * (delay both ways + N) + 2 frames = headroom
    let room = FRAME_TIME * (HEADROOM_FRAMES - 2) - DELAY * 2;
    let computed = room.as_ps() / QUANTUM.as_ps();
    let beyond = computed + (FRAME_TIME * 2).as_ps() / QUANTUM.as_ps();
    let mut parts = Vec::new();
    for (row, (_, _, late)) in DEAF.iter().enumerate().skip(2) {
        let lost = lost_by(&record, row, PAUSE_TIME)?;
        let holds = if *late <= computed { lost == 0 } else { *late <= beyond || lost > 0 };
        ensure!(holds, "{late} quanta late: {lost} lost, computed are {computed}");
        parts.push(format!("{late}: {lost}"));
    }
    let nic = on.only_engine(late_nic)?;
    Ok(format!("harmless up to {computed} quanta; lost by lateness {}{nic}", parts.join(", ")))
}

/// Headroom of the switch whose neighbour is a NIC that obeys late, in full frames.
const LATE_HEADROOM: u64 = 40;

/// Where losses begin if a NIC obeys late, which is swept up to twice the headroom.
fn late_nic() -> Result<String> {
    let room = FRAME_TIME * (LATE_HEADROOM - 2) - DELAY * 2;
    let computed = room.as_ps() / QUANTUM.as_ps();
    let (mut first, mut step, mut late) = (None, 8, 0);
    while late < 2 * computed || step == 1 {
        match (lost_if_late(late)?, first) {
            (0, None) => {}
            (0, Some(first)) => bail!("losses {first} quanta late, none {late} quanta late"),
            (_, None) if step == 1 => {
                first = Some(late);
                break;
            }
            // Once more, quantum by quantum.
            (_, None) => (late, step) = (late.saturating_sub(8), 1),
            (_, Some(_)) => {}
        }
        late += step;
    }
    let first = first.ok_or("nothing is ever lost")?;
    for late in (first..2 * computed).step_by(8) {
        ensure!(lost_if_late(late)? > 0, "no losses {late} quanta late");
    }
    let later = QUANTUM * first - QUANTUM * computed;
    ensure!(first > computed && later <= FRAME_TIME * 2, "losses from {first}, not {computed}");
    Ok(format!("; a NIC does harm from {first} quanta on, each loss counted"))
}

/// Frames that a switch loses whose output is blocked and whose neighbour is a NIC that obeys so late.
fn lost_if_late(late: u64) -> Result<u64> {
    let rest = memory((SHARED_FRAMES, LATE_HEADROOM), "", "")
        + "nic = { storm = [{ at = \"h2\", start = \"0 ms\" }] }\n"
        + &backlog("all", "h1", "h2", "sl = 3");
    let text = Star { nics: 2, rest: &rest, ..STAR }.text();
    let change = |lab: &mut Lab| {
        if let FlowControlConfig::Pause(pause) = &mut lab.nics[0].link.control {
            pause.response = QUANTUM * late;
        }
    };
    let readings = hampered(&text, change, |_, device| device, &[ms(200)])?;
    let [sender, _, relay] = &readings[0][..] else { unreachable!("three devices were read") };
    let sent = sender.ports[0].lanes[usize::from(LOSSLESS)].counters.tx_frames;
    let lost = relay.ports[0].drops.get(DropReason::HeadroomOverrun);
    // One may be on its way when the run ends.
    ensure!(sent - (relay.balance.buffered + lost) <= 1, "{sent} sent, {lost} lost");
    same("all losses", relay.ports.iter().map(|port| port.drops.total()).sum::<u64>(), lost)?;
    Ok(lost)
}
