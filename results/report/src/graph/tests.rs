//! Every link is in every picture.

use super::*;
use scenario::shapes::star::star;
use scenario::shapes::xgft::{net, tree};

#[test]
fn every_language_shows_every_link_and_every_node() {
    for topology in [star(3), tree(&net("pfister-32").expect("it is in the table"))] {
        let (dot, mermaid) = (dot("a fabric", &topology), mermaid(&topology));
        let svg = svg::svg("a <fabric>", &topology);
        assert_eq!(dot.matches(" -- ").count(), topology.cables.len());
        assert_eq!(mermaid.matches(" ---|").count(), topology.cables.len());
        assert_eq!(svg.matches("<path").count(), topology.cables.len());
        assert_eq!(svg.matches("<rect").count(), topology.nodes.len());
        assert!(svg.contains("a &lt;fabric&gt;"));
        for cable in &topology.cables {
            let (a, b) = (topology.end_name(cable.a), topology.end_name(cable.b));
            assert!(svg.contains(&format!("<title>{a} — {b}</title>")), "{a} {b}");
        }
        for node in &topology.nodes {
            assert!(dot.contains(&format!("{:?} [shape", node.name)));
            assert!(mermaid.contains(&format!("\"{}\"", node.name)));
        }
    }
}

#[test]
fn a_link_with_a_rate_of_its_own_says_so() {
    let mut topology = star(2);
    topology.cables[0].rate = Some(proto::units::BitRate::gbps(4));
    assert!(dot("x", &topology).contains("4 Gbps"));
    assert!(mermaid(&topology).contains("4 Gbps"));
    assert!(svg::svg("x", &topology).contains("4 Gbps"));
}

#[test]
fn no_two_port_numbers_of_a_picture_stand_on_each_other() {
    for topology in [star(3), star(40), tree(&net("pfister-32").expect("it is in the table"))] {
        let svg = svg::svg("x", &topology);
        let number = |line: &str, key: &str| -> f64 {
            let (_, rest) = line.split_once(&format!("{key}=\"")).expect("it has a place");
            rest.split('"').next().expect("it ends").parse().expect("a number")
        };
        let numbers = svg.lines().filter(|line| line.starts_with("<text class=\"p\""));
        let places: Vec<(f64, f64)> =
            numbers.map(|line| (number(line, " x"), number(line, " y"))).collect();
        assert!(places.len() >= topology.cables.len(), "each switch port has its number");
        for (index, a) in places.iter().enumerate() {
            let close = |b: &&(f64, f64)| (a.0 - b.0).abs() < 14.0 && (a.1 - b.1).abs() < 9.0;
            assert_eq!(places[index + 1..].iter().find(close), None, "{a:?}");
        }
    }
}

#[test]
fn a_cable_between_two_switches_of_a_row_goes_over_the_others() {
    let mut topology = star(1);
    let switch = topology.nodes[1].clone();
    topology.nodes[1].ports = 4;
    topology.nodes.extend([("s1", 3), ("s2", 4)].map(|(name, ports)| scenario::topology::Node {
        name: name.to_owned(),
        ports,
        ..switch.clone()
    }));
    topology.cable(scenario::topology::end(1, 1), scenario::topology::end(3, 1));
    assert!(svg::svg("x", &topology).contains("Q"), "an arc");
}
