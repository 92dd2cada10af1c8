//! Directed routes: each row of the table of hops, wrong pointers, loops, and exits that are not there.

use super::desk::Desk;
use super::dialogue::{Ask, Dialogue, Node, Reply};
use crate::prelude::*;
use management::Datagram;
use management::datagram::{
    DIRECTION, DR_DLID, DR_SLID, HOP_COUNT, HOP_POINTER, INITIAL_PATH, METHOD, RETURN_PATH,
    SUBNET_DIRECTED, method,
};
use management::packet::Addresses;

const LOST: Reply = Reply::Lost(DropReason::Management);
const NODE_INFO: u16 = 0x0011;

/// A Get of NodeInfo on the hop `pointer` of `path`, by port 3 of a switch, by port 1 of a NIC.
fn on_its_way(node: Node, path: &[u8], pointer: u64) -> Ask {
    let datagram = Datagram::request(SUBNET_DIRECTED, method::GET, NODE_INFO, 0, 0).along(path);
    let port = if node == Node::Switch { 3 } else { 1 };
    Ask { datagram, port, addresses: None }.with(HOP_POINTER, pointer)
}

/// An answer on its way back on the hop `pointer` of a path whose return entries are `path`.
fn returning(node: Node, path: &[u8], pointer: u64) -> Ask {
    let mut ask = on_its_way(node, path, pointer).with(DIRECTION, 1);
    ask = ask.with(METHOD, method::GET_RESPONSE.into());
    for (index, port) in path.iter().enumerate() {
        RETURN_PATH.set_at(index + 1, &mut ask.datagram.0, u64::from(*port));
    }
    ask
}

/// SM-21 to SM-26, in Initialize.
pub(super) fn directed(on: &mut Dialogue) {
    let node = on.node;
    let is_switch = node == Node::Switch;
    on.case("SM-21");
    let passes =
        |port: u8, pointer: u8| if is_switch { Reply::Leaves(port, pointer) } else { LOST };
    for (pointer, port) in [(1, 2), (2, 1), (3, 3)] {
        let ask = on_its_way(node, &[1, 2, 1, 3], pointer);
        on.say(format!("outward, P {pointer} of 4"), ask, passes(port, pointer as u8 + 1));
    }
    on.case("SM-22");
    for (pointer, port) in [(4, 3), (3, 1), (2, 2)] {
        let ask = returning(node, &[2, 1, 3, 1], pointer);
        on.say(format!("returning, P {pointer} of 4"), ask, passes(port, pointer as u8 - 1));
    }
    on.say("an answer at the end of its way", returning(node, &[2], 1), Reply::Taken);
    on.say("the same with P 0", returning(node, &[2], 0), Reply::Taken);
    on.case("SM-23");
    for hops in [1, 2, 63] {
        let path = vec![1; hops];
        for pointer in [hops, hops + 1] {
            let mut ask = on_its_way(node, &path, pointer as u64);
            // With P = C + 1 the entry of the last hop has been written.
            RETURN_PATH.set_at(hops, &mut ask.datagram.0, u64::from(ask.port));
            on.grant(format!("P {pointer} of {hops}"), ask);
        }
    }
    on.case("SM-24");
    for (pointer, count) in [(3, 1), (64, 62), (255, 1), (0, 64), (64, 64), (1, 255), (65, 63)] {
        let ask = on_its_way(node, &[2], pointer).with(HOP_COUNT, count);
        on.say(format!("outward, P {pointer} of {count}"), ask, LOST);
    }
    for (pointer, count) in [(3, 1), (255, 63), (64, 64), (2, 255), (65, 63)] {
        let ask = returning(node, &[2], pointer).with(HOP_COUNT, count);
        on.say(format!("returning, P {pointer} of {count}"), ask, LOST);
    }
    on.case("SM-25");
    if is_switch {
        // A path may return by the port it came by: only its length ends it.
        for pointer in [1, 2, 61, 62] {
            let ask = on_its_way(node, &[3; 63], pointer);
            on.say(format!("a loop, P {pointer} of 63"), ask, passes(3, pointer as u8 + 1));
        }
        on.case("SM-26");
        for port in [0, 5, 6, 128, 255] {
            on.say(format!("out by port {port}"), on_its_way(node, &[1, port], 1), LOST);
            on.say(format!("back by port {port}"), returning(node, &[port, 1], 2), LOST);
        }
    }
}

/// SM-27 at a switch that has a LID and routes.
pub(super) fn combined(on: &mut Dialogue) {
    let (node, own) = (on.node, on.node.lid());
    on.case("SM-27");
    // Behind port 3 is LID 3: the request came by LID, and its directed part begins here.
    let by_lid = |ask: Ask| ask.addressed(Addresses::subnet(Lid::new(3), own)).with(DR_SLID, 3);
    let starts = by_lid(on_its_way(node, &[2, 1], 0));
    on.say("the directed part begins", starts, Reply::Leaves(2, 1));
    let ends = returning(node, &[2, 1], 1).with(DR_SLID, 3).by(2);
    on.say("the answer goes on by LID", ends, Reply::Leaves(3, 0));
    let goes_on = on_its_way(node, &[1], 1).with(DR_DLID, 2);
    on.say("a request goes on by LID behind its path", goes_on, Reply::Leaves(2, 2));
    let nowhere = on_its_way(node, &[1], 1).with(DR_DLID, 60);
    on.say("a LID without a route", nowhere, Reply::Lost(DropReason::NoRoute));
}

/// SM-26: a port that is Down.
pub(super) fn exit_that_is_down(on: &mut Dialogue) {
    let node = on.node;
    on.case("SM-26");
    let lost = Reply::Lost(DropReason::LinkState);
    on.say("out by a port that is Down", on_its_way(node, &[1, 4], 1), lost.clone());
    on.say("back by a port that is Down", returning(node, &[4, 1], 2), lost);
}

/// SM-24 on the virtual clock: every pointer and count, both ways, as the table of hops has it.
pub fn every_pointer() -> Result<String> {
    let mut count = 0;
    for node in [Node::Switch, Node::Nic] {
        let mut desk = Desk::new(node)?;
        for (hops, pointer) in pairs() {
            for is_back in [false, true] {
                let mut ask = match is_back {
                    false => on_its_way(node, &[1; 63], pointer),
                    true => returning(node, &[1; 63], pointer),
                };
                ask = ask.with(HOP_COUNT, hops);
                if !is_back {
                    // With P = C + 1 the last entry has been written.
                    let back = u64::from(ask.port);
                    (1..64).for_each(|hop| RETURN_PATH.set_at(hop, &mut ask.datagram.0, back));
                }
                let found = match &desk.ask(&ask)[..] {
                    [] => "ends",
                    [one] if one.datagram.is_response() && !is_back => "is answered",
                    [_] => "passes",
                    _ => "is doubled",
                };
                let expected = expected(node, hops, pointer, is_back);
                let way = if is_back { "returning" } else { "outward" };
                let what = format!("{}: {way}, P {pointer} of {hops}", node.daemon());
                same(what, found, expected)?;
                count += 1;
            }
        }
    }
    Ok(format!("{count} pairs of hop pointer and hop count as the table has them"))
}

fn pairs() -> impl Iterator<Item = (u64, u64)> {
    let values = || (0..=66).chain([127, 128, 254, 255]);
    values().flat_map(move |hops| values().map(move |pointer| (hops, pointer)))
}

/// The table of hops. Source: IBTA Vol 1, 14.2.2.
fn expected(node: Node, hops: u64, pointer: u64, is_back: bool) -> &'static str {
    let is_switch = node == Node::Switch;
    match is_back {
        // A route without hops never leaves the node of its sender, and its answer has no way back.
        _ if hops == 0 || hops > 63 => "ends",
        false if pointer == hops || pointer == hops + 1 => "is answered",
        false if is_switch && (1..hops).contains(&pointer) => "passes",
        true if is_switch && (2..=hops).contains(&pointer) => "passes",
        _ => "ends",
    }
}

/// SM-25 on the virtual clock: a request that is always sent back passes as often as it has hops.
pub fn loop_ends() -> Result<String> {
    const HOPS: usize = 63;
    let mut desk = Desk::new(Node::Switch)?;
    let mut ask = on_its_way(Node::Switch, &[3; HOPS], 1);
    let mut passed = 0;
    let answer = loop {
        let [one] = &desk.ask(&ask)[..] else { bail!("it ends after {passed} hops") };
        if one.datagram.is_response() {
            break one.datagram.clone();
        }
        passed += 1;
        ensure!(passed < HOPS, "it passes {passed} times on {HOPS} hops");
        ask.datagram = one.datagram.clone();
    };
    same("passages of the loop", passed, HOPS - 1)?;
    let path = |field: &management::attribute::Field| {
        (1..=HOPS).map(|hop| field.at(hop, &answer.0)).collect::<Vec<_>>()
    };
    same("its return path", path(&RETURN_PATH), path(&INITIAL_PATH))?;
    Ok(format!("a path that returns by its own port passes {passed} times and is answered"))
}
