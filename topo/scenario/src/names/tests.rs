//! What names match.

use super::*;
use crate::shapes::xgft::{net, tree};

fn fabric() -> Topology {
    tree(&net("pfister-32").expect("it is in the table"))
}

#[test]
fn a_range_names_its_numbers_and_no_others() {
    let topology = fabric();
    let range = nodes(&topology, "h[0-30]").expect("31 adapters");
    assert_eq!(range, (0..31).collect::<Vec<_>>());
    assert_eq!(nodes(&topology, "h[3,28-30]").expect("four"), [3, 28, 29, 30]);
    assert_eq!(nodes(&topology, "h3?").expect("two"), [30, 31]);
    assert_eq!(adapters(&topology, "*").expect("all").len(), 32);
}

#[test]
fn a_range_past_the_fabric_is_a_fault_and_names_the_first_missing_node() {
    let complaint = nodes(&fabric(), "h[0-40]").expect_err("h32 is missing");
    assert_eq!(complaint.message, "no node is called \"h32\"");
    assert!(complaint.hint.contains("h0 to h31"), "{}", complaint.hint);
    assert!(nodes(&fabric(), "h[0-99999999999]").is_err());
    assert!(nodes(&fabric(), "h[5-1]").is_err());
    assert!(nodes(&fabric(), "").is_err());
}

#[test]
fn ports_carry_a_number_and_a_direction() {
    let topology = fabric();
    let hot = directed(&topology, "h31:rx").expect("one port");
    assert_eq!(hot, [(crate::topology::end(31, 0), Direction::Rx)]);
    assert_eq!(directed(&topology, "leaf0:[5-8]:tx").expect("up ports").len(), 4);
    assert_eq!(ends(&topology, "spine*").expect("all").len(), 32);
    assert!(ends(&topology, "h0:2").expect_err("one port").hint.contains("1 to 1"));
}

#[test]
fn nobody_flows_to_himself() {
    let topology = fabric();
    assert_eq!(flows(&topology, "h*>h31").expect("31 flows").len(), 31);
    assert_eq!(flows(&topology, "h[28-30]>h31").expect("three"), [(28, 31), (29, 31), (30, 31)]);
    assert!(flows(&topology, "h1>h1").is_err());
    assert!(flows(&topology, "leaf0>h1").is_err());
}

#[test]
fn a_port_with_an_interface_of_the_host_is_measured_and_is_no_cable() {
    let mut topology = fabric();
    let attached = crate::topology::end(40, 9);
    topology.nodes[40].ports = 10;
    topology.attached.push(attached);
    let name = topology.end_name(attached);
    let found = directed(&topology, &format!("{name}:rx")).expect("an attached port");
    assert_eq!(found, [(attached, Direction::Rx)]);
    assert_eq!(senders(&topology, &name).expect("it sends"), [attached]);
    assert!(ends(&topology, &name).is_err());
}
