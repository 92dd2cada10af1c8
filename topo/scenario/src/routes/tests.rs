//! Routes of the named nets, and of fabrics that do not work.

use super::proof::{Broken, prove, ways};
use super::*;
use crate::shapes::xgft::{NETS, net, tree};
use crate::topology::{Node, end};

fn pfister() -> Topology {
    tree(&net("pfister-32").expect("it is in the table"))
}

#[test]
fn all_remote_traffic_to_the_last_adapter_goes_through_spine_3() {
    let topology = pfister();
    let forwarding = Forwarding::new(&topology, Routing::named("d-mod-k").expect("a row"));
    let neighbours = topology.neighbours();
    for from in 0..28 {
        let way = path(&topology, &neighbours, &forwarding, from, 31).expect("a way");
        let names: Vec<_> = way.iter().map(|end| topology.end_name(*end)).collect();
        let leaf = from / 4;
        assert_eq!(names, [&format!("h{from}:1"), &format!("leaf{leaf}:8"), "spine3:8", "leaf7:4"]);
    }
    let way = path(&topology, &neighbours, &forwarding, 28, 31).expect("a way");
    assert_eq!(way.len(), 2, "a neighbour on the same leaf does not climb");
}

#[test]
fn d_mod_k_spreads_destinations_evenly_over_both_stages() {
    let topology = tree(&net("pfister-128-5stage").expect("it is in the table"));
    let forwarding = Forwarding::new(&topology, Routing::named("d-mod-k").expect("a row"));
    let neighbours = topology.neighbours();
    for to in 32..128 {
        let way = path(&topology, &neighbours, &forwarding, 0, to).expect("a way");
        assert_eq!(way.len(), 6, "host, edge, agg, core, agg, edge");
        assert_eq!(usize::from(way[1].port.get()), 5 + to % 4);
        assert_eq!(usize::from(way[2].port.get()), 5 + to / 4 % 4);
        assert_eq!(topology.nodes[way[3].node].name, format!("core{}", to % 16));
    }
}

#[test]
fn every_named_net_connects_everybody_without_a_circle() {
    for (name, _, _) in NETS.iter().filter(|net| net.0 != "pfister-432") {
        let topology = tree(&net(name).expect("it is in the table"));
        let proof = prove(
            &topology,
            &Forwarding::new(&topology, Routing::named("d-mod-k").expect("a row")),
        );
        assert!(proof.broken.is_empty() && proof.circle.is_empty(), "{name}: {proof:?}");
    }
}

#[test]
fn tables_are_written_as_runs() {
    let topology = pfister();
    let forwarding = Forwarding::new(&topology, Routing::named("d-mod-k").expect("a row"));
    let spine0 = topology.find("spine0").expect("there is one");
    let runs = forwarding.runs(spine0);
    assert_eq!(runs.len(), 8, "one run a leaf: {runs:?}");
    assert_eq!((runs[7].first.get(), runs[7].last.get(), runs[7].port.get()), (29, 32, 8));
}

/// The only way there is.
fn path(
    topology: &Topology,
    neighbours: &[Vec<Option<End>>],
    forwarding: &Forwarding,
    from: usize,
    to: usize,
) -> Result<Vec<End>, Broken> {
    let mut ways = ways(topology, neighbours, forwarding, from, to)?;
    assert_eq!(ways.len(), 1, "nothing spreads flows here");
    Ok(ways.remove(0))
}

fn ring_of_three() -> Topology {
    let mut topology = Topology::default();
    for index in 0..6u16 {
        let adapter = index < 3;
        topology.nodes.push(Node {
            name: format!("{}{}", if adapter { "h" } else { "s" }, index % 3),
            kind: if adapter { NodeKind::Nic } else { NodeKind::Switch },
            lid: Lid::new(index + 1),
            ports: if adapter { 1 } else { 3 },
            level: u8::from(!adapter),
            spread: 1,
        });
    }
    for index in 0..3 {
        topology.cable(end(index, 0), end(3 + index, 0));
        topology.cable(end(3 + index, 1), end(3 + (index + 1) % 3, 2));
    }
    topology
}

#[test]
fn routes_around_a_ring_are_found_to_wait_in_a_circle() {
    let topology = ring_of_three();
    let mut forwarding = Forwarding::new(&topology, Routing::named("d-mod-k").expect("a row"));
    assert!(
        prove(&topology, &forwarding).circle.is_empty(),
        "shortest paths use no two ring links"
    );
    let clockwise = PortNumber::from_index(1);
    for switch in 0..3 {
        for to in (0..3).filter(|to| *to != switch) {
            forwarding.set(3 + switch, topology.nodes[to].lid, &[clockwise]);
        }
    }
    let proof = prove(&topology, &forwarding);
    assert!(proof.broken.is_empty());
    assert_eq!(proof.circle.len(), 3, "{:?}", proof.circle);
}

#[test]
fn a_loop_and_a_dead_port_are_told_apart() {
    let topology = ring_of_three();
    let neighbours = topology.neighbours();
    let mut forwarding = Forwarding::new(&topology, Routing::named("d-mod-k").expect("a row"));
    let home = topology.nodes[0].lid;
    for switch in 3..6 {
        forwarding.set(switch, home, &[PortNumber::from_index(1)]);
    }
    let looped = path(&topology, &neighbours, &forwarding, 1, 0);
    assert_eq!(looped, Err(Broken::Loop { at: 4 }));
    let dead = End { node: 4, port: PortNumber::from_index(7) };
    forwarding.set(4, home, &[dead.port]);
    assert_eq!(path(&topology, &neighbours, &forwarding, 1, 0), Err(Broken::DeadPort { at: dead }));
}

#[test]
fn with_ecmp_every_spine_is_a_way_and_all_are_proved() {
    let topology = tree(&net("pfister-32").expect("it is in the table"));
    let forwarding = Forwarding::new(&topology, Routing::named("ecmp").expect("a row"));
    let found =
        ways(&topology, &topology.neighbours(), &forwarding, 0, 31).expect("they lead home");
    let spines: Vec<_> =
        found.iter().map(|way| topology.nodes[way[2].node].name.as_str()).collect();
    assert_eq!(spines, ["spine0", "spine1", "spine2", "spine3"]);
    let proof = prove(&topology, &forwarding);
    assert!(proof.broken.is_empty() && proof.circle.is_empty());
    let leaf0 = topology.find("leaf0").expect("there are eight");
    let far: Vec<_> =
        forwarding.runs(leaf0).into_iter().filter(|run| run.last.get() == 32).collect();
    assert_eq!(far.len(), 4, "one run for each spine: {far:?}");
    assert!(far.iter().all(|run| run.first.get() == 5));
}

#[test]
fn by_preference_each_destination_has_all_ports_and_that_of_d_mod_k_first() {
    let topology = pfister();
    let all = Forwarding::new(&topology, Routing::named("adaptive").expect("a row"));
    let one = Forwarding::new(&topology, Routing::named("d-mod-k").expect("a row"));
    let leaf0 = topology.find("leaf0").expect("there are eight");
    for to in 4..32 {
        let lid = topology.nodes[to].lid;
        assert_eq!(all.ports(leaf0, lid).len(), 4);
        assert_eq!(all.ports(leaf0, lid)[..1], *one.ports(leaf0, lid));
    }
    // The order survives being written as runs.
    let mut read: BTreeMap<Lid, Vec<PortNumber>> = BTreeMap::new();
    for run in all.runs(leaf0) {
        for lid in run.first.get()..=run.last.get() {
            read.entry(Lid::new(lid)).or_default().push(run.port);
        }
    }
    assert_eq!(read, all.tables[leaf0 - topology.adapters()]);
    let proof = prove(&topology, &all);
    assert!(proof.broken.is_empty() && proof.circle.is_empty());
}

#[test]
fn a_detour_that_leads_back_is_found_with_its_way() {
    let topology = ring_of_three();
    let mut forwarding = Forwarding::new(&topology, Routing::named("d-mod-k").expect("a row"));
    let home = topology.nodes[0].lid;
    let ports = [1, 2].map(PortNumber::from_index);
    forwarding.set(4, home, &[ports[1], ports[0]]);
    assert!(prove(&topology, &forwarding).broken.is_empty(), "one way round is a detour");
    forwarding.set(5, home, &[ports[0], ports[1]]);
    let broken = prove(&topology, &forwarding).broken;
    let ways: Vec<Vec<String>> = broken
        .iter()
        .map(|failure| failure.way.iter().map(|end| topology.end_name(*end)).collect())
        .collect();
    assert_eq!(broken[0].why, Broken::Loop { at: 4 });
    assert_eq!(ways[0], ["h1:1", "s1:2", "s2:3"]);
}
