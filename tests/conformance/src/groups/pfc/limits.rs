//! PFC-01 to PFC-03: where silence is asked for, where it ends, and how far headroom goes.

use super::{FOUR, blocked, release_one, send};
use crate::bench::devices::ethernet::{
    CONTROL_TIME, FRAME, FRAME_TIME, HEADROOM_FRAMES, HYSTERESIS_FRAMES, LOSSLESS, SHARED_FRAMES,
    memory, switch, with_pause,
};
use crate::case::{Failure, Finding, ensure, same};
use proto::counters::DropReason;
use proto::events::EventKind;
use proto::units::Bytes;
use switchd::config::{MemoryConfig, SwitchConfig};

/// A memory model whose limits are known in full frames of one input.
struct Model {
    kind: &'static str,
    /// The frame that leads to XOFF.
    xoff: u64,
    /// The first that does not fit.
    overrun: u64,
    /// At so many left XON is due.
    xon: u64,
}

/// Each model, with [`SHARED_FRAMES`] and [`HEADROOM_FRAMES`] a port.
const MODELS: [Model; 3] = [
    Model { kind: "shared-pool", xoff: 8, overrun: 13, xon: SHARED_FRAMES - HYSTERESIS_FRAMES },
    Model { kind: "per-input", xoff: 8, overrun: 13, xon: 4 },
    // Four ports' buffers are one, and one input may take all of it.
    Model { kind: "global-watermark", xoff: 32, overrun: 49, xon: 16 },
];

fn config(model: &Model) -> SwitchConfig {
    let mut config = switch(4);
    config.memory = MemoryConfig { kind: model.kind.to_owned(), ..memory() };
    for port in &mut config.ports {
        port.link.buffer = Bytes::new((SHARED_FRAMES + HEADROOM_FRAMES) * FRAME);
    }
    config
}

/// PFC-01: frame by frame over every limit, with every memory model.
pub fn xoff_limit() -> Finding {
    MODELS.iter().try_for_each(four_phases)?;
    Ok("XOFF with the frame that reaches the threshold, loss with the first beyond the headroom, and \
        only there; with each of 3 memory models"
        .to_owned())
}

fn four_phases(model: &Model) -> Result<(), Failure> {
    let mut bench = blocked(config(model), LOSSLESS)?;
    let before = bench.reading();
    let kind = model.kind;
    send(&mut bench, 1, LOSSLESS, model.xoff - 1);
    same(format!("{kind}: XOFFs one frame below the limit"), bench.asked(1, LOSSLESS).len(), 0)?;
    let due = bench.now() + FRAME_TIME;
    send(&mut bench, 1, LOSSLESS, 1);
    let asked = bench.asked(1, LOSSLESS);
    ensure(asked == [(due + CONTROL_TIME, u16::MAX)], || {
        format!("{kind}: at the limit the neighbour hears {asked:?}, expected one XOFF at {due}")
    })?;
    send(&mut bench, 1, LOSSLESS, model.overrun - 1 - model.xoff);
    bench.nothing_lost(&before)?;
    same(format!("{kind}: frames to port 1 in headroom"), bench.asked(1, LOSSLESS).len(), 1)?;
    if kind == "shared-pool" {
        // Another priority has limits of its own.
        send(&mut bench, 1, 1, 1);
        bench.nothing_lost(&before)?;
    }
    send(&mut bench, 1, LOSSLESS, 1);
    let lost = bench.lost_since(&before, 1);
    same(format!("{kind}: losses at the input"), lost, "headroom_overrun 1".to_owned())?;
    let places = bench.told(|event| matches!(event, EventKind::Drop { .. }));
    let places: Vec<_> = places.iter().map(|(_, port, lane)| (*port, *lane)).collect();
    ensure(places == [(1, LOSSLESS)], || format!("{kind}: frames were dropped at {places:?}"))?;
    for port in 2..=FOUR {
        let lost = bench.lost_since(&before, port);
        same(format!("{kind}: losses at port {port}"), lost, "nothing".to_owned())?;
    }
    bench.pfc(FOUR, 1 << LOSSLESS, 0);
    bench.run_for(FRAME_TIME * model.overrun);
    let out = bench.data(FOUR, LOSSLESS).count() as u64;
    same(format!("{kind}: frames that leave afterwards"), out, model.overrun - 1)
}

/// PFC-02: over the limit, then let go one by one.
pub fn xon_limit() -> Finding {
    for model in &MODELS {
        let mut bench = blocked(config(model), LOSSLESS)?;
        let before = bench.reading();
        send(&mut bench, 1, LOSSLESS, model.xoff + 2);
        for left in (0..model.xoff + 2).rev() {
            let gone = bench.now() + FRAME_TIME;
            release_one(&mut bench, LOSSLESS);
            same(format!("{}: octets held", model.kind), bench.held(1, LOSSLESS), left * FRAME)?;
            let asked = bench.asked(1, LOSSLESS);
            let xon = asked.iter().skip(1).copied().collect::<Vec<_>>();
            let expected = if left > model.xon { vec![] } else { vec![(gone + CONTROL_TIME, 0)] };
            // Said once, with the frame that reaches the limit.
            let holds = if left < model.xon { xon.len() == 1 } else { xon == expected };
            ensure(holds, || {
                format!("{}: with {left} frames left the neighbour hears {xon:?}", model.kind)
            })?;
        }
        bench.nothing_lost(&before)?;
    }
    Ok("XON with the last bit of the frame that brings the level down to the limit, not before, once; \
        with each of 3 memory models"
        .to_owned())
}

/// Headroom for all, in frames: less than each priority of each port may take by itself.
const POOL: u64 = 10;

/// PFC-03: six priority groups of four frames of headroom each, and a pool for ten.
pub fn headroom_pool() -> Finding {
    const GROUPS: [(u8, u8); 6] = [(1, 3), (1, 4), (2, 3), (2, 4), (3, 3), (3, 4)];
    let both = 1 << 3 | 1 << 4;
    let mut config = with_pause(switch(FOUR), |pause| {
        pause.lossless = both;
        pause.obeyed = both;
    });
    config.memory.pool.headroom_pool = Some(Bytes::new(POOL * FRAME));
    let mut bench = blocked(config, LOSSLESS)?;
    bench.pfc(FOUR, both, u16::MAX);
    let before = bench.reading();
    for (port, priority) in GROUPS {
        send(&mut bench, port, priority, SHARED_FRAMES);
        same(
            format!("XOFFs for priority {priority} of port {port}"),
            bench.asked(port, priority).len(),
            1,
        )?;
    }
    bench.nothing_lost(&before)?;
    let mut room = POOL;
    for (port, priority) in GROUPS {
        let lost = bench.lost_for(&before, DropReason::HeadroomOverrun);
        send(&mut bench, port, priority, HEADROOM_FRAMES);
        let lost = bench.lost_for(&before, DropReason::HeadroomOverrun) - lost;
        let fits = room.min(HEADROOM_FRAMES);
        same(format!("lost of priority {priority} at port {port}"), lost, HEADROOM_FRAMES - fits)?;
        let drops = bench.told(|event| matches!(event, EventKind::Drop { .. }));
        let here =
            drops.iter().rev().take(lost as usize).all(|at| (at.1, at.2) == (port, priority));
        ensure(here, || format!("losses are told of {drops:?}, not of port {port}"))?;
        let held = bench.held(port, priority);
        same("octets held", held, (SHARED_FRAMES + fits) * FRAME)?;
        room -= fits;
    }
    same("headroom_pool_watermark", bench.named(1, "headroom_pool_watermark"), POOL * FRAME)?;
    bench.pfc(FOUR, both, 0);
    bench.run_for(FRAME_TIME * 100);
    let out = bench.packets(FOUR).count() as u64;
    same("frames that leave afterwards", out, 6 * SHARED_FRAMES + POOL)?;
    Ok(format!(
        "6 groups take {POOL} frames of headroom in all; the third loses 2 of 4, those after it all, \
         counted there; watermark {} octets",
        POOL * FRAME
    ))
}
