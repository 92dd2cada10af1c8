//! QOS-06 to QOS-10: how much may wait, what is reserved, what is remembered of it, and what a switch or a
//! daemon refuses.

use super::OUT;
use crate::ethernet::*;
use crate::prelude::*;
use proto::device::Instrumented;
use switchd::config::SwitchConfig;
use switchd::memory::headroom::MemoryError;
use switchd::switch::{ConfigError, Switch, headroom_needed};
use testbed::frames::ethernet::{data, ecn, frame, roce, with_ecn};

/// Octets of a full payload.
const MTU: usize = 2048;

/// A priority that may lose frames.
const LOSSY: u8 = 1;
/// When ways out are shut, when frames come, and when they may go.
const SHUT: Instant = ms(100);
const COME: Instant = ms(120);
const OPEN: Instant = ms(400);

/// QOS-06: frames that one lossy queue holds.
const QUEUE: u64 = 20;

static LIMIT: Shared<Record> = Shared::new(|on| {
    let pool = format!(", lossy_queue = \"{} B\"", QUEUE * FRAME + FRAME / 2);
    let room = memory((100, HEADROOM_FRAMES), "", &pool);
    play(on, &star(OUT, "700 ms", "", &room), "s0", |script| {
        script.pause((SHUT, OPEN), &[OUT], 0xff);
        script.at(COME, |bed| {
            [1, 2].iter().for_each(|from| feed(bed, (*from, OUT), LOSSY, QUEUE / 2))
        });
        script.at(BEYOND, |bed| [1, 2].iter().for_each(|from| feed(bed, (*from, OUT), LOSSY, 1)));
        // Neither another queue nor what is lossless knows of the limit.
        script.at(ms(200), |bed| feed(bed, (1, OUT), LOSSY + 1, QUEUE));
        script.at(ms(200), |bed| feed(bed, (3, OUT), LOSSLESS, QUEUE + 2));
    })
});

const BEYOND: Instant = ms(170);

/// QOS-06.
pub fn lossy_queue_limit(on: Level) -> Finding {
    let record = LIMIT.on(on)?;
    let early = record.dropped(OUT, (SHUT, BEYOND));
    ensure!(early.is_empty(), "{early:?} dropped within the limit");
    same("losses at the output", record.lost(OUT), "queue_full 2")?;
    record.nothing_lost(&[OUT])?;
    let control: usize = (1..=OUT).map(|port| record.control(port).count()).sum();
    same("frames of MAC control", control, 0)?;
    for (priority, expected) in [(LOSSY, QUEUE), (LOSSY + 1, QUEUE), (LOSSLESS, QUEUE + 2)] {
        let left = record.data(OUT, priority).total();
        same(format!("frames of priority {priority} that leave"), left, expected)?;
    }
    Ok(format!("{QUEUE} frames fit, the next from either input is lost at the output; no PFC"))
}

/// QOS-07: octets shared by all, and reserved for each port and priority, in full frames.
const SHARED: u64 = 20;
const OWN: u64 = 2;
/// When the greedy one has taken all, and when each other fills its own.
const GREEDY: Instant = ms(120);
const OTHERS: Instant = ms(190);
const OTHERS_EVERY: Duration = us(7_000);
const BEYOND_HEADROOM: Instant = ms(380);

fn others() -> impl Iterator<Item = (u64, u8, u8)> {
    let all = (1..=3u8).flat_map(|port| (0..8u8).map(move |priority| (port, priority)));
    let others = all.filter(|one| *one != (1, LOSSY));
    (0..).zip(others).map(|(number, (port, priority))| (number, port, priority))
}

static RESERVE: Shared<Record> = Shared::new(|on| {
    let reserves = u64::from(OUT) * (8 * OWN + HEADROOM_FRAMES);
    let room = format!(
        "switch = {{ memory = \"shared-pool\", headroom = \"{} B\", jitter = \"0 ns\", pool = \
         {{ size = \"{} B\", reserve = \"{} B\", threshold = \"{} B\", hysteresis = \"0 B\" }} }}\n",
        HEADROOM_FRAMES * FRAME,
        (reserves + SHARED) * FRAME,
        OWN * FRAME,
        SHARED * FRAME
    );
    play(on, &star(OUT, "500 ms", "", &room), "s0", |script| {
        script.at(SHUT, |bed| bed.pfc(OUT, 0xff, LONG));
        script.at(GREEDY, |bed| feed(bed, (1, OUT), LOSSY, OWN + SHARED + 10));
        for (number, port, priority) in others() {
            let at = OTHERS + OTHERS_EVERY * number;
            script.at(at, move |bed| feed(bed, (port, OUT), priority, OWN + 1));
        }
        // Of their headroom the lossless ones have used one.
        script.at(BEYOND_HEADROOM, |bed| {
            (1..=3).for_each(|port| feed(bed, (port, OUT), LOSSLESS, HEADROOM_FRAMES));
        });
    })
});

/// QOS-07.
pub fn reserve(on: Level) -> Finding {
    let record = RESERVE.on(on)?;
    let lost = record.dropped(1, (GREEDY, OTHERS));
    ensure!(lost == [DropReason::BufferFull; 10], "the greedy one loses {lost:?}");
    for (number, port, priority) in others() {
        let from = OTHERS + OTHERS_EVERY * number;
        let lost = record.dropped(port, (from, from + OTHERS_EVERY));
        // Its reserve holds two; the third is lost, or is headroom's.
        let expected = usize::from(priority != LOSSLESS);
        same(format!("{priority} of port {port}"), lost, vec![DropReason::BufferFull; expected])?;
    }
    for port in 1..=3 {
        let pauses = record.pauses(port, LOSSLESS).len();
        same(format!("XOFFs to port {port}"), pauses, 1)?;
        let lost = record.dropped(port, (BEYOND_HEADROOM, Instant::NEVER));
        ensure!(lost == [DropReason::HeadroomOverrun], "port {port} loses {lost:?} at last");
    }
    let groups = others().count();
    Ok(format!("{SHARED} shared frames are taken; each of {groups} groups has its {OWN}"))
}

/// QOS-08: frames that wait at each of so many inputs: below the threshold, at it, in headroom, to its end.
const STEPS: [u64; 5] = [2, 5, 8, 10, 12];

static MARKS: Shared<Record> = Shared::new(|on| {
    let room = memory((SHARED_FRAMES, HEADROOM_FRAMES), "", "");
    play(on, &star(10, "600 ms", "", &room), "s0", |script| {
        script.pause((SHUT, OPEN), &[6, 7, 8, 9, 10], 0xff);
        for (port, frames) in (1..).zip(STEPS) {
            script.at(COME, move |bed| feed(bed, (port, port + 5), LOSSLESS, frames));
        }
    })
});

/// QOS-08.
pub fn watermarks_stay(on: Level) -> Finding {
    let record = MARKS.on(on)?;
    for (port, frames) in (1..).zip(STEPS) {
        let shared = frames.min(SHARED_FRAMES) * FRAME;
        let headroom = frames.saturating_sub(SHARED_FRAMES) * FRAME;
        let name = |what: &str| format!("pg{LOSSLESS}_{what}_watermark");
        same(format!("{frames} frames: shared"), record.named(port, &name("shared")), shared)?;
        let found = record.named(port, &name("headroom"));
        same(format!("{frames} frames: headroom"), found, headroom)?;
        let queue = record.lane(port + 5, LOSSLESS).out_queue;
        same(format!("{frames} frames: queue"), queue.max, frames * FRAME)?;
        same(format!("{frames} frames: queue at the end"), queue.value, 0)?;
    }
    let all: u64 = STEPS.iter().sum::<u64>() * FRAME;
    let headroom: u64 = STEPS.iter().map(|frames| frames.saturating_sub(SHARED_FRAMES)).sum();
    same("buffer_pool_watermark", record.named(1, "buffer_pool_watermark"), all)?;
    same("headroom_pool_watermark", record.named(1, "headroom_pool_watermark"), headroom * FRAME)?;
    record.nothing_lost(&[])?;
    let cleared = on.only_engine(frame_by_frame)?;
    let others = on.only_engine(in_other_models)?;
    Ok(format!("groups of {STEPS:?} frames, to the octet, after all has left{cleared}{others}"))
}

/// The watermarks of port 1 and of the queue at port 2, in frames: shared, headroom, queue, pool, headroom
/// pool.
fn watermarks(bench: &mut Bench<Switch>) -> [u64; 5] {
    let queue = bench.reading().ports[1].lanes[usize::from(LOSSLESS)].counters.out_queue.max;
    let named = |bench: &mut Bench<Switch>, name: &str| bench.named(1, name) / FRAME;
    [
        named(bench, &format!("pg{LOSSLESS}_shared_watermark")),
        named(bench, &format!("pg{LOSSLESS}_headroom_watermark")),
        queue / FRAME,
        named(bench, "buffer_pool_watermark"),
        named(bench, "headroom_pool_watermark"),
    ]
}

/// Frame by frame up, all the way down, and only then cleared.
fn frame_by_frame() -> Result<&'static str> {
    let room = memory((SHARED_FRAMES, HEADROOM_FRAMES), "", "");
    let config = Stage::new(Level::Engine, &star(2, "1 s", "", &room), "s0")?.switch_config()?;
    let mut bench = Bench::new(Switch::new(config)?, 0);
    let all = SHARED_FRAMES + HEADROOM_FRAMES;
    let of = |frames: u64| {
        let (shared, headroom) = (frames.min(SHARED_FRAMES), frames.saturating_sub(SHARED_FRAMES));
        [shared, headroom, frames, frames, headroom]
    };
    let expect = |bench: &mut Bench<Switch>, when: &str, expected: [u64; 5]| {
        let found = watermarks(bench);
        ensure!(found == expected, "{when}: {found:?}, expected {expected:?}");
        Ok(())
    };
    bench.pfc(2, 1 << LOSSLESS, LONG);
    for frames in 1..=all {
        bench.inject(1, data(1, 2, LOSSLESS, 0));
        expect(&mut bench, &format!("{frames} frames held"), of(frames))?;
        let held = bench.reading().ports[0].lanes[usize::from(LOSSLESS)].counters.in_queue.value;
        same("octets held", held, frames * FRAME)?;
    }
    bench.pfc(2, 1 << LOSSLESS, 0);
    for left in (0..all).rev() {
        bench.run_for(FRAME_TIME);
        expect(&mut bench, &format!("{left} frames left"), of(all))?;
    }
    bench.pfc(2, 1 << LOSSLESS, LONG);
    (0..3).for_each(|_| bench.inject(1, data(1, 2, LOSSLESS, 0)));
    expect(&mut bench, "3 frames held", of(all))?;
    bench.device.begin_bin(bench.now());
    bench.device.clear_watermarks();
    expect(&mut bench, "cleared with 3 frames held", of(3))?;
    bench.inject(1, data(1, 2, LOSSLESS, 0));
    expect(&mut bench, "4 frames held", of(4))?;
    Ok("; frame by frame too; cleared they begin with what is held")
}

/// The watermark of each input, or of all of them, where a switch has no shared pool.
fn in_other_models() -> Result<&'static str> {
    let good = Stage::new(Level::Engine, &star(3, "1 s", "", &roomy("")), "s0")?.switch_config()?;
    for (kind, name, expected) in [
        ("per-input", "input_buffer_watermark", [3, 2]),
        ("global-watermark", "buffer_pool_watermark", [5, 0]),
    ] {
        let needed = headroom_needed(&of_model(&good, kind, 0, 1 << LOSSLESS)).get();
        let config = of_model(&good, kind, needed, 1 << LOSSLESS);
        let mut bench = Bench::new(Switch::new(config)?, 0);
        bench.pfc(3, 0xff, LONG);
        for from in [1, 1, 1, 2, 2] {
            bench.inject(from, data(from.into(), 3, LOSSLESS, 0));
        }
        bench.pfc(3, 0xff, 0);
        bench.run_for(FRAME_TIME * 10);
        let found = [1, 2].map(|port| bench.named(port, name) / FRAME);
        same(format!("{name} of {kind}, in frames"), found, expected)?;
    }
    Ok("; by input, and by all inputs, where there is no shared pool")
}

/// A switch of this memory model.
fn of_model(good: &SwitchConfig, kind: &str, headroom: u64, lossless: u8) -> SwitchConfig {
    let mut config = good.clone();
    (config.memory.kind, config.memory.headroom) = (kind.to_owned(), Bytes::new(headroom));
    for port in &mut config.ports {
        port.link.buffer = Bytes::new(100 * FRAME);
        if let FlowControlConfig::Pause(pause) = &mut port.link.control {
            pause.lossless = lossless;
        }
    }
    config
}

/// QOS-09: Kmin, Kmax and the limit of lossy queues, in frames.
const KMIN: u64 = 2;
const KMAX: u64 = 4;
const CODES: [Ecn; 3] = [Ecn::NotCapable, Ecn::Capable0, Ecn::Capable1];

static LOSSLESS_RUN: Shared<Record> = Shared::new(|on| {
    let pool = format!(", lossy_queue = \"{} B\"", 3 * FRAME);
    let rest = format!(
        "{}[scheme]\nkind = \"dcqcn\"\nkmin = \"{} B\"\nkmax = \"{} B\"\n",
        memory((SHARED_FRAMES, HEADROOM_FRAMES), "", &pool),
        KMIN * FRAME,
        KMAX * FRAME
    );
    play(on, &star(5, "600 ms", "", &rest), "s0", |script| {
        script.pause((SHUT, OPEN), &[OUT], 0xff);
        for (from, code) in (1..).zip(CODES) {
            script.at(COME, move |bed| {
                for psn in 0..(SHARED_FRAMES + HEADROOM_FRAMES) as u32 {
                    let builder = with_ecn(&roce(from, OUT.into(), LOSSLESS, psn), code);
                    bed.send_frame(from as u8, &frame(&builder, MTU));
                }
            });
        }
        script.at(COME, |bed| feed(bed, (5, OUT), LOSSY, 10));
    })
});

/// QOS-09.
pub fn lossless_is_never_dropped(on: Level) -> Finding {
    let record = LOSSLESS_RUN.on(on)?;
    let all = 3 * (SHARED_FRAMES + HEADROOM_FRAMES) as usize;
    let left: Vec<_> = record.data(OUT, LOSSLESS).collect();
    same("lossless frames that leave", left.len(), all)?;
    let mut marked = 0;
    for (number, seen) in left.iter().enumerate() {
        let octets = &seen.frame.octets;
        let from = usize::from(octets.get(11).copied().unwrap_or(1).max(1)) - 1;
        let code = CODES.get(from).copied().ok_or("an unknown frame")?;
        let is_marked = ecn(&seen.frame) == Ecn::CongestionExperienced;
        if all - number > KMAX as usize {
            same(format!("CE on frame {number} of {code:?}"), is_marked, code != Ecn::NotCapable)?;
        }
        marked += u64::from(is_marked);
    }
    same("lossy frames that fit", record.data(OUT, LOSSY).count(), 3)?;
    same("losses at the output", record.lost(OUT), "queue_full 7")?;
    record.nothing_lost(&[OUT])?;
    Ok(format!("{all} lossless frames over Kmax: none lost, {marked} marked"))
}

/// QOS-10: no headroom is refused by the scenario; by a switch of each memory model, also if an octet is
/// missing; live by the daemon.
pub fn zero_headroom(on: Level) -> Finding {
    let scenario = |headroom: &str| {
        let good = roomy("");
        let (before, after) = good.split_once("headroom = \"").unwrap_or_default();
        let after = after.split_once('"').map_or("", |(_, after)| after);
        star(2, "100 ms", "", &format!("{before}headroom = \"{headroom}\"{after}"))
    };
    let Err(Failure::Failed(error)) = Stage::new(on, &scenario("0 B"), "s0") else {
        return Err("a scenario without headroom is good".into());
    };
    ensure!(error.contains("headroom"), "the fault of a scenario without headroom is: {error}");
    let stage = Stage::new(on, &star(2, "100 ms", "", &roomy("")), "s0")?;
    if on == Level::Engine {
        return refused_by_each_model(&stage.switch_config()?);
    }
    stage.run(Script::default())?;
    let stage = Stage { switch: |config| config.memory.headroom = Bytes::ZERO, ..stage };
    match stage.run(Script::default()) {
        // Its log has the reason; 2 is its exit code for a bad configuration. With headroom it ran.
        Err(Failure::Failed(error)) if error.contains("exit status: 2") => {
            Ok("refused by the scenario, and by switchd before it begins".into())
        }
        Err(other) => Err(Failure::Failed(format!("switchd without headroom ends so: {other:?}"))),
        Ok(_) => Err(Failure::Failed("switchd runs without headroom".to_owned())),
    }
}

fn refused_by_each_model(good: &SwitchConfig) -> Finding {
    let config = |kind: &str, headroom, lossless| of_model(good, kind, headroom, lossless);
    let mut needs = Vec::new();
    for kind in ["shared-pool", "per-input", "global-watermark"] {
        let refusal = |headroom| match Switch::new(config(kind, headroom, 1 << LOSSLESS)).err() {
            Some(ConfigError::Room(MemoryError::Headroom { needed, .. })) => Some(needed.get()),
            _ => None,
        };
        let Some(least) = refusal(0) else {
            return Err(format!("{kind} takes no headroom").into());
        };
        ensure!(refusal(least - 1).is_some(), "{kind} takes an octet less than {least}");
        for good in [config(kind, least, 1 << LOSSLESS), config(kind, 0, 0)] {
            let refused = Switch::new(good).err();
            ensure!(refused.is_none(), "{kind} refuses what is enough: {refused:?}");
        }
        needs.push(format!("{least} octets for {kind}"));
    }
    Ok(format!("no headroom, and an octet too little, are refused; least: {}", needs.join(", ")))
}
