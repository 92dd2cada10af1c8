//! Frames dropped at attached interfaces in the counters.

use super::*;
use emulation::cable::FrameTally;

#[test]
fn frames_dropped_at_an_interface_are_drops_of_its_port() {
    let tally = |link_local| FrameTally { end_to_end: 2, link_local };
    let reading = AttachedReading {
        device: 0,
        port: PortNumber::from_index(0),
        loss: None,
        mtu: None,
        away: tally(1),
        too_long: tally(3),
    };
    let snapshot = DeviceSnapshot { attached: vec![reading], ..DeviceSnapshot::default() };
    let names = [DropReason::InterfaceDown, DropReason::InterfaceMtu].map(DropReason::name);
    let drops = BTreeMap::from([(names[0].to_owned(), 4)]);
    let ports = vec![PortCounters { drops, ..PortCounters::default() }];
    let (node, kind) = ("s0".to_owned(), NodeKind::Switch);
    let nodes = vec![NodeCounters { node, kind, ports, flows: Vec::new() }];
    let counters = Counters { nodes, ..Counters::default() }.with_attached(&snapshot);
    let drops = &counters.nodes[0].ports[0].drops;
    assert_eq!(names.map(|name| drops[name]), [7, 5]);
}
