//! The sum over bins equals the whole reading: flows reported individually and flows reported as a sum lose
//! no octet and no picosecond.

use super::cable::*;
use super::*;
use crate::config::{NicConfig, Operation, QueuePairOrder, TrafficConfig, Transport};
use proto::counters::{BinReading, MovedFlow};
use proto::ids::Lid;

/// Both flows have begun by now. From this microsecond on, frames to LID 2 are marked.
const MARKED_FROM: u64 = 40;
const BIN: u64 = 17;
const BINS: u64 = 12;

/// NIC 0 begins to send to LIDs 2, 3 and 4 at these microseconds. All three are behind the same cable.
fn flows(scope: &str, starts: &[u64]) -> Pair {
    let to =
        |(lid, start): (u16, &u64)| TrafficConfig { start: us(*start), ..burst(lid, 2048, 40) };
    let mut settings = NicConfig {
        traffic: (2..).zip(starts).map(to).collect(),
        classes: vec![class(Transport::Uc, Operation::Send)],
        qp_order: QueuePairOrder::RoundRobin,
        scheme: throttled_by(3),
        ..config(1)
    };
    settings.scheme.params.insert("scope".to_owned(), scope.into());
    Pair::alike(settings).with_impairment(|seen| {
        let hot = seen.is_data() && seen.packet().lrh.dlid == Lid::new(2);
        if hot && seen.at >= us(MARKED_FROM) { Impairment::Mark } else { Impairment::Pass }
    })
}

/// Octets, and the integrals of rate and gap, of every flow.
fn totals(pair: &mut Pair) -> Vec<(u64, [u128; 2])> {
    let flows = pair.reading(0).flows;
    flows.iter().map(|f| (f.tx_bytes, [f.rate.integral, f.gap.integral])).collect()
}

/// Runs to the end of bin `number`, counted from 1, and reads it.
fn close_bin(pair: &mut Pair, number: u64, bin: &mut BinReading) -> Instant {
    let end = us(number * BIN);
    pair.advance(end);
    pair.nics[0].read_bin(end, bin);
    pair.nics[0].begin_bin(end);
    end
}

/// How many flows the last bin reports individually.
fn individually_reported(scope: &str) -> usize {
    let mut pair = flows(scope, &[5, 25]);
    let mut bin = BinReading::default();
    let mut before = Vec::new();
    for number in 1..=BINS {
        let end = close_bin(&mut pair, number, &mut bin);
        let after = totals(&mut pair);
        before.resize(after.len(), (0, [0; 2]));

        let sent = |flows: &[(u64, [u128; 2])]| flows.iter().map(|(octets, _)| octets).sum::<u64>();
        let [unmoved] = bin.unmoved[..] else { panic!("one class: {bin:?}") };
        let reported: u64 = bin.moved.iter().map(|flow| flow.tx_bytes).sum();
        assert_eq!(reported + unmoved.tx_bytes, sent(&after) - sent(&before), "bin {number}");
        assert_eq!(bin.moved.len() as u64 + unmoved.flows, after.len() as u64, "bin {number}");
        assert_eq!(bin.moved.is_empty(), end <= us(MARKED_FROM), "bin {number}");
        for MovedFlow { flow, tx_bytes, rate, gap, ever_reacted, .. } in &bin.moved {
            let at = flow.destination as usize - 2;
            let ((octets, [rates, gaps]), (octets_before, [rates_before, gaps_before])) =
                (after[at], before[at]);
            assert_eq!(*tx_bytes, octets - octets_before, "bin {number}");
            assert_eq!(rate.integral, rates - rates_before, "bin {number}");
            assert_eq!(gap.integral, gaps - gaps_before, "bin {number}");
            assert!(*ever_reacted && gap.max > 0, "bin {number}");
        }
        before = after;
    }
    assert!(before.iter().all(|(octets, _)| *octets > 10 * FULL), "{before:?}");
    bin.moved.len()
}

#[test]
fn a_flow_is_reported_individually_from_the_bin_in_which_its_reaction_point_moves() {
    assert_eq!(individually_reported("queue-pair"), 1);
    assert_eq!(individually_reported("service-level"), 2, "both flows share a reaction point");
}

#[test]
fn a_new_flow_of_a_moved_reaction_point_is_reported_individually() {
    let mut pair = flows("service-level", &[5, 25, MARKED_FROM + 100]);
    let mut bin = BinReading::default();
    for number in 1..=BINS {
        close_bin(&mut pair, number, &mut bin);
    }
    let reported: Vec<u64> = bin.moved.iter().map(|moved| moved.flow.destination).collect();
    assert_eq!((reported, bin.unmoved[0].flows), (vec![2, 3, 4], 0));
}

/// Both flows begin in the third bin, which begins at 34 µs. One of them moves in it.
#[test]
fn a_flow_counts_for_the_whole_of_the_bin_in_which_it_begins() {
    const BEGINS: u64 = 2 * BIN + 3;
    let mut pair = flows("queue-pair", &[BEGINS, BEGINS]);
    let mut bin = BinReading::default();
    for number in 1..=3 {
        close_bin(&mut pair, number, &mut bin);
    }
    let [moved] = bin.moved[..] else { panic!("one flow has moved: {bin:?}") };
    let before_it_began = u128::from(8_000_000_000_u64) * 3_000_000;
    assert_eq!(moved.rate.integral, totals(&mut pair)[0].1[0] + before_it_began);
    assert_eq!(bin.unmoved[0].flows, 1, "the unmoved flow counts for the whole bin");
}
