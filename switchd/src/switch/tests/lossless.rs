//! PFC and PAUSE as a switch asks for them, and the queues and buffers behind that. Names in comments
//! are cases of the conformance list; margins are zero.

use super::bench::{
    BOTH, Bench, FRAME, Look, P3, PORTS, bench, config, data, lossy, marking_above,
};
use proto::counters::DropReason;
use proto::frame::{Frame, FrameKind};
use proto::link::{FlowControlConfig, PauseConfig, PauseMode};
use proto::units::{BitRate, Bytes, Duration};
use proto::wire::ethernet::{MacAddress, MacControl, Pause};
use testbed::Bed;

/// Frames that fit before XOFF: two reserved, twenty shared; the last of them causes XOFF.
const LIMIT: u32 = 22;
const HEADROOM: u32 = 10;

/// A switch with output 4 paused on priorities 0 and 3.
fn blocked() -> Bench {
    let mut bench = bench(config());
    bench.pfc(4, BOTH, u16::MAX);
    bench
}

/// Ports whose neighbours have received MAC control.
fn paused(bench: &Bench) -> Vec<u8> {
    (1..=PORTS).filter(|port| !bench.controls(*port).is_empty()).collect()
}

fn fill(bench: &mut Bench, input: u8, frames: u32) {
    for psn in 0..frames {
        bench.inject(input, data(input.into(), 4, psn));
    }
}

/// PFC-01.
#[test]
fn xoff_at_the_limit_then_headroom_then_loss() {
    let mut bench = blocked();
    fill(&mut bench, 1, LIMIT - 1);
    assert_eq!(paused(&bench), [0; 0]);
    fill(&mut bench, 1, 1);
    assert_eq!(bench.times(1), [u16::MAX]);
    fill(&mut bench, 1, HEADROOM);
    assert_eq!(bench.lost(), 0);
    fill(&mut bench, 1, 1);
    assert_eq!(bench.drops(1, DropReason::HeadroomOverrun), 1);
    assert_eq!(bench.lost(), 1, "and at no output");
    bench.inject(1, lossy(1, 4, 0));
    bench.inject(2, data(2, 4, 0));
    assert_eq!(bench.lost(), 1, "other priorities and ports are untouched");
    assert_eq!(paused(&bench), [1]);
}

/// PFC-02.
#[test]
fn speech_is_given_back_when_the_hysteresis_has_gone_and_not_before() {
    let mut bench = blocked();
    fill(&mut bench, 1, LIMIT + 4);
    bench.pfc(4, BOTH, 0);
    // Four of headroom and three of hysteresis: the seventh frame's last bit sets the input free.
    let last_bit = Bytes::new(7 * FRAME).time_at(BitRate::gbps(10));
    let just_before = last_bit - Duration::from_ps(1);
    bench.run_for(just_before);
    assert_eq!(bench.times(1), [u16::MAX]);
    bench.run_for(Duration::from_ps(1));
    assert_eq!(bench.times(1), [u16::MAX, 0]);
    bench.run_for(Duration::from_us(100));
    assert_eq!((bench.sent(4).len(), bench.lost()), (26, 0));
    assert!(bench.is_empty());
}

/// PFC-03.
#[test]
fn a_pool_of_headroom_is_shared_and_the_last_to_come_loses() {
    let mut config = config();
    config.memory.set("headroom_pool", Bytes::new(25 * FRAME));
    let mut bench = bench(config);
    bench.pfc(4, 1 << P3, u16::MAX);
    for input in 1..4 {
        fill(&mut bench, input, LIMIT);
    }
    for (input, frames) in [(1, 10), (2, 10), (3, 5)] {
        fill(&mut bench, input, frames);
    }
    assert_eq!(bench.lost(), 0);
    fill(&mut bench, 3, 1);
    assert_eq!(bench.drops(3, DropReason::HeadroomOverrun), 1);
    assert_eq!(bench.lost(), 1);
    assert_eq!(bench.named(1, "headroom_pool_watermark"), 25 * FRAME);
}

/// PFC-14: only the repeated XOFF reached the neighbour.
#[test]
fn a_lost_xoff_is_repeated_and_headroom_overruns_are_counted() {
    let mut bench = blocked();
    fill(&mut bench, 1, LIMIT + HEADROOM + 3);
    assert_eq!(bench.drops(1, DropReason::HeadroomOverrun), 3);
    // A quarter of 65 535 quanta of 51.2 ns.
    bench.run_for(Duration::from_us(838));
    assert_eq!(bench.times(1), [u16::MAX]);
    bench.run_for(Duration::from_us(2));
    assert_eq!(bench.times(1), [u16::MAX; 2]);
    assert_eq!(bench.lost(), 3);
}

/// QOS-06.
#[test]
fn a_lossy_queue_at_its_limit_drops_at_the_output_without_a_pause() {
    let mut bench = blocked();
    for psn in 0..10 {
        bench.inject(1, lossy(1, 4, psn));
    }
    assert_eq!(bench.lost(), 0);
    bench.inject(1, lossy(1, 4, 10));
    assert_eq!(bench.drops(4, DropReason::QueueFull), 1);
    assert_eq!(bench.drops(1, DropReason::QueueFull), 0);
    assert_eq!(paused(&bench), [0; 0]);
    bench.pfc(4, 1, 0);
    bench.run_for(Duration::from_us(20));
    assert_eq!(bench.sent(4).len(), 10);
    assert!(bench.is_empty());
}

/// QOS-07.
#[test]
fn a_reserve_is_kept_for_its_owner() {
    let mut config = config();
    // Reserves, headroom, and five frames for all.
    let (ports, frame) = (u64::from(PORTS), Bytes::new(FRAME));
    config.memory.set("size", frame * (ports * 8 * 2 + ports * 10 + 5));
    config.memory.params.remove("lossy_queue");
    let mut bench = bench(config);
    bench.pfc(4, BOTH, u16::MAX);
    for psn in 0..8 {
        bench.inject(1, lossy(1, 4, psn));
    }
    assert_eq!(bench.drops(1, DropReason::BufferFull), 1, "two of its own and all five");
    for psn in 0..3 {
        bench.inject(2, lossy(2, 4, psn));
    }
    assert_eq!(bench.drops(2, DropReason::BufferFull), 1, "two of its own");
}

/// QOS-08.
#[test]
fn watermarks_are_octets_never_fall_and_are_taken_anew_when_asked() {
    let mut bench = blocked();
    fill(&mut bench, 1, LIMIT + 4);
    let watermarks = |bench: &mut Bench| {
        [
            bench.named(1, "pg3_shared_watermark"),
            bench.named(1, "pg3_headroom_watermark"),
            bench.named(4, "queue3_watermark"),
            bench.named(1, "buffer_pool_watermark"),
        ]
        .map(|octets| octets / FRAME)
    };
    assert_eq!(watermarks(&mut bench), [20, 4, 26, 26]);
    bench.pfc(4, BOTH, 0);
    bench.run_for(Duration::from_us(100));
    assert!(bench.is_empty());
    assert_eq!(watermarks(&mut bench), [20, 4, 26, 26]);
    bench.device.clear_watermarks();
    assert_eq!(watermarks(&mut bench), [0; 4]);
}

/// QOS-09.
#[test]
fn a_lossless_queue_above_every_mark_is_marked_and_never_dropped() {
    let mut bench = marking_above(config(), 5);
    bench.pfc(4, 1 << P3, u16::MAX);
    for input in 1..4 {
        fill(&mut bench, input, LIMIT);
    }
    bench.pfc(4, 1 << P3, 0);
    bench.run_for(Duration::from_us(100));
    assert_eq!((bench.sent(4).len(), bench.lost()), (66, 0));
    assert_eq!(bench.named(4, "queue3_ecn_marked_packets"), 61);
}

/// A switch with this memory, buffers of forty frames and PAUSE, whose output 4 is paused.
fn with_pause(kind: &str) -> Bench {
    let mut config = config();
    config.memory.kind = kind.to_owned();
    for port in &mut config.ports {
        let mode = PauseMode::Global;
        port.link.control =
            FlowControlConfig::Pause(PauseConfig { mode, ..PauseConfig::default() });
        port.link.buffer = Bytes::new(40 * FRAME);
    }
    let mut bench = bench(config);
    let pause = MacControl::Pause(Pause { time: u16::MAX }).to_octets(MacAddress::default());
    bench.inject(4, Frame::intact(FrameKind::Ethernet, pause[..].into()));
    bench
}

fn silenced(bench: &Bench) -> Vec<u8> {
    (1..=PORTS).filter(|port| bench.times(*port).last() == Some(&u16::MAX)).collect()
}

#[test]
fn a_partitioned_memory_pauses_the_full_input() {
    let mut bench = with_pause("per-input");
    fill(&mut bench, 2, 29);
    assert_eq!(silenced(&bench), [0; 0]);
    fill(&mut bench, 2, 1);
    assert_eq!(silenced(&bench), [2]);
    assert!(matches!(bench.controls(2)[0], MacControl::Pause(_)));
    fill(&mut bench, 2, 10);
    assert_eq!(bench.lost(), 0);
    fill(&mut bench, 2, 1);
    assert_eq!(bench.drops(2, DropReason::HeadroomOverrun), 1);
}

#[test]
fn a_global_mark_pauses_all_inputs_at_once() {
    let mut bench = with_pause("global-watermark");
    fill(&mut bench, 1, 60);
    fill(&mut bench, 2, 59);
    assert_eq!(silenced(&bench), [0; 0]);
    fill(&mut bench, 2, 1);
    assert_eq!(silenced(&bench), [1, 2, 3, 4]);
    fill(&mut bench, 3, 40);
    assert_eq!(bench.lost(), 0);
    fill(&mut bench, 3, 1);
    assert_eq!(bench.drops(3, DropReason::HeadroomOverrun), 1);
}
