//! Settings that change while a switch runs: nothing is lost or reordered, and what is refused changes nothing.

use super::bench::{BOTH, Bench, FRAME, Look, P3, bench, config, data, lossy};
use crate::config::SwitchConfig;
use proto::device::Control;
use proto::frame::{Frame, FrameKind};
use proto::ids::{Ecn, PortNumber};
use proto::units::Duration;
use proto::wire::classify::classify;
use testbed::Bed;

fn change(bench: &mut Bench, settings: &str, port: Option<u8>) -> Result<(), String> {
    let port = port.map(|port| PortNumber::new(port).expect("a port"));
    bench.device.change(&settings.parse().expect("TOML"), port)
}

/// Queues so many frames of both priorities at output 4, lets them leave, and returns their priorities as they left.
fn served(bench: &mut Bench, frames: u32) -> Vec<u8> {
    bench.clear();
    bench.pfc(4, BOTH, u16::MAX);
    for psn in 0..frames {
        bench.inject(1, data(1, 4, psn));
        bench.inject(2, lossy(2, 4, psn));
    }
    bench.pfc(4, BOTH, 0);
    bench.run_for(Duration::from_us(100));
    let headers = |frame: &Frame| classify(FrameKind::Ethernet, &frame.octets).expect("a packet");
    let sent: Vec<_> = bench.sent(4).iter().map(headers).collect();
    for source in [Ecn::NotCapable, Ecn::Capable0] {
        let psns = sent.iter().filter(|headers| headers.ecn == source).map(|headers| headers.psn);
        assert!(psns.eq(0..frames), "every frame, in order");
    }
    sent.iter().map(|headers| if headers.ecn == Ecn::NotCapable { 0 } else { P3 }).collect()
}

fn share(served: &[u8]) -> usize {
    served.iter().filter(|priority| **priority == P3).count()
}

#[test]
fn shares_of_traffic_classes_change_within_a_round() {
    let mut bench = bench(config());
    assert_eq!(share(&served(&mut bench, 10)[..10]), 5, "equal weights");
    change(&mut bench, "link.scheduling = [1, 1, 1, 4, 1, 1, 1, 1]", Some(4)).expect("it can");
    assert_eq!(share(&served(&mut bench, 10)[..10]), 8);
    change(&mut bench, "link.scheduling = [1, 1, 1, \"strict\", 1, 1, 1, 1]", None)
        .expect("it can");
    assert_eq!(share(&served(&mut bench, 10)[..10]), 10);
    change(&mut bench, "link.scheduling = [1, 1, 1, 1, 1, 1, 1, 1]", Some(1)).expect("it can");
    assert_eq!(share(&served(&mut bench, 10)[..10]), 10, "port 4 keeps its own");
}

fn marked(bench: &mut Bench) -> u64 {
    let before = bench.named(4, "queue3_ecn_marked_packets");
    bench.pfc(4, 1 << P3, u16::MAX);
    (0..20).for_each(|psn| bench.inject(1, data(1, 4, psn)));
    bench.pfc(4, 1 << P3, 0);
    bench.run_for(Duration::from_us(100));
    bench.named(4, "queue3_ecn_marked_packets") - before
}

#[test]
fn a_marking_curve_moves_for_the_frames_that_wait() {
    let mut config = config();
    config.scheme.kind = "dcqcn".to_owned();
    config.scheme.params = "kmin = \"1 MB\"\nkmax = \"1 MB\"".parse().expect("TOML");
    let mut bench = bench(config);
    assert_eq!(marked(&mut bench), 0);
    let curve = format!("scheme = {{ kmin = \"{0} B\", kmax = \"{0} B\" }}", 5 * FRAME);
    change(&mut bench, &curve, None).expect("it can");
    assert_eq!(marked(&mut bench), 15, "of twenty in a queue those above five");
    // The lower end of the curve is not named and stays.
    change(&mut bench, &format!("scheme.kmax = \"{} B\"\nscheme.pmax = 1.0", 25 * FRAME), None)
        .expect("it can");
    assert!((1..15).contains(&marked(&mut bench)));
}

#[test]
fn a_threshold_of_the_pool_moves_while_frames_are_in_it() {
    let mut bench = bench(config());
    bench.pfc(4, BOTH, u16::MAX);
    (0..10).for_each(|psn| bench.inject(1, data(1, 4, psn)));
    assert_eq!(bench.times(1), [0; 0]);
    change(&mut bench, &format!("switch.pool.threshold = \"{} B\"", 9 * FRAME), None)
        .expect("it can");
    assert_eq!(bench.times(1), [0; 0]);
    bench.inject(1, data(1, 4, 10));
    assert_eq!(bench.times(1), [u16::MAX], "two reserved and nine shared");
    bench.pfc(4, BOTH, 0);
    bench.run_for(Duration::from_us(100));
    assert_eq!((bench.counts()[3], bench.lost()), (11, 0));
    assert!(bench.is_empty());
}

#[test]
fn marks_of_an_input_move_with_its_headroom() {
    let per_input = |config: SwitchConfig| {
        let mut config = config;
        config.memory.kind = "per-input".to_owned();
        config.memory.params.clear();
        config
    };
    let mut bench = bench(per_input(config()));
    bench.pfc(4, BOTH, u16::MAX);
    (0..50).for_each(|psn| bench.inject(1, data(1, 4, psn)));
    assert_eq!(bench.times(1), [0; 0], "90 of 100 fit before XOFF");
    change(&mut bench, &format!("switch.headroom = \"{} B\"", 49 * FRAME), None).expect("it can");
    bench.inject(1, data(1, 4, 50));
    assert_eq!(bench.times(1), [u16::MAX]);
    let refused = change(&mut bench, "switch.pool.threshold = 1", None);
    assert_eq!(refused, Err("switch.pool has no effect on this switch".to_owned()));
}

#[test]
fn what_is_refused_changes_nothing() {
    let mut bench = bench(config());
    let weights = "link.scheduling = [1, 1, 1, 9, 1, 1, 1, 1]\n";
    for (wrong, why) in [
        ("routes = []", "\"routes\" cannot change"),
        ("link.rate = \"1 Gbps\"", "rate"),
        ("link.scheduling = [1, 1]", "another length"),
        ("link.scheduling = [0, 1, 1, 1, 1, 1, 1, 1]", "scheduling"),
        ("scheme.kmin = \"1 KB\"", "kmin"),
        ("switch.pool.size = \"1 GB\"", "pool.size cannot change"),
        ("switch.headroom = \"1 MB\"", "headroom"),
        ("switch.pool.threshold = \"1 B\"", "pool.threshold"),
        ("switch.buffer = \"1 MB\"", "buffer"),
    ] {
        let settings =
            if wrong.starts_with("link") { wrong.to_owned() } else { format!("{weights}{wrong}") };
        let refused = change(&mut bench, &settings, None).expect_err(wrong);
        assert!(refused.contains(why), "{wrong}: {refused}");
    }
    assert!(change(&mut bench, weights, Some(200)).is_err(), "there are four ports");
    assert_eq!(share(&served(&mut bench, 10)[..10]), 5);
}
