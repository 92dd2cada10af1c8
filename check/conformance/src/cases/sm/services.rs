//! Performance management and congestion control: what is selected, counted, kept and refused.

use super::desk::Desk;
use super::dialogue::{Ask, Dialogue, Node, Reply, Value};
use crate::prelude::*;
use management::attribute::congestion::{
    ca_congestion_setting as adapter, congestion_control_table as table,
    congestion_key_info as key_info, switch_congestion_setting as whole,
    switch_port_congestion_setting as own,
};
use management::attribute::performance::port_counters as counters;
use management::datagram::{
    CC_KEY, CLASS_VERSION, CONGESTION, METHOD, PERFORMANCE, method, status,
};
use proto::wire::infiniband::crc;
use testbed::frames::infiniband::{Packet, damaged};

const BAD: u16 = status::VALUE;
const NO_ATTRIBUTE: u16 = status::ATTRIBUTE;
/// All sixteen counters of PortCounters.
const ALL: u64 = 0xffff;
const ID: u16 = counters::ATTRIBUTE.id;
/// Words of a management packet, LRH to ICRC.
const WORDS: u64 = 72;

fn performance(method: u8, port: u64, select: u64) -> Ask {
    let values = [(counters::PORT_SELECT, 0, port), (counters::COUNTER_SELECT, 0, select)];
    Ask::new(PERFORMANCE, method, ID, 0).data(&values)
}

/// SM-41 and SM-42.
pub(super) fn counted(on: &mut Dialogue) {
    let last = if on.node == Node::Switch { 4 } else { 1 };
    on.case("SM-41");
    for port in [last + 1, 128, 254] {
        on.refuse(format!("port {port}"), performance(method::GET, port, ALL), BAD);
        on.refuse(format!("Set at port {port}"), performance(method::SET, port, ALL), BAD);
    }
    for port in [1, last, 255] {
        on.grant(format!("port {port}"), performance(method::GET, port, ALL));
    }
    let other = |id: u16| Ask::new(PERFORMANCE, method::GET, id, 0);
    for id in [0x0002, 0x0010, 0x0011, 0x001e, 0x00ff, 0xff00] {
        on.refuse(format!("attribute {id:#06x}"), other(id), NO_ATTRIBUTE);
    }
    on.refuse("Set of ClassPortInfo", other(0x0001).with(METHOD, 2), NO_ATTRIBUTE);
    on.refuse("class version 2", other(ID).with(CLASS_VERSION, 2), status::VERSION);
    on.refuse("method 5", other(ID).with(METHOD, 0x12), status::METHOD);
    on.case("SM-42");
    match on.node {
        Node::Switch => counted_at_switch(on),
        Node::Nic => counted_at_adapter(on),
    }
}

fn counted_at_switch(on: &mut Dialogue) {
    let packet = Packet { payload: 64, ..Packet::new(1, 2, 0) };
    // LRH, BTH, payload and ICRC.
    let words = (8 + 12 + 64 + 4) / 4;
    for port in 1..=3 {
        on.grant("it begins at 0", performance(method::SET, port, ALL));
    }
    for _ in 0..3 {
        on.put("data from 1 to 2", 1, packet.octets(), 0, Reply::Copies(vec![2], 0));
    }
    on.put(
        "data from 2 to 3",
        2,
        Packet { to: 3, ..packet }.octets(),
        0,
        Reply::Copies(vec![3], 0),
    );
    let spoilt = damaged(packet.octets(), |octets| {
        octets.iter_mut().rev().take(1).for_each(|it| *it = !*it)
    });
    on.put("a wrong VCRC by 2", 2, spoilt, 0, Reply::Lost(DropReason::Vcrc));
    let astray = Packet { to: 60, ..packet }.octets();
    on.put("no route by 2", 2, astray, 0, Reply::Lost(DropReason::NoRoute));
    let of_two = vec![
        (counters::XMIT_PACKETS, 0, 3),
        (counters::XMIT_DATA, 0, 3 * words),
        // The one without a route is good at the port it came by.
        (counters::RCV_PACKETS, 0, 2),
        (counters::RCV_DATA, 0, 2 * words),
        (counters::RCV_ERRORS, 0, 1),
        (counters::RCV_SWITCH_RELAY_ERRORS, 0, 1),
        (counters::XMIT_DISCARDS, 0, 0),
    ];
    on.say("port 2", performance(method::GET, 2, 0), Reply::Answer(0, of_two));
    let of_three = vec![(counters::XMIT_PACKETS, 0, 1), (counters::XMIT_DATA, 0, words)];
    on.say("port 3", performance(method::GET, 3, 0), Reply::Answer(0, of_three));
    // A Set restarts only what it selects: bit 3 is PortRcvErrors.
    let kept = vec![(counters::RCV_ERRORS, 0, 0), (counters::RCV_SWITCH_RELAY_ERRORS, 0, 1)];
    on.say("one counter restarts", performance(method::SET, 2, 1 << 3), Reply::Answer(0, kept));
}

fn counted_at_adapter(on: &mut Dialogue) {
    let sent = |packets: u64| {
        vec![(counters::XMIT_PACKETS, 0, packets), (counters::XMIT_DATA, 0, packets * WORDS)]
    };
    let restart = performance(method::SET, 1, ALL);
    on.say("it begins at 0", restart, Reply::Answer(0, sent(0)));
    // Each answer before it, on VL0 and on VL15.
    for packets in 1..4 {
        let ask = performance(method::GET, 1, 0);
        on.say("the answers so far", ask, Reply::Answer(0, sent(packets)));
    }
    on.grant("an answer on VL15", Ask::get(0x0011, 0));
    on.say("it counts", performance(method::GET, 1, 0), Reply::Answer(0, sent(5)));
}

/// SM-43: each counter of PortCounters that can be driven there stops at its maximum, and starts again by a Set.
pub fn counters_stick() -> Finding {
    let mut desk = Desk::active(Node::Switch)?;
    let packet = Packet { payload: 0, ..Packet::new(2, 60, 0) };
    let astray = packet.octets();
    let mut spoilt = astray.clone();
    crc::refresh_vcrc(&mut spoilt);
    let spoilt =
        damaged(spoilt, |octets| octets.iter_mut().rev().take(1).for_each(|it| *it = !*it));
    let rows = [
        (counters::RCV_ERRORS, 3, spoilt, false),
        (counters::RCV_SWITCH_RELAY_ERRORS, 5, astray.clone(), false),
        (counters::RCV_REMOTE_PHYSICAL_ERRORS, 4, astray, true),
    ];
    let mut found = Vec::new();
    for (field, bit, octets, aborted) in rows {
        let read = |desk: &mut Desk, method, select| {
            desk.granted(&performance(method, 2, select)).map(|it| field.get(it.data()))
        };
        same(format!("{} at first", field.name), read(&mut desk, method::SET, ALL)?, 0)?;
        for _ in 0..field.max() + 3 {
            let mut frame = Frame::unchecked(FrameKind::Infiniband, octets.clone());
            if aborted {
                frame.integrity = proto::frame::Integrity::Aborted;
            }
            desk.bench.inject(2, frame);
        }
        desk.bench.clear();
        same(format!("{} at its end", field.name), read(&mut desk, method::GET, 0)?, field.max())?;
        let after = read(&mut desk, method::SET, 1 << bit)?;
        same(format!("{} after a Set", field.name), after, 0)?;
        found.push(format!("{} stops at {}", field.name, field.max()));
    }
    // A link that its peer leaves Active 256 times.
    let downed = |desk: &mut Desk| {
        desk.granted(&performance(method::GET, 4, 0)).map(|it| counters::LINK_DOWNED.get(it.data()))
    };
    let before = downed(&mut desk)?;
    for time in 1..=counters::LINK_DOWNED.max() + 3 {
        desk.bench.set_mode(4, FcMode::Initialize);
        desk.bench.run_for(us(30));
        desk.bench.set_mode(4, FcMode::Normal);
        desk.bench.run_for(us(30));
        for state in [3, 4] {
            let values = [(management::attribute::subnet::port_info::PORT_STATE, 0, state)];
            desk.granted(&Ask::port_info(Node::Switch, 4, &values))?;
        }
        desk.bench.run_for(us(30));
        let expected = (before + time).min(counters::LINK_DOWNED.max());
        same(format!("link_downed the {time}th time"), downed(&mut desk)?, expected)?;
    }
    found.push(format!("link_downed stops at {}", counters::LINK_DOWNED.max()));
    Ok(found.join("; "))
}

fn congestion(method: u8, id: u16, modifier: u32, values: &[Value]) -> Ask {
    Ask::new(CONGESTION, method, id, modifier).data(values)
}

/// SM-44 to SM-46.
pub(super) fn congestion_control(on: &mut Dialogue) {
    let is_switch = on.node == Node::Switch;
    on.case("SM-44");
    let set = |id, modifier, values: &[Value]| congestion(method::SET, id, modifier, values);
    let get = |id, modifier| congestion(method::GET, id, modifier, &[]);
    for version in [0, 1, 3, 255] {
        let ask = get(0x0001, 0).with(CLASS_VERSION, version);
        on.refuse(format!("class version {version}"), ask, status::VERSION);
    }
    on.refuse("method 5", get(0x0011, 0).with(METHOD, 0x12), status::METHOD);
    for id in [0x0001, 0x0011, 0x0013, 0x0018] {
        on.grant(format!("Get of {id:#06x}"), get(id, 0));
        on.refuse(format!("Set of {id:#06x}"), set(id, 0, &[]), NO_ATTRIBUTE);
    }
    // Settings of the other kind of node, and attributes that do not exist.
    let foreign: [u16; 2] = if is_switch { [0x0016, 0x0017] } else { [0x0014, 0x0015] };
    for id in foreign.into_iter().chain([0x0000, 0x0010, 0x0019, 0xffff]) {
        on.refuse(format!("Get of {id:#06x}"), get(id, 0), NO_ATTRIBUTE);
        on.refuse(format!("Set of {id:#06x}"), set(id, 0, &[]), NO_ATTRIBUTE);
    }
    on.case("SM-45");
    if is_switch {
        marking(on)
    } else {
        reaction(on)
    }
    on.case("SM-46");
    let id = key_info::ATTRIBUTE.id;
    let key = |protect: u64| [(key_info::KEY, 0, 6), (key_info::PROTECT, 0, protect)];
    on.grant("a key", set(id, 0, &key(0)));
    let setting = if is_switch { 0x0014 } else { 0x0016 };
    let lost = || Reply::Lost(DropReason::Key);
    on.say("Set with a wrong key", set(setting, 0, &[]).with(CC_KEY, 5), lost());
    on.say("Set without a key", set(setting, 0, &[]), lost());
    on.grant("Get with a wrong key", get(setting, 0).with(CC_KEY, 5));
    on.grant("the key protects reads", set(id, 0, &key(1)).with(CC_KEY, 6));
    on.say("Get with a wrong key", get(setting, 0).with(CC_KEY, 5), lost());
    let counted = vec![(key_info::VIOLATIONS, 0, 3)];
    on.say("violations", get(id, 0).with(CC_KEY, 6), Reply::Answer(0, counted));
    on.grant("Set with the key", set(setting, 0, &[]).with(CC_KEY, 6));
    on.grant("no key again", set(id, 0, &[]).with(CC_KEY, 6));
}

/// A Set takes the fields of its control map, and the answer shows what then stands.
fn marking(on: &mut Dialogue) {
    let (id, ports) = (whole::ATTRIBUTE.id, own::ATTRIBUTE.id);
    let values =
        [(whole::THRESHOLD, 0, 15), (whole::PACKET_SIZE, 0, 8), (whole::MARKING_RATE, 0, 3)];
    let with_map = |map: u64, values: &[Value]| {
        let all = [&[(whole::CONTROL_MAP, 0, map)], values].concat();
        congestion(method::SET, id, 0, &all)
    };
    on.say("threshold and rate", with_map(0b10100, &values), Reply::Answer(0, values.to_vec()));
    let other = [(whole::THRESHOLD, 0, 1), (whole::PACKET_SIZE, 0, 1), (whole::MARKING_RATE, 0, 9)];
    let stands = vec![values[0], values[1], other[2]];
    on.say("the rate alone", with_map(1 << 4, &other), Reply::Answer(0, stands.clone()));
    on.say("an empty map", with_map(0, &values), Reply::Answer(0, stands));
    for block in [8, 9, u32::MAX] {
        on.refuse(
            format!("ports of block {block}"),
            congestion(method::GET, ports, block, &[]),
            BAD,
        );
        on.refuse(
            format!("the same, Set: {block}"),
            congestion(method::SET, ports, block, &[]),
            BAD,
        );
    }
    let of_port = [(own::VALID, 3, 1), (own::THRESHOLD, 3, 4), (own::MARKING_RATE, 3, 77)];
    let ask = congestion(method::SET, ports, 0, &of_port);
    on.say("a port of its own", ask, Reply::Answer(0, of_port.to_vec()));
    on.grant("no marking", with_map(0b11111, &[]));
    on.grant("no port of its own", congestion(method::SET, ports, 0, &[]));
}

fn reaction(on: &mut Dialogue) {
    let (id, blocks) = (adapter::ATTRIBUTE.id, table::ATTRIBUTE.id);
    let levels = |timer: u64| [(adapter::CCTI_TIMER, 0, timer), (adapter::CCTI_TIMER, 1, timer)];
    let with_map = |map: u64, values: &[Value]| {
        let all = [&[(adapter::CONTROL_MAP, 0, map)], values].concat();
        congestion(method::SET, id, 0, &all)
    };
    on.say("levels 0 and 1", with_map(3, &levels(150)), Reply::Answer(0, levels(150).to_vec()));
    let stands = vec![levels(150)[0], levels(9)[1]];
    on.say("level 1 alone", with_map(2, &levels(9)), Reply::Answer(0, stands));
    let block = |number: u32, limit: u64| {
        congestion(method::SET, blocks, number, &[(table::CCTI_LIMIT, 0, limit)])
    };
    for number in [2, 3, u32::MAX] {
        on.refuse(format!("block {number}"), block(number, 5), BAD);
        on.refuse(format!("Get of {number}"), congestion(method::GET, blocks, number, &[]), BAD);
    }
    for limit in [128, 0x7fff, 0xffff] {
        on.refuse(format!("limit {limit}"), block(0, limit), BAD);
    }
    for (number, limit) in [(0, 127), (1, 127), (0, 63), (0, 0)] {
        on.grant(format!("block {number}, limit {limit}"), block(number, limit));
    }
}
