//! QOS-06 to QOS-10: how much may wait, who has room of its own, what is remembered of it, and what is
//! refused before anything runs.

use super::{OUT, bench};
use crate::bench::Bench;
use crate::bench::devices::ethernet::{
    CONTROL_TIME, FRAME, FRAME_TIME, HEADROOM_FRAMES, LOSSLESS, SHARED_FRAMES, memory, roomy,
    switch, with_pause,
};
use crate::bench::devices::{MTU, scheme};
use crate::bench::packets::ethernet::{data, frame, roce, with_ecn};
use crate::case::{Failure, Finding, ensure, same};
use proto::counters::DropReason;
use proto::device::Device;
use proto::ids::Ecn;
use proto::units::Bytes;
use proto::wire::classify::{PriorityMap, classify_ethernet};
use scenario::Scenario;
use switchd::config::{MemoryConfig, SwitchConfig, Threshold};
use switchd::switch::{ConfigError, Switch, headroom_needed};

/// A priority that may lose frames.
const LOSSY: u8 = 1;

/// A switch of this configuration that lets nothing out.
fn closed(config: SwitchConfig) -> Result<Bench<Switch>, Failure> {
    let mut bench = bench(with_pause(config, |pause| pause.obeyed = 0xff))?;
    bench.pfc(OUT, 0xff, u16::MAX);
    Ok(bench)
}

/// So many full frames reach `port`, all now.
fn send(bench: &mut Bench<Switch>, port: u8, priority: u8, frames: u64) {
    let sent = data(port.into(), OUT.into(), priority, 0);
    (0..frames).for_each(|_| bench.send(port, sent.clone()));
}

/// QOS-06.
pub fn lossy_queue_limit() -> Finding {
    const LIMIT: u64 = 20;
    let mut config = roomy(switch(OUT));
    config.memory.pool.lossy_queue = Some(Bytes::new(LIMIT * FRAME + FRAME / 2));
    let mut bench = closed(config)?;
    let before = bench.reading();
    send(&mut bench, 1, LOSSY, LIMIT / 2);
    send(&mut bench, 2, LOSSY, LIMIT - LIMIT / 2);
    bench.nothing_lost(&before)?;
    send(&mut bench, 1, LOSSY, 1);
    send(&mut bench, 2, LOSSY, 1);
    same("losses at the output", bench.lost_since(&before, OUT), "queue_full 2".to_owned())?;
    // Neither another queue nor what is lossless knows of the limit.
    send(&mut bench, 1, LOSSY + 1, LIMIT);
    send(&mut bench, 1, LOSSLESS, LIMIT + 2);
    bench.run_for(CONTROL_TIME * 2);
    for port in 1..OUT {
        same(
            format!("losses at input {port}"),
            bench.lost_since(&before, port),
            "nothing".to_owned(),
        )?;
        same(format!("MAC control at port {port}"), bench.control(port).count(), 0)?;
    }
    same("all losses at the output", bench.lost_since(&before, OUT), "queue_full 2".to_owned())?;
    bench.pfc(OUT, 0xff, 0);
    bench.run_for(FRAME_TIME * (4 * LIMIT));
    same("frames that leave", bench.data(OUT, LOSSY).count() as u64, LIMIT)?;
    Ok(format!("{LIMIT} frames fit, the next from either input is lost at the output; no PFC"))
}

/// Octets shared by all, and reserved for each port and priority, in full frames.
const SHARED: u64 = 20;
const RESERVE: u64 = 2;

/// A pool whose shared part one port and priority may take alone.
fn small_pool() -> SwitchConfig {
    let mut config = switch(OUT);
    let ports = u64::from(OUT);
    let reserved = ports * 8 * RESERVE + ports * HEADROOM_FRAMES;
    config.memory.pool.reserve = Bytes::new(RESERVE * FRAME);
    config.memory.pool.size = Bytes::new((reserved + SHARED) * FRAME);
    config.memory.pool.threshold = Threshold::Octets(Bytes::new(SHARED * FRAME));
    config
}

/// QOS-07: one takes all that is shared, the others have what is theirs.
pub fn reserve() -> Finding {
    let mut bench = closed(small_pool())?;
    let before = bench.reading();
    send(&mut bench, 1, LOSSY, RESERVE + SHARED);
    bench.nothing_lost(&before)?;
    send(&mut bench, 1, LOSSY, 10);
    same("losses of the greedy", bench.lost_since(&before, 1), "buffer_full 10".to_owned())?;
    let mut groups = 0;
    for (port, priority) in (1..=3).flat_map(|port| (0..8).map(move |priority| (port, priority))) {
        if (port, priority) == (1, LOSSY) {
            continue;
        }
        let lost = bench.lost_since(&before, port);
        send(&mut bench, port, priority, RESERVE);
        same(
            format!("losses of port {port} within the reserve of priority {priority}"),
            bench.lost_since(&before, port),
            lost,
        )?;
        let full = bench.lost_for(&before, DropReason::BufferFull);
        send(&mut bench, port, priority, 1);
        // Nothing is left to share: lossless ones have their headroom.
        let expected = u64::from(priority != LOSSLESS);
        let found = bench.lost_for(&before, DropReason::BufferFull) - full;
        same(format!("losses of port {port}, priority {priority} beyond it"), found, expected)?;
        groups += 1;
    }
    bench.run_for(CONTROL_TIME * 2);
    for port in 1..=3 {
        same(format!("XOFFs to port {port}"), bench.asked(port, LOSSLESS).len(), 1)?;
        send(&mut bench, port, LOSSLESS, HEADROOM_FRAMES);
    }
    same("losses beyond headroom", bench.lost_for(&before, DropReason::HeadroomOverrun), 3)?;
    Ok(format!(
        "one takes the {SHARED} shared frames; each of {groups} others has its reserve of {RESERVE}, then \
         the lossy lose and the lossless ask for silence and use their headroom"
    ))
}

/// What is remembered, in octets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Watermarks {
    shared: u64,
    headroom: u64,
    queue: u64,
    pool: u64,
    headroom_pool: u64,
}

fn watermarks(bench: &mut Bench<Switch>) -> Watermarks {
    let reading = bench.reading();
    let queue = reading.ports[usize::from(OUT) - 1].lanes[usize::from(LOSSLESS)].counters.out_queue;
    Watermarks {
        shared: bench.named(1, &format!("pg{LOSSLESS}_shared_watermark")),
        headroom: bench.named(1, &format!("pg{LOSSLESS}_headroom_watermark")),
        queue: queue.max,
        pool: bench.named(1, "buffer_pool_watermark"),
        headroom_pool: bench.named(1, "headroom_pool_watermark"),
    }
}

/// QOS-08: frame by frame up, all the way down, and only then forgotten.
pub fn watermarks_stay() -> Finding {
    let mut bench = closed(switch(OUT))?;
    let all = SHARED_FRAMES + HEADROOM_FRAMES;
    let of = |frames: u64| {
        let (shared, headroom) = (frames.min(SHARED_FRAMES), frames.saturating_sub(SHARED_FRAMES));
        Watermarks {
            shared: shared * FRAME,
            headroom: headroom * FRAME,
            queue: frames * FRAME,
            pool: frames * FRAME,
            headroom_pool: headroom * FRAME,
        }
    };
    let expect = |bench: &mut Bench<Switch>, when: &str, expected: Watermarks| {
        let found = watermarks(bench);
        ensure(found == expected, || format!("{when}: {found:?}, expected {expected:?}"))
    };
    for frames in 1..=all {
        send(&mut bench, 1, LOSSLESS, 1);
        expect(&mut bench, &format!("{frames} frames held"), of(frames))?;
    }
    bench.pfc(OUT, 1 << LOSSLESS, 0);
    for left in (0..all).rev() {
        bench.run_for(FRAME_TIME);
        expect(&mut bench, &format!("{left} frames left"), of(all))?;
    }
    expect(&mut bench, "read again", of(all))?;
    bench.pfc(OUT, 1 << LOSSLESS, u16::MAX);
    send(&mut bench, 1, LOSSLESS, 3);
    expect(&mut bench, "3 frames held", of(all))?;
    bench.device.begin_bin(bench.now());
    bench.device.clear_watermarks();
    expect(&mut bench, "cleared with 3 frames held", of(3))?;
    send(&mut bench, 1, LOSSLESS, 1);
    expect(&mut bench, "4 frames held", of(4))?;
    Ok(format!(
        "group, headroom, queue and pool to the octet at each of {all} steps up; nothing falls on the way \
         down or on reading; cleared they begin with what is held"
    ))
}

/// QOS-09: a lossless queue far over Kmax and over the limit for lossy ones.
pub fn lossless_is_never_dropped() -> Finding {
    let mut config = switch(OUT);
    config.scheme = scheme("dcqcn");
    for (key, frames) in [("kmin", 2), ("kmax", 4)] {
        let size = format!("{} B", frames * FRAME);
        config.scheme.params.insert(key.to_owned(), size.into());
    }
    config.memory.pool.lossy_queue = Some(Bytes::new(3 * FRAME));
    let mut bench = closed(config)?;
    let before = bench.reading();
    let all = SHARED_FRAMES + HEADROOM_FRAMES;
    let codes = [Ecn::NotCapable, Ecn::Capable0, Ecn::Capable1];
    for (code, port) in codes.into_iter().zip(1..) {
        let builder = with_ecn(&roce(port.into(), OUT.into(), LOSSLESS, 0), code);
        (0..all).for_each(|_| bench.send(port, frame(&builder, MTU)));
    }
    bench.pfc(OUT, 0xff, 0);
    bench.run_for(FRAME_TIME * (3 * all));
    bench.nothing_lost(&before)?;
    let mut marked = 0;
    let sent: Vec<_> = bench.data(OUT, LOSSLESS).collect();
    same("frames that leave", sent.len() as u64, 3 * all)?;
    for (number, departure) in sent.iter().enumerate() {
        let read = classify_ethernet(&departure.frame.octets, &PriorityMap::BY_DSCP);
        let headers = read.map_err(|error| error.to_string())?;
        let code_point = codes[(headers.source as usize - 1) & 3];
        let waiting = sent.len() - number;
        let is_marked = headers.ecn == Ecn::CongestionExperienced;
        if waiting > 4 {
            // Over Kmax.
            same(
                format!("CE on frame {number} of {code_point:?}"),
                is_marked,
                code_point != Ecn::NotCapable,
            )?;
        }
        marked += u64::from(is_marked);
    }
    let mut sent_lossy = closed_with_limit()?;
    same("frames of a lossy queue that fit", std::mem::take(&mut sent_lossy), 3)?;
    Ok(format!(
        "{} lossless frames over Kmax and over the limit of lossy queues: none lost, {marked} marked, \
         those that are not ECT pass unmarked; a lossy queue ends at its limit",
        3 * all
    ))
}

/// Frames of a lossy queue with a limit of three that fit.
fn closed_with_limit() -> Result<u64, Failure> {
    let mut config = roomy(switch(OUT));
    config.memory.pool.lossy_queue = Some(Bytes::new(3 * FRAME));
    let mut bench = closed(config)?;
    send(&mut bench, 1, LOSSY, 10);
    Ok(bench.queued(OUT)[usize::from(LOSSY)] / FRAME)
}

/// A scenario file that is good as it is.
const SCENARIO: &str = include_str!("../../../../../topo/scenarios/dcqcn/incast3-pfc.toml");

/// QOS-10: no headroom, too little by an octet, and enough.
pub fn zero_headroom() -> Finding {
    let config = |kind: &str, headroom: u64| {
        let mut config = switch(OUT);
        config.memory = MemoryConfig { kind: kind.to_owned(), ..memory() };
        config.memory.headroom = Bytes::new(headroom);
        config
    };
    let mut needs = Vec::new();
    for kind in ["shared-pool", "per-input", "global-watermark"] {
        let needed = headroom_needed(&config(kind, 0)).get();
        for headroom in [0, needed - 1] {
            let refused = Switch::new(config(kind, headroom)).err();
            ensure(matches!(refused, Some(ConfigError::Room(_))), || {
                format!(
                    "{kind} takes a headroom of {headroom} where {needed} are needed: {refused:?}"
                )
            })?;
        }
        let lossy = with_pause(config(kind, 0), |pause| pause.lossless = 0);
        for good in [config(kind, needed), lossy] {
            let refused = Switch::new(good).err();
            ensure(refused.is_none(), || format!("{kind} refuses what is enough: {refused:?}"))?;
        }
        needs.push(format!("{needed} octets for {kind}"));
    }
    let parse = |sets: &[&str]| {
        Scenario::parse(SCENARIO, &sets.iter().map(|set| (*set).to_owned()).collect::<Vec<_>>())
    };
    parse(&[]).map_err(|problems| problems.to_string())?;
    let said = match parse(&["fabric.switch.headroom=0 B"]) {
        Ok(_) => return Err(Failure::Failed("a scenario without headroom is good".to_owned())),
        Err(problems) => problems.to_string(),
    };
    ensure(said.contains("headroom"), || format!("a scenario without headroom is told: {said}"))?;
    Ok(format!(
        "no headroom, and an octet too little, are refused by switch and scenario; the least is {}",
        needs.join(", ")
    ))
}
