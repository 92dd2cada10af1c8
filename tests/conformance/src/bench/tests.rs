//! The bench itself: links train, packets pass, counters and neighbours agree.

use super::devices::{FRAME_TIME, FULL_FRAME_BLOCKS, MTU, burst, nic, switch};
use super::packets::{frame, send_only};
use super::*;
use nicd::nic::Nic;
use switchd::switch::Switch;

#[test]
fn a_packet_passes_a_switch_and_both_neighbours_account_for_it() {
    let switch = Switch::new(switch(4, 2)).expect("a switch");
    let mut bench = Bench::up(switch, 2).expect("active links");
    let before = bench.reading();
    bench.send(1, frame(&send_only(1, 3, 7), MTU));
    let sent = bench.now();
    bench.run_for(FRAME_TIME);
    let out: Vec<_> = bench.packets(3).collect();
    assert_eq!(out.len(), 1);
    assert_eq!(out[0].at, sent + FRAME_TIME);
    assert_eq!(bench.neighbour(1).lanes[0].sent, FULL_FRAME_BLOCKS);
    assert_eq!(bench.neighbour(3).lanes[0].received, FULL_FRAME_BLOCKS);
    assert_eq!(bench.lost_since(&before, 1), "nothing");
}

#[test]
fn a_nic_sends_what_its_workload_posts_once_its_neighbour_offers_buffer() {
    let start = Instant::ZERO + Duration::from_us(100);
    let mut config = nic(1, 1);
    config.traffic.push(burst(2, 0, 2048, 3, start));
    let mut bench = Bench::up(Nic::new(config).expect("a NIC"), 1).expect("an active link");
    bench.offer(1, 0, 2 * FULL_FRAME_BLOCKS);
    bench.neighbour(1).speaks = false;
    bench.run_until(start + Duration::from_us(50));
    assert_eq!(bench.packets(1).count(), 2);
    bench.offer(1, 0, 2048);
    bench.run_for(Duration::from_us(50));
    assert_eq!(bench.packets(1).count(), 3);
}

#[test]
fn a_paused_priority_of_ethernet_waits_in_a_switch_and_its_sender_is_silenced() {
    use super::devices::ethernet as devices;
    let switch = Switch::new(devices::switch(4)).expect("a switch");
    let mut bench = Bench::ethernet(switch);
    let before = bench.reading();
    bench.pfc(4, 1 << 3, u16::MAX);
    let frames = (0..9).map(|psn| packets::ethernet::data(1, 4, 3, psn));
    let last = bench.stream(1, bench.now(), super::devices::RATE, frames);
    bench.run_until(last);
    assert_eq!((bench.packets(4).count(), bench.held(1, 3)), (0, 9 * devices::FRAME));
    bench.run_for(devices::CONTROL_TIME);
    let eighth = Instant::ZERO + devices::FRAME_TIME * 8;
    assert_eq!(bench.asked(1, 3), [(eighth + devices::CONTROL_TIME, u16::MAX)]);
    bench.pfc(4, 1 << 3, 0);
    bench.run_for(devices::FRAME_TIME * 9);
    assert_eq!((bench.data(4, 3).count(), bench.asked(1, 3).len()), (9, 2));
    bench.nothing_lost(&before).expect("nothing is lost");
}

#[test]
fn a_full_frame_of_ethernet_has_the_size_that_limits_count_in() {
    use super::devices::ethernet as devices;
    let frame = packets::ethernet::data(1, 4, devices::LOSSLESS, 0);
    assert_eq!(frame.line_size(), Bytes::new(devices::FRAME));
    assert_eq!(devices::link(devices::pause()).full_frame(), Bytes::new(devices::FRAME));
}
