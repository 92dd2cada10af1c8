//! The tables of a switch, and those of a port: blocks, limits, and what they do to data.

use super::dialogue::{Ask, Dialogue, Node, Reply, Value};
use super::ports::RETRAINED;
use crate::prelude::*;
use management::attribute::subnet::{
    guid_info, linear_forwarding as linear, multicast_forwarding as multicast, p_key_table as keys,
    port_info, sl_to_vl as lanes, sm_info, switch_info as info, vl_arbitration as arbitration,
};
use management::attribute::{Access, Field};
use management::datagram::{SUBNET_DIRECTED, method, status};
use testbed::frames::infiniband::Packet;

const BAD: u16 = status::VALUE;
/// No output.
const NOWHERE: u64 = 255;
/// The first LID behind the blocks of the linear table.
const LINEAR_CAP: u64 = 0xc000;

/// Every LID behind the port of its number, and the switch's own at port 0.
pub(super) fn routes() -> Vec<Value> {
    let port = |lid: usize| match lid {
        1..=4 => lid as u64,
        5 => 0,
        _ => NOWHERE,
    };
    (0..64).map(|lid| (linear::PORT, lid, port(lid))).collect()
}

/// The same with another output of one LID.
fn routes_but(lid: usize, port: u64) -> Vec<Value> {
    let mut all = routes();
    all[lid].2 = port;
    all
}

/// A packet of data from the neighbour of port 1.
fn data(on: &mut Dialogue, what: &str, packet: Packet, expected: Reply) {
    let octets = Packet { payload: 64, ..packet }.octets();
    on.put(what, 1, octets, 0, expected);
}

fn to(lid: u16) -> Packet {
    Packet::new(1, lid, 0)
}

fn set(on: &mut Dialogue, what: &str, id: u16, modifier: u32, values: &[Value]) {
    on.say(what, Ask::set(id, modifier, values), Reply::Answer(0, values.to_vec()));
}

/// SM-28: in Initialize only management passes.
pub(super) fn before_active(on: &mut Dialogue) {
    on.case("SM-28");
    data(on, "data in Initialize", to(2), Reply::Lost(DropReason::LinkState));
    on.grant("subnet management in Initialize", Ask::get(0x0011, 0));
}

/// SM-28: data for a port that leaves Active, until it is Active again.
fn behind_a_port(on: &mut Dialogue) {
    const PORT: u8 = 3;
    on.case("SM-28");
    let state = |on: &mut Dialogue, value: u64| {
        let values = [(port_info::PORT_STATE, 0, value)];
        let ask = Ask::port_info(on.node, PORT.into(), &values);
        on.say(format!("port 3 is set to state {value}"), ask, Reply::Answer(0, values.to_vec()));
    };
    let ends = || Reply::Discarded(PORT, DropReason::LinkState);
    data(on, "data by an Active port", to(PORT.into()), Reply::Copies(vec![PORT], 0));
    state(on, 1);
    data(on, "data by a port that is Down", to(PORT.into()), ends());
    on.wait(RETRAINED);
    data(on, "data by a port in Initialize", to(PORT.into()), ends());
    state(on, 3);
    data(on, "data by an Armed port", to(PORT.into()), ends());
    state(on, 4);
    data(on, "data by a port that is Active again", to(PORT.into()), Reply::Copies(vec![PORT], 0));
}

/// The routes that later turns use.
pub(super) fn preset(on: &mut Dialogue) {
    on.case("");
    on.grant("top", Ask::set(info::ATTRIBUTE.id, 0, &[(info::LINEAR_FDB_TOP, 0, 63)]));
    on.grant("routes", Ask::set(linear::ATTRIBUTE.id, 0, &routes()));
}

/// SM-29 to SM-34, at a switch whose ports 1 to 3 are Active.
pub(super) fn of_switch(on: &mut Dialogue) {
    on.case("SM-29");
    let read_only = info::ATTRIBUTE.fields.iter().filter(|field| field.access == Access::Read);
    let one = |field: Field, value: u64| (field, 0, value);
    let mut inverted: Vec<Value> = read_only.map(|field| one(*field, field.max())).collect();
    inverted.push(one(info::LINEAR_FDB_TOP, 63));
    let stands = [
        one(info::LINEAR_FDB_CAP, LINEAR_CAP),
        one(info::RANDOM_FDB_CAP, 0),
        one(info::MULTICAST_FDB_CAP, 1024),
        one(info::LIDS_PER_PORT, 0),
        one(info::PARTITION_ENFORCEMENT_CAP, 32),
        one(info::ENHANCED_PORT0, 0),
        one(info::LINEAR_FDB_TOP, 63),
    ];
    let id = info::ATTRIBUTE.id;
    on.say("read-only fields", Ask::set(id, 0, &inverted), Reply::Answer(0, stands.to_vec()));
    for top in [LINEAR_CAP, 0xffff] {
        let ask = Ask::set(id, 0, &[one(info::LINEAR_FDB_TOP, top)]);
        let stands = vec![one(info::LINEAR_FDB_TOP, 63)];
        on.say(format!("LinearFDBTop {top:#x}"), ask, Reply::Answer(BAD, stands));
    }
    on.case("SM-30");
    let id = linear::ATTRIBUTE.id;
    for block in [0x300, 0x301, 0x400, 0xffff, 0x1_0000, u32::MAX] {
        on.refuse(format!("Get of block {block:#x}"), Ask::get(id, block), BAD);
        on.refuse(format!("Set of block {block:#x}"), Ask::set(id, block, &[]), BAD);
    }
    let empty: Vec<Value> = (0..64).map(|index| (linear::PORT, index, NOWHERE)).collect();
    on.read("a block that was never set", id, 0x2ff, &empty);
    let counted: Vec<Value> = (0..64).map(|index| (linear::PORT, index, index as u64)).collect();
    set(on, "the last block", id, 0x2ff, &counted);
    on.read("it reads back", id, 0x2ff, &counted);
    set(on, "it is emptied", id, 0x2ff, &empty);
    on.case("SM-31");
    let lost = || Reply::Lost(DropReason::NoRoute);
    data(on, "to LID 2", to(2), Reply::Copies(vec![2], 0));
    set(on, "LID 2 moves to port 3", id, 0, &routes_but(2, 3));
    data(on, "to LID 2", to(2), Reply::Copies(vec![3], 0));
    for port in [NOWHERE, 5] {
        set(on, "LID 2 has no output", id, 0, &routes_but(2, port));
        data(on, "to LID 2", to(2), lost());
    }
    set(on, "LID 2 is back", id, 0, &routes());
    let top = |top: u64| Ask::set(info::ATTRIBUTE.id, 0, &[one(info::LINEAR_FDB_TOP, top)]);
    on.grant("LinearFDBTop 1", top(1));
    data(on, "to LID 2, above the top", to(2), lost());
    on.grant("LinearFDBTop 63", top(63));
    data(on, "to LID 2", to(2), Reply::Copies(vec![2], 0));
    multicast_table(on);
    lanes_table(on);
    behind_a_port(on);
}

/// SM-32.
fn multicast_table(on: &mut Dialogue) {
    on.case("SM-32");
    let id = multicast::ATTRIBUTE.id;
    let at = |block: u32, position: u32| position << 28 | block;
    let beyond = [at(32, 0), at(0x1ff, 0), at(0, 1), at(0, 15), 1 << 9, 1 << 27];
    for modifier in beyond {
        on.refuse(format!("Get of {modifier:#x}"), Ask::get(id, modifier), BAD);
        on.refuse(format!("Set of {modifier:#x}"), Ask::set(id, modifier, &[]), BAD);
    }
    // The second LID of the block: copies by 2 and 3, and not back by the port it came by.
    let group = [(multicast::PORTS, 1, 0b1110)];
    set(on, "a group of ports 1 to 3", id, 0, &group);
    data(on, "to the group", to(0xc001), Reply::Copies(vec![2, 3], 0));
    let lost = Reply::Lost(DropReason::NoMulticastRoute);
    data(on, "to a group without ports", to(0xc000), lost.clone());
    set(on, "the group is empty", id, 0, &[(multicast::PORTS, 1, 0)]);
    data(on, "to the group", to(0xc001), lost);
    set(on, "the last block", id, at(31, 0), &[(multicast::PORTS, 31, 0b0100)]);
    data(on, "to its last LID", to(0xc3ff), Reply::Copies(vec![2], 0));
    set(on, "it is emptied", id, at(31, 0), &[(multicast::PORTS, 31, 0)]);
}

/// SM-33.
fn lanes_table(on: &mut Dialogue) {
    on.case("SM-33");
    let id = lanes::ATTRIBUTE.id;
    let pair = |input: u32, output: u32| input << 8 | output;
    for modifier in [pair(5, 1), pair(1, 5), pair(255, 255), 1 << 16] {
        on.refuse(format!("Get of {modifier:#x}"), Ask::get(id, modifier), BAD);
        on.refuse(format!("Set of {modifier:#x}"), Ask::set(id, modifier, &[]), BAD);
    }
    let level_one = Packet { level: 1, ..to(2) };
    for lane in [1, 3, 2] {
        set(on, "level 1 from 1 to 2", id, pair(1, 2), &[(lanes::VL, 1, lane)]);
        data(on, "level 1", level_one, Reply::Copies(vec![2], lane as u8));
        data(on, "level 0", to(2), Reply::Copies(vec![2], 0));
    }
    // A lane that the output does not have, and VL15, discard.
    for lane in [4, 14, 15] {
        set(on, "level 1 from 1 to 2", id, pair(1, 2), &[(lanes::VL, 1, lane)]);
        data(on, "level 1", level_one, Reply::Lost(DropReason::Lane));
    }
    // The preset of a level is the lane of its number.
    on.read("another pair keeps its own", id, pair(2, 1), &[(lanes::VL, 1, 1)]);
    set(on, "all levels on lane 0", id, pair(1, 2), &[]);
}

/// SM-34 to SM-37, at both kinds of node.
pub(super) fn of_ports(on: &mut Dialogue) {
    let node = on.node;
    let is_switch = node == Node::Switch;
    let last = if is_switch { 4 } else { 1 };
    on.case("SM-34");
    let id = arbitration::ATTRIBUTE.id;
    let at = |block: u32, port: u32| block << 16 | port;
    for block in [0, 2, 4, 5, 255, 0xffff] {
        on.refuse(format!("Get of block {block}"), Ask::get(id, at(block, 1)), BAD);
        on.refuse(format!("Set of block {block}"), Ask::set(id, at(block, 1), &[]), BAD);
    }
    for block in [1, 3] {
        for port in [last + 1, 255, 0xffff] {
            on.refuse(format!("port {port}"), Ask::get(id, at(block, port)), BAD);
            on.refuse(format!("Set at port {port}"), Ask::set(id, at(block, port), &[]), BAD);
        }
        let entries: Vec<Value> = (0..32)
            .flat_map(|index| {
                let lane = (arbitration::VL, index, index as u64 % 4);
                [lane, (arbitration::WEIGHT, index, index as u64 * 8)]
            })
            .collect();
        set(on, "32 entries", id, at(block, last), &entries);
        on.read("they read back", id, at(block, last), &entries);
    }
    let limit = [(port_info::VL_HIGH_LIMIT, 0, 255)];
    let ask = Ask::port_info(node, last, &limit);
    on.say("VLHighLimit 255", ask, Reply::Answer(0, limit.to_vec()));
    partitions(on);
    on.case("SM-36");
    let id = guid_info::ATTRIBUTE.id;
    let own = super::identity::guid(node) + u64::from(!is_switch);
    for block in [1, 31, u32::MAX] {
        on.refuse(format!("Get of block {block}"), Ask::get(id, block), BAD);
        on.refuse(format!("Set of block {block}"), Ask::set(id, block, &[]), BAD);
    }
    let written: Vec<Value> = (0..8).map(|index| (guid_info::GUID, index, 0x77)).collect();
    let mut stands = written.clone();
    stands[0].2 = own;
    on.say("entry 0 is the port's", Ask::set(id, 0, &written), Reply::Answer(0, stands));
    on.case("SM-37");
    for method in [method::GET, method::SET] {
        let ask = Ask::new(SUBNET_DIRECTED, method, sm_info::ATTRIBUTE.id, 0);
        on.refuse(format!("SMInfo without a manager, method {method}"), ask, status::ATTRIBUTE);
    }
    if !is_switch {
        on.case("SM-33");
        let id = lanes::ATTRIBUTE.id;
        for modifier in [1, 0x100, 0x101, 0xff00] {
            on.refuse(format!("Get of {modifier:#x}"), Ask::get(id, modifier), BAD);
            on.refuse(format!("Set of {modifier:#x}"), Ask::set(id, modifier, &[]), BAD);
        }
        set(on, "lanes of the levels", id, 0, &[(lanes::VL, 1, 1)]);
    }
}

/// SM-35.
fn partitions(on: &mut Dialogue) {
    let is_switch = on.node == Node::Switch;
    on.case("SM-35");
    let id = keys::ATTRIBUTE.id;
    for block in [1, 2, 0xffff] {
        on.refuse(format!("Get of block {block}"), Ask::get(id, block), BAD);
        on.refuse(format!("Set of block {block}"), Ask::set(id, block, &[]), BAD);
    }
    on.read("the default partition", id, 0, &[(keys::P_KEY, 0, 0xffff), (keys::P_KEY, 1, 0)]);
    let table: Vec<Value> =
        (0..32).map(|index| (keys::P_KEY, index, 0xffff - index as u64)).collect();
    set(on, "a full table", id, 0, &table);
    on.read("it reads back", id, 0, &table);
    set(on, "the default partition alone", id, 0, &[(keys::P_KEY, 0, 0xffff)]);
    if is_switch {
        for port in [5, 255] {
            on.refuse(format!("the table of port {port}"), Ask::get(id, port << 16), BAD);
        }
        set(on, "the table of port 4", id, 4 << 16, &[(keys::P_KEY, 0, 0x8001)]);
        on.read("port 3 keeps its own", id, 3 << 16, &[(keys::P_KEY, 0, 0xffff)]);
        set(on, "as it was", id, 4 << 16, &[(keys::P_KEY, 0, 0xffff)]);
    }
}
