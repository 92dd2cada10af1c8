//! What a node is, and the requests that no agent answers with data.

use super::dialogue::{Ask, Dialogue, Node, Reply, Value};
use crate::prelude::*;
use management::attribute::subnet::{node_description, node_info};
use management::datagram::{
    BASE_VERSION, CLASS, CLASS_VERSION, METHOD, SUBNET_DIRECTED, SUBNET_LID_ROUTED, method, status,
};

/// The node GUIDs of managed fabrics begin here. Source: docs/reference/management.md.
const FIRST_GUID: u64 = 0x0250_4200_0000_0000;

/// The node GUID.
pub(super) fn guid(node: Node) -> u64 {
    FIRST_GUID | u64::from(node.lid().get()) << 8
}

/// SM-01 to SM-04: before the node has a LID.
pub(super) fn unaddressed(on: &mut Dialogue) {
    let node = on.node;
    on.case("SM-01");
    let (kind, ports, own): (u64, u64, u64) = match node {
        Node::Switch => (2, 4, guid(node)),
        Node::Nic => (1, 1, guid(node) + 1),
    };
    for port in 1..=ports.min(3) as u8 {
        let values = [
            (node_info::BASE_VERSION, 1),
            (node_info::CLASS_VERSION, 1),
            (node_info::NODE_TYPE, kind),
            (node_info::NUM_PORTS, ports),
            (node_info::NODE_GUID, guid(node)),
            (node_info::PORT_GUID, own),
            (node_info::LOCAL_PORT, port.into()),
        ];
        let values = values.map(|(field, value)| (field, 0, value)).to_vec();
        let ask = Ask::get(node_info::ATTRIBUTE.id, 0).by(port);
        on.say(format!("NodeInfo by port {port}"), ask, Reply::Answer(0, values));
    }
    on.case("SM-02");
    let text = node.name().as_bytes();
    let octet = |index: usize| text.get(index).copied().unwrap_or(0);
    let values: Vec<Value> =
        (0..64).map(|index| (node_description::TEXT, index, u64::from(octet(index)))).collect();
    on.read("NodeDescription", node_description::ATTRIBUTE.id, 0, &values);
    on.case("SM-03");
    refused(on);
    on.case("SM-04");
    let read_only: &[u16] = &[0x0010, 0x0011, 0x0020];
    let of_switches: &[u16] = &[0x0012, 0x0019, 0x001b];
    for id in read_only.iter().copied() {
        on.refuse(format!("Set of {id:#06x}"), Ask::set(id, 0, &[]), status::ATTRIBUTE);
    }
    if node == Node::Nic {
        for id in of_switches.iter().copied() {
            on.refuse(format!("Get of {id:#06x}"), Ask::get(id, 0), status::ATTRIBUTE);
            on.refuse(format!("Set of {id:#06x}"), Ask::set(id, 0, &[]), status::ATTRIBUTE);
        }
    }
}

fn refused(on: &mut Dialogue) {
    let info = node_info::ATTRIBUTE.id;
    for version in [0, 2, 255] {
        let ask = Ask::get(info, 0).with(BASE_VERSION, version);
        on.say(format!("base version {version}"), ask, Reply::Lost(DropReason::Management));
    }
    for version in [0, 2, 255] {
        let ask = Ask::get(info, 0).with(CLASS_VERSION, version);
        on.refuse(format!("class version {version}"), ask, status::VERSION);
    }
    for method in [0, 3, 4, 6, 8, 0x12, 0x7f] {
        let ask = Ask::get(info, 0).with(METHOD, method);
        on.refuse(format!("method {method:#04x}"), ask, status::METHOD);
    }
    for id in [0, 1, 0x0013, 0x001a, 0x001c, 0x0030, 0x0031, 0x8000, 0xff90, 0xffff] {
        for method in [method::GET, method::SET] {
            let ask = Ask::new(SUBNET_DIRECTED, method, id, 0);
            on.refuse(format!("attribute {id:#06x}, method {method}"), ask, status::ATTRIBUTE);
        }
    }
    // A response that nothing waits for ends here.
    let answer = Ask::get(info, 0).with(METHOD, method::GET_RESPONSE.into());
    on.say("a response in the direction of requests", answer, Reply::Taken);
}

/// SM-05 and SM-06: once the node has a LID and its port is Active.
pub(super) fn addressed(on: &mut Dialogue) {
    on.case("SM-05");
    for class in [0x02, 0x05, 0x06, 0x08, 0x09, 0x0a, 0x0f, 0x10, 0x20, 0x30, 0x4f, 0x80] {
        for method in [method::GET, method::SET] {
            let ask = Ask::new(class, method, 0x0001, 0);
            on.refuse(format!("class {class:#04x}, method {method}"), ask, status::ATTRIBUTE);
        }
    }
    on.case("SM-06");
    let info = node_info::ATTRIBUTE.id;
    let ask = Ask::new(SUBNET_LID_ROUTED, method::GET, info, 0);
    let values = vec![(node_info::NODE_GUID, 0, guid(on.node))];
    on.say("NodeInfo by LID", ask.clone(), Reply::Answer(0, values));
    // The class decides the queue pair and the lane.
    use management::packet::Addresses;
    let (from, to) = (on.node.manager(), on.node.lid());
    let data = Addresses::general(from, to, 1, VirtualLane::ZERO);
    let subnet = Addresses::subnet(from, to);
    let wrong = DropReason::QueuePair;
    on.say("subnet management on QP1", ask.clone().addressed(data), Reply::Lost(wrong));
    let general = Ask::new(0x04, method::GET, 0x0001, 0);
    on.say("performance on QP0", general.clone().addressed(subnet), Reply::Lost(wrong));
    let mixed = Addresses { lane: VirtualLane::ZERO, ..subnet };
    on.say("QP0 on a data lane", ask.clone().addressed(mixed), Reply::Lost(wrong));
    let mixed = Addresses { lane: VirtualLane::MANAGEMENT, ..data };
    on.say("QP1 on VL15", general.addressed(mixed), Reply::Lost(wrong));
    let own = ask.with(CLASS, SUBNET_LID_ROUTED.into());
    let here = Addresses::subnet(from, Lid::PERMISSIVE);
    on.say("the permissive LID", own.addressed(here), Reply::Answer(0, Vec::new()));
}
