//! What scenarios of the Zurich benchmark say: frames of a size of their own, outputs that serve less
//! than their line, a domain of congestion notification.

use super::*;
use crate::measure::Per;
use crate::render;
use proto::units::{BitRate, Duration};
use switchd::config::Defence;

const STAR: &str = "zhb/case1-partitioned-none.toml";

fn faults(sets: &[&str]) -> String {
    parse(STAR, sets).expect_err("it is wrong").in_file("x.toml")
}

#[test]
fn mtu_is_the_frame_where_one_is_given_and_so_is_a_test_frame() {
    let scenario = parse(STAR, &[]).expect("it is valid");
    // 1500 octets at 10 Gb/s.
    assert_eq!(scenario.fabric.scale.tau, Duration::from_ns(1200));
    assert_eq!(scenario.fabric.scale.frame, Bytes::new(1500));
    assert_eq!(scenario.traffic.items[0].size, Bytes::new(1500));
    let nic = render::nic(&scenario, 1);
    assert_eq!(nic.link.full_frame(), Bytes::new(1500));
    // 85 % of a frame a slot.
    assert_eq!(nic.traffic[0].slot, Duration::from_ns(1200));
    assert_eq!(nic.traffic[0].interval, Duration::from_ps(1_411_765));
    assert_eq!(scenario.measures[2].per, Per::Size(Bytes::new(150_000)));
}

#[test]
fn frames_that_no_link_takes_are_refused() {
    let long = faults(&["fabric.frame=\"2067 B\""]);
    assert!(long.contains("fabric.frame: a frame of 2067 B where mtu = \"2048 B\""), "{long}");
    let short = faults(&["traffic.all.size=\"63 B\""]);
    assert!(short.contains("traffic.all.size: a test frame of 63 B"), "{short}");
    assert!(short.contains("hint: from 64 B to 2066 B"), "{short}");
    let untold = faults(&["fabric.link.priorities=\"dscp\""]);
    assert!(untold.contains("test frames have no DSCP for their priority"), "{untold}");
    let write = faults(&["traffic.all.operation=\"write\""]);
    assert!(write.contains("test frames write no memory"), "{write}");
}

#[test]
fn a_slow_output_is_a_switchs_and_only_its_own_port_is_told() {
    let scenario = parse(STAR, &[]).expect("it is valid");
    let switch = render::switch(&scenario, 16);
    assert_eq!(switch.ports[0].service[0].rate, BitRate::gbps(2));
    assert!(switch.ports[1..].iter().all(|port| port.service.is_empty()));
    let nic = faults(&["fabric.switch.service.0.at=\"h0:1\""]);
    assert!(nic.contains("h0:1 is a port of a NIC"), "{nic}");
    let never = faults(&[
        "fabric.switch.service.0.start=\"2 ms\"",
        "fabric.switch.service.0.stop=\"1 ms\"",
    ]);
    assert!(never.contains("it stops before it starts"), "{never}");
}

#[test]
fn a_domain_has_seven_priorities_at_most_and_ports_of_their_own_defence() {
    let sets =
        ["fabric.switch.cn={ cnpv = [3, 5], ports = [{ at = \"s0:2\", defence = \"edge\" }] }"];
    let scenario = parse(STAR, &sets).expect("it is valid");
    let switch = render::switch(&scenario, 16);
    let defence = |port: usize, priority: usize| switch.ports[port].domain.defence[priority];
    assert_eq!(defence(0, 3), Defence::InteriorReady);
    assert_eq!(defence(0, 4), Defence::Disabled);
    assert_eq!((defence(1, 3), defence(1, 5)), (Defence::Edge, Defence::Edge));
    assert_eq!(switch.ports[1].domain.alternate[5].get(), 4);
    let all = faults(&["fabric.switch.cn={ cnpv = [0, 1, 2, 3, 4, 5, 6, 7] }"]);
    assert!(all.contains("fabric.switch.cn.cnpv: all eight priorities"), "{all}");
    let inside = faults(&[
        "fabric.switch.cn={ ports = [{ at = \"s0:2\", defence = \"edge\", alternate = 3 }] }",
    ]);
    assert!(inside.contains("the alternate is a priority of the domain"), "{inside}");
}

#[test]
fn a_queue_alone_is_a_ratio_to_a_size() {
    let told = faults(&["measure.mean_port.per=\"150 KB\""]);
    assert!(told.contains("throughput cannot be given per 150 KB"), "{told}");
}
