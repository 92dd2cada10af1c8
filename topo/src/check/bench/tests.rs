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
