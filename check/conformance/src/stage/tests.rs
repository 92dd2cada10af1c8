//! The bench of a stage: links train, packets pass, counters and neighbours agree.

use super::*;
use crate::ethernet::{self, CONTROL_TIME, FRAME, FRAME_TIME, LONG, LOSSLESS, SHARED_FRAMES};
use crate::star::{ms, star, us};
use proto::units::{Bytes, Instant};
use testbed::frames::ethernet::data;
use testbed::frames::infiniband::Packet;
use testbed::{Bed, OFFER_MAX, Sightings};

/// Credit blocks of a full frame, and its time at 10 Mb/s.
const BLOCKS: u16 = 33;
const TIME: Duration = Duration::from_ns(2_074 * 800);

fn bench(text: &str, device: &'static str) -> Bench {
    Stage::new(Level::Engine, text, device).expect("a scenario").bench().expect("a device")
}

#[test]
fn a_packet_passes_a_switch_and_both_neighbours_account_for_it() {
    let mut bench = bench(&star(3, "1 s", "vls = 2", ""), "s0").up().expect("active links");
    let (before, sent) = (bench.reading(), bench.now());
    bench.inject(1, Packet::full(1, 3, 7).frame());
    bench.run_for(TIME);
    let out: Vec<_> = bench.packets(3).map(|seen| seen.at).collect();
    assert_eq!(out, [sent + TIME]);
    assert_eq!(bench.credits(1).lanes[0].sent, BLOCKS);
    assert_eq!(bench.credits(3).lanes[0].received, BLOCKS);
    assert_eq!(bench.lost_since(&before, 1), "nothing");
}

#[test]
fn a_nic_sends_what_its_workload_posts_once_its_neighbour_offers_buffer() {
    let traffic = "[[traffic]]\nname = \"burst\"\nfrom = \"h1\"\nto = \"h2\"\narrivals = \"backlog\"\n\
                   messages = 3\nsize = \"2048 B\"\nstart = \"1 ms\"\n";
    let mut bench = bench(&star(2, "1 s", "", traffic), "h1").up().expect("an active link");
    bench.offer(1, 0, 2 * BLOCKS);
    bench.mute();
    bench.run_until(ms(20));
    assert_eq!(bench.packets(1).count(), 2);
    bench.offer(1, 0, OFFER_MAX);
    bench.run_for(us(20_000));
    assert_eq!(bench.packets(1).count(), 3);
}

#[test]
fn a_paused_priority_of_ethernet_waits_in_a_switch_and_its_sender_is_paused() {
    let room = ethernet::memory((SHARED_FRAMES, 4), "", "");
    let mut bench = bench(&ethernet::star(4, "1 s", "", &room), "s0");
    let before = bench.reading();
    bench.pfc(4, 1 << LOSSLESS, LONG);
    let frames = (0..9).map(|psn| data(1, 4, LOSSLESS, psn));
    let last = bench.stream(1, bench.now(), ethernet::RATE, frames);
    bench.run_until(last);
    let held = bench.reading().ports[0].lanes[usize::from(LOSSLESS)].counters.in_queue.value;
    assert_eq!((bench.packets(4).count(), held), (0, 9 * FRAME));
    bench.run_for(CONTROL_TIME);
    let eighth = Instant::ZERO + FRAME_TIME * SHARED_FRAMES;
    assert_eq!(bench.pauses(1, LOSSLESS), [(eighth + CONTROL_TIME, LONG)]);
    bench.pfc(4, 1 << LOSSLESS, 0);
    bench.run_for(FRAME_TIME * 9);
    assert_eq!((bench.data(4, LOSSLESS).count(), bench.pauses(1, LOSSLESS).len()), (9, 2));
    assert_eq!(bench.lost_since(&before, 1), "nothing");
}

#[test]
fn a_full_frame_of_ethernet_has_the_size_that_limits_count_in() {
    assert_eq!(data(1, 4, LOSSLESS, 0).line_size(), Bytes::new(FRAME));
    let text = ethernet::star(2, "1 s", "", &ethernet::roomy(""));
    let config = Stage::new(Level::Engine, &text, "s0").and_then(|stage| stage.switch_config());
    assert_eq!(config.expect("a switch").ports[0].link.full_frame(), Bytes::new(FRAME));
}
