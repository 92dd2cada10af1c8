//! `ar-t1` and `ar-t3`: two test networks of adaptive routing, as reconstructed in
//! docs/spec/algorithms.md 9.4. The preferred ways meet; each source has a way of its own beside them.
//!
//! ```text
//!   ar-t1:  h1 ─ s1 ─┬──────── s7 ────────┬─ s8 ─ h4      ar-t3:  h1, h2 by m1 and h3, h4 by m2
//!           h2 ─ s2 ─┤  (s1, s2, s3       ├──────  h5              to e with h5 … h8;
//!           h3 ─ s3 ─┘   also by s4, s5, s6)  ───── h6              by p1 … p4 alone
//! ```
//!
//! All ways of a pair are equally long; a switch's ports are numbered by preference. Ports: to hosts, then to the
//! preferred middle, then to the private ones. Addresses count as everywhere: hosts, then switches.

use crate::shapes::Shape;
use crate::topology::{Topology, end};

/// The row of the registry for three sources that meet in one middle.
pub const T1: Shape = Shape { name: "ar-t1", keys: &[], build: |_| Some(t1()) };

/// The row of the registry for two pairs of sources that meet in a middle each.
pub const T3: Shape = Shape { name: "ar-t3", keys: &[], build: |_| Some(t3()) };

/// With this the number of a destination never turns the order of ports.
const NO_TURN: u64 = 1 << 32;

/// A network of one column of sources' switches, one of middles, and one switch before all receivers.
struct Plan<'a> {
    /// Ingress switches, one a source.
    ingress: &'a [&'a str],
    /// Middles, each with the ingress switches that it is cabled to, by number.
    middles: &'a [(&'a str, &'a [usize])],
    /// The egress switch.
    egress: &'a str,
    /// In which order the switches have their addresses.
    switches: &'a [&'a str],
}

/// The first test network.
pub fn t1() -> Topology {
    build(&Plan {
        ingress: &["s1", "s2", "s3"],
        middles: &[("s7", &[0, 1, 2]), ("s4", &[0]), ("s5", &[1]), ("s6", &[2])],
        egress: "s8",
        switches: &["s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8"],
    })
}

/// The third test network.
pub fn t3() -> Topology {
    build(&Plan {
        ingress: &["s1", "s2", "s3", "s4"],
        middles: &[
            ("m1", &[0, 1]),
            ("m2", &[2, 3]),
            ("p1", &[0]),
            ("p2", &[1]),
            ("p3", &[2]),
            ("p4", &[3]),
        ],
        egress: "e",
        switches: &["s1", "s2", "s3", "s4", "m1", "m2", "p1", "p2", "p3", "p4", "e"],
    })
}

fn build(plan: &Plan<'_>) -> Topology {
    let sources = plan.ingress.len();
    let mut topology = Topology { is_tree: true, ..Topology::default() };
    for host in 1..=2 * sources {
        topology.add(format!("h{host}"), 0, 0, NO_TURN);
    }
    for name in plan.switches {
        let is_middle = plan.middles.iter().any(|(middle, _)| middle == name);
        topology.add((*name).to_owned(), if is_middle { 2 } else { 1 }, 0, NO_TURN);
    }
    let find = |topology: &Topology, name: &str| {
        topology.find(name).expect("every switch of the plan is among its switches")
    };
    let egress = find(&topology, plan.egress);
    for source in 0..sources {
        let ingress = find(&topology, plan.ingress[source]);
        join(&mut topology, source, ingress);
        join(&mut topology, sources + source, egress);
    }
    for (middle, below) in plan.middles {
        let middle = find(&topology, middle);
        for source in *below {
            let ingress = find(&topology, plan.ingress[*source]);
            join(&mut topology, ingress, middle);
        }
        join(&mut topology, middle, egress);
    }
    topology
}

/// A cable between the next free ports of two nodes.
fn join(topology: &mut Topology, a: usize, b: usize) {
    let [a, b] = [a, b].map(|node| {
        let ports = &mut topology.nodes[node].ports;
        *ports += 1;
        end(node, usize::from(*ports) - 1)
    });
    topology.cable(a, b);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::routes::proof::{prove, ways};
    use crate::routes::{Forwarding, Routing};

    fn far(topology: &Topology, name: &str) -> Vec<String> {
        let node = topology.find(name).expect("it is there");
        let ends = &topology.neighbours()[node];
        ends.iter().map(|end| topology.end_name(end.expect("cabled"))).collect()
    }

    #[test]
    fn ports_stand_in_the_order_of_preference() {
        let t1 = t1();
        assert_eq!(far(&t1, "s2"), ["h2:1", "s7:2", "s5:1"]);
        assert_eq!(far(&t1, "s7"), ["s1:2", "s2:2", "s3:2", "s8:4"]);
        assert_eq!(far(&t1, "s8"), ["h4:1", "h5:1", "h6:1", "s7:4", "s4:2", "s5:2", "s6:2"]);
        let t3 = t3();
        assert_eq!(far(&t3, "s3"), ["h3:1", "m2:1", "p3:1"]);
        assert_eq!(far(&t3, "m1"), ["s1:2", "s2:2", "e:5"]);
        assert_eq!(far(&t3, "e").len(), 10);
    }

    #[test]
    fn by_the_preferred_way_sources_meet_and_each_has_a_way_of_its_own() {
        let adaptive = Routing::named("adaptive").expect("a row");
        for (topology, flows) in
            [(t1(), vec![(0, 3), (1, 4), (2, 5)]), (t3(), vec![(0, 4), (1, 5), (2, 6), (3, 7)])]
        {
            let neighbours = topology.neighbours();
            let forwarding = Forwarding::new(&topology, adaptive);
            let proof = prove(&topology, &forwarding);
            assert!(proof.broken.is_empty() && proof.circle.is_empty());
            let middles: Vec<Vec<usize>> = flows
                .iter()
                .map(|(from, to)| {
                    let found = ways(&topology, &neighbours, &forwarding, *from, *to);
                    found.expect("they get there").iter().map(|way| way[2].node).collect()
                })
                .collect();
            let first = Forwarding::new(&topology, Routing::named("d-mod-k").expect("a row"));
            for (own, (from, to)) in middles.iter().zip(&flows) {
                assert_eq!(own.len(), 2);
                let way = &ways(&topology, &neighbours, &first, *from, *to).expect("a way")[0];
                assert_eq!(way[2].node, own[0], "the preferred middle");
                let users = middles.iter().filter(|other| other[1] == own[1]).count();
                assert_eq!(users, 1, "the second middle is its own");
            }
        }
    }
}
