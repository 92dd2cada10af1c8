//! What a rendered scenario says to each device.

use super::*;
use emulation::recorder::Edge;
use nicd::config::{Arrivals, Target};
use proto::device::Depth;
use proto::ids::PortNumber;
use proto::units::{Duration, Instant};
use std::path::Path;

fn shipped(name: &str, sets: &[&str]) -> Lab {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scenarios").join(name);
    let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
    render(&crate::files::load(&path, &sets).expect("it is valid").scenario)
}

const TAU: Duration = Duration::from_ns(2074);

fn at(frames: u64) -> Instant {
    Instant::ZERO + TAU * frames
}

#[test]
fn case_4_renders_32_nics_and_12_switches_of_8_ports() {
    let lab = shipped("pfister/case4-ib-cca.toml", &[]);
    assert_eq!((lab.nics.len(), lab.switches.len()), (32, 12));
    assert_eq!(lab.fabric.wiring.links.len(), 64);
    assert_eq!(lab.fabric.tau, TAU);
    assert!(lab.fabric.wiring.links.iter().all(|link| link.frame_time == TAU));
    assert!(lab.fabric.wiring.links.iter().all(|link| link.delay == Duration::from_ps(259_250)));
    let leaf7 = &lab.switches[7];
    assert_eq!((leaf7.name.as_str(), leaf7.lid), ("leaf7", Lid::new(40)));
    let facing: Vec<bool> = leaf7.ports.iter().map(|port| port.faces_adapter).collect();
    assert_eq!(facing, [true, true, true, true, false, false, false, false]);
    assert_eq!(leaf7.ports[0].link.buffer, Bytes::new(76_032));
    assert_eq!(leaf7.sl2vl, [0; 16]);
    assert_eq!(leaf7.scheme.params["ccti_timer"].as_integer(), Some(31));
    assert_eq!(lab.nics[31].lid, Lid::new(32));
    assert_eq!(lab.nics[0].ack_timeout, TAU * 100_000);
    assert_eq!(lab.nics[0].classes.len(), 1, "all traffic shares its queue pairs");
}

#[test]
fn the_hot_load_becomes_an_interval_at_every_source_but_the_hot_node() {
    let lab = shipped("pfister/case4-none.toml", &[]);
    let named = |nic: usize| {
        lab.nics[nic].traffic.iter().map(|item| item.name.as_str()).collect::<Vec<_>>()
    };
    assert_eq!(named(0), ["before", "cold", "hot", "after"]);
    assert_eq!(named(31), ["hot-node"]);
    let hot = &lab.nics[0].traffic[2];
    assert_eq!(hot.to, Target::Lids(vec![Lid::new(32)]));
    assert_eq!(hot.arrivals, Arrivals::Poisson);
    // 2074 octets at 0.07 of 8 Gb/s.
    assert_eq!(hot.interval, Duration::from_ps(29_628_571));
    assert_eq!((hot.slot, hot.item), (TAU, 2));
    assert_eq!((hot.start, hot.stop), (at(2000), at(10_000)));
}

#[test]
fn readings_are_kept_at_every_edge_that_a_measure_needs() {
    let plan = shipped("pfister/case4-none.toml", &[]).plan;
    for edge in [0, 500, 2000, 7000, 10_000, 10_200, 13_800, 14_000] {
        // Where gaps of flows are wanted, and their release; else what ports count.
        let depth = if [7000, 10_000, 14_000].contains(&edge) { Depth::All } else { Depth::Ports };
        assert!(plan.edges.contains(&Edge { at: at(edge), depth }), "{edge}");
    }
    assert_eq!(plan.edges.len(), 5 + 20, "five edges of windows, twenty further bins");
    assert!(plan.edges.is_sorted());
    // The first window is the one whose level `recovery` compares with.
    assert_eq!(plan.measured, [(at(0), at(2000)), (at(7000), at(14_000))]);
    assert_eq!((plan.bin, plan.stop), (TAU * 50, at(14_000)));
}

#[test]
fn bins_grow_with_the_run() {
    let plan = shipped("pfister/case4-ib-cca-steady.toml", &[]).plan;
    assert_eq!(plan.bin, TAU * 165, "46 000 τ over 280 bins, rounded up");
    let plan = shipped("pfister/case4-none.toml", &["run.sample=20 mtu"]).plan;
    assert_eq!(plan.bin, TAU * 20);
}

#[test]
fn a_permutation_gives_everybody_another_partner() {
    let sets = ["traffic.before.to=permutation", "traffic.before.from=h*"];
    let lab = shipped("pfister/case4-none.toml", &sets);
    let partners: Vec<Lid> = lab
        .nics
        .iter()
        .map(|nic| match &nic.traffic[0].to {
            Target::Lids(lids) if lids.len() == 1 => lids[0],
            other => panic!("{} sends to {other:?}", nic.name),
        })
        .collect();
    let distinct: std::collections::BTreeSet<_> = partners.iter().collect();
    assert_eq!(distinct.len(), 32);
    assert!(lab.nics.iter().zip(&partners).all(|(nic, partner)| nic.lid != *partner));
    let again = shipped("pfister/case4-none.toml", &sets);
    assert_eq!(lab.nics, again.nics, "one seed, one permutation");
    let other = shipped("pfister/case4-none.toml", &[sets[0], sets[1], "run.seed=8"]);
    assert_ne!(lab.nics[0].traffic[0].to, other.nics[0].traffic[0].to);
}

#[test]
fn receivers_are_dealt_out_in_turn() {
    let sets = ["traffic.hot.to=h[28-31]", "traffic.hot.choice=dealt", "traffic.hot.from=h[0-27]"];
    let lab = shipped("pfister/case4-none.toml", &sets);
    for (index, nic) in lab.nics.iter().enumerate().take(28) {
        let hot = nic.traffic.iter().find(|item| item.item == 2).expect("all of them send");
        assert_eq!(hot.to, Target::Lids(vec![lab.nics[28 + index % 4].lid]), "{}", nic.name);
    }
}

#[test]
fn the_replay_switch_knows_lids_1_4_and_5_and_the_group() {
    let lab = shipped("replay/one-switch.toml", &[]);
    let switch = &lab.switches[0];
    let routes: Vec<_> = switch
        .routes
        .iter()
        .map(|route| (route.first.get(), route.last.get(), route.port.get()))
        .collect();
    assert_eq!(routes, [(1, 1, 1), (4, 4, 2), (5, 5, 3), (6, 6, 4)]);
    assert_eq!(switch.lid, Lid::new(2), "the lowest free one");
    assert_eq!(switch.multicast[0].lid, Lid::new(0xc000));
    assert_eq!(switch.multicast[0].ports, (0..3).map(PortNumber::from_index).collect::<Vec<_>>());
    assert!(lab.nics.iter().all(|nic| nic.traffic.is_empty()));
    let names: Vec<_> = lab.fabric.wiring.nodes.iter().map(|node| node.name.as_str()).collect();
    assert_eq!(names, ["h1", "h4", "h5", "h6", "s0"], "adapters come first");
}

#[test]
fn a_link_of_its_own_rate_has_its_own_frame_time_and_load() {
    let text = "schema = 1\nname = \"slow link\"\n[run]\nduration = \"10 us\"\n[fabric]\n\
        shape = \"star\"\nhosts = 3\nlinks = [{ a = \"s0:2\", rate = \"4 Gbps\", delay = \"5 ns\" }]\n\
        link = { vls = 2 }\n\
        [[traffic]]\nname = \"t\"\nfrom = \"h*\"\nto = \"uniform\"\nload = 0.5\n";
    let lab = render(&Scenario::parse(text, &[]).expect("it is valid"));
    assert_eq!(lab.fabric.wiring.links[1].frame_time, TAU * 2);
    assert_eq!(lab.fabric.wiring.links[1].delay, Duration::from_ns(5));
    assert_eq!(lab.nics[1].link.rate, BitRate::gbps(4));
    assert_eq!(lab.switches[0].ports[1].link.rate, BitRate::gbps(4));
    assert_eq!(lab.nics[1].traffic[0].interval, lab.nics[0].traffic[0].interval * 2);
    let map = [0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1];
    assert_eq!(lab.switches[0].sl2vl, map, "level 15 takes lane 7, which is lane 1 of two");
}

/// A star of five NICs with a multicast group, and these further lines.
fn with_group(technology: &str, rest: &str) -> Result<Lab, crate::keyfile::problem::Problems> {
    let text = format!(
        "schema = 1\nname = \"groups\"\nrun = {{ duration = \"10 us\" }}\n[fabric]\nshape = \"star\"\n\
         hosts = 5\ntechnology = \"{technology}\"\n[[fabric.group]]\nname = \"all\"\nmembers = \"h[1-2]\"\n\
         {rest}"
    );
    Scenario::parse(&text, &[]).map(|scenario| render(&scenario))
}

const MANAGED: &str = "[lab]\nmanaged = true\n";
const TO_GROUP: &str = "[[traffic]]\nname = \"news\"\nfrom = [\"h2\", \"h4\"]\nto = \"all\"\n\
                        load = 0.5\narrivals = \"paced\"\n";

#[test]
fn members_and_senders_of_a_group_join_it_and_others_do_not() {
    let rest = "[[fabric.group]]\nname = \"other\"\nmembers = \"h0\"\nmgid = \"ff15::a\"\n";
    let rest = format!("{rest}{MANAGED}{TO_GROUP}transport = \"ud\"\n");
    let lab = with_group("infiniband", &rest).expect("it is valid");
    let joins = lab.nics.iter().map(|nic| {
        let of = |group: &GroupConfig| {
            (group.name.clone(), group.lid.get(), group.mgid.to_string(), group.is_member)
        };
        nic.groups.iter().map(of).collect::<Vec<_>>()
    });
    let all = |is_member| vec![("all".to_owned(), 0xc000, "ff12::1".to_owned(), is_member)];
    let other = vec![("other".to_owned(), 0xc001, "ff15::a".to_owned(), true)];
    assert_eq!(joins.collect::<Vec<_>>(), [other, all(true), all(true), vec![], all(false)]);
    let item = &lab.nics[4].traffic[0];
    assert_eq!(item.to, Target::Lids(vec![Lid::new(0xc000)]));
    // LRH, GRH, BTH, DETH, one MTU and both checks at half the line.
    let octets = 8 + 40 + 12 + 8 + 2048 + 4 + 2;
    assert_eq!(item.slot, Bytes::new(octets).time_at(lab.nics[4].link.rate));
    assert!(lab.nics.iter().all(|nic| nic.check().is_ok()));
}

#[test]
fn groups_that_cannot_be_joined_are_refused() {
    let refused = |technology, rest: &str| {
        let problems = with_group(technology, rest).expect_err("it is refused");
        problems.in_file("x.toml")
    };
    let small = "mgid = \"ff12::7\"\n[fabric.nic]\nbuffer = \"1 mtu\"\n[lab]\nmanaged = true\n";
    let cases = [
        ("infiniband", small, "fabric.nic: a buffer of 2112 B cannot hold a packet with GRH"),
        ("infiniband", "", "fabric.group: groups are joined through a subnet manager"),
        ("ethernet", "", "fabric.group: Ethernet has no subnet administration"),
        (
            "infiniband",
            "[[fabric.group]]\nname = \"h3\"\nmembers = \"h0\"\n[lab]\nmanaged = true\n",
            "fabric.group.h3.name: \"h3\" is a node or a group already",
        ),
        (
            "infiniband",
            "mgid = \"fe80::1\"\n[lab]\nmanaged = true\n",
            "fabric.group.all.mgid: an MGID begins with ff",
        ),
        (
            "infiniband",
            "[[fabric.group]]\nname = \"b\"\nmembers = \"s0\"\n[lab]\nmanaged = true\n",
            "fabric.group.b.members: \"s0\" names switches",
        ),
    ];
    for (technology, rest, message) in cases {
        let said = refused(technology, rest);
        assert!(said.contains(message), "{said}");
    }
    let connected = refused("infiniband", &format!("{MANAGED}{TO_GROUP}"));
    assert!(connected.contains("traffic.news.transport: a multicast group takes datagrams"));
}
