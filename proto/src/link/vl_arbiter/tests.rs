//! Shares, precedence, the limit of the high table, and lanes that must never be chosen.

use super::*;

fn serve(config: &ArbitrationConfig, eligible: u16, size: u64, rounds: usize) -> Vec<u8> {
    let mut arbiter = VlArbiter::new(config, 15);
    (0..rounds)
        .filter_map(|_| {
            let choice = arbiter.choose(eligible)?;
            arbiter.charge(choice, Bytes::new(size));
            Some(choice.lane.get())
        })
        .collect()
}

fn count(served: &[u8], lane: u8) -> usize {
    served.iter().filter(|l| **l == lane).count()
}

#[test]
fn low_weights_of_one_to_three_give_octets_of_one_to_three() {
    let config = ArbitrationConfig { high: vec![], low: vec![(0, 40), (1, 120)], high_limit: 0 };
    let served = serve(&config, 0b11, 256, 4000);
    assert_eq!(count(&served, 1), 3 * count(&served, 0));
}

#[test]
fn an_entry_is_rounded_up_to_a_whole_packet() {
    let config = ArbitrationConfig { high: vec![], low: vec![(0, 1), (1, 1)], high_limit: 0 };
    assert_eq!(serve(&config, 0b11, 2048, 4), [0, 1, 0, 1]);
}

#[test]
fn without_a_limit_the_high_table_starves_the_low_one() {
    let config = ArbitrationConfig { high: vec![(2, 4)], low: vec![(0, 4)], high_limit: 255 };
    assert_eq!(count(&serve(&config, 0b101, 2048, 100), 0), 0);
}

#[test]
fn a_limit_of_zero_lets_one_high_packet_pass_before_a_low_one() {
    let config = ArbitrationConfig { high: vec![(2, 4)], low: vec![(0, 4)], high_limit: 0 };
    assert_eq!(serve(&config, 0b101, 2048, 4), [2, 0, 2, 0]);
}

#[test]
fn a_limit_of_one_lets_4096_octets_pass_rounded_up_to_a_packet() {
    let config = ArbitrationConfig { high: vec![(2, 255)], low: vec![(0, 4)], high_limit: 1 };
    assert_eq!(serve(&config, 0b101, 1024, 10), [2, 2, 2, 2, 0, 2, 2, 2, 2, 0]);
    assert_eq!(serve(&config, 0b101, 2074, 6), [2, 2, 0, 2, 2, 0]);
}

#[test]
fn weight_zero_and_lanes_out_of_service_are_never_chosen() {
    let config = ArbitrationConfig { high: vec![(1, 0)], low: vec![(0, 4), (3, 0)], high_limit: 0 };
    let served = serve(&config, 0xffff, 64, 50);
    assert_eq!(count(&served, 0), 50);
    let nobody = ArbitrationConfig { high: vec![], low: vec![(7, 4)], high_limit: 0 };
    assert_eq!(VlArbiter::new(&nobody, 2).choose(0xffff), None);
}

#[test]
fn a_blocked_lane_does_not_block_the_others() {
    let config = ArbitrationConfig::default();
    assert_eq!(count(&serve(&config, 0b10, 64, 20), 1), 20);
}
