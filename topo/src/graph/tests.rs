//! Every link is in every picture.

use super::*;
use crate::shapes::star::star;
use crate::shapes::xgft::{net, tree};

#[test]
fn every_language_shows_every_link_and_every_node() {
    for topology in [star(3), tree(&net("pfister-32").expect("it is in the table"))] {
        let (dot, mermaid) = (dot("a fabric", &topology), mermaid(&topology));
        let svg = svg::svg("a <fabric>", &topology);
        assert_eq!(dot.matches(" -- ").count(), topology.cables.len());
        assert_eq!(mermaid.matches(" ---|").count(), topology.cables.len());
        assert_eq!(svg.matches("<line").count(), topology.cables.len());
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
