//! PortInfo: states, addresses and limits of a port, with every value that it refuses.

use super::dialogue::{Ask, Dialogue, Node, Reply, Value};
use crate::prelude::*;
use management::attribute::subnet::port_info::{self as info, ATTRIBUTE};
use management::attribute::{Access, Field};
use management::datagram::status;

const ID: u16 = ATTRIBUTE.id;
/// A port of the switch that no request comes by.
const SPARE: u32 = 4;
/// Until a link that was set Down is in Initialize again: the peers repeat their link packets every 13 ms.
pub(super) const RETRAINED: Duration = us(60_000);

const fn one(field: Field, value: u64) -> Value {
    (field, 0, value)
}

fn state(value: u64) -> Value {
    one(info::PORT_STATE, value)
}

fn physical(value: u64) -> Value {
    one(info::PHYS_STATE, value)
}

/// A Set of `values` at `port`, which answers `status` and then stands at `stands`.
fn set(on: &mut Dialogue, port: u32, values: &[Value], status: u16, stands: &[Value]) {
    let what: Vec<_> =
        values.iter().map(|(field, _, value)| format!("{} {value}", field.name)).collect();
    let ask = Ask::port_info(on.node, port, values);
    let what = format!("PortInfo {port}: {}", what.join(", "));
    on.say(what, ask, Reply::Answer(status, stands.to_vec()));
}

/// SM-07 to SM-09 at a port of the switch by which nothing is asked.
pub(super) fn states_of_a_spare_port(on: &mut Dialogue) {
    let bad = status::VALUE;
    let try_all = |on: &mut Dialogue, stands: u64, refused: &[u64]| {
        for value in refused.iter().copied().chain(5..16) {
            set(on, SPARE, &[state(value)], bad, &[state(stands)]);
        }
        set(on, SPARE, &[state(0)], 0, &[state(stands)]);
    };
    on.case("SM-07");
    on.read("the port has its peer", ID, SPARE, &[state(2), physical(5)]);
    try_all(on, 2, &[2, 4]);
    set(on, SPARE, &[state(3)], 0, &[state(3)]);
    try_all(on, 3, &[2]);
    set(on, SPARE, &[state(3)], 0, &[state(3)]);
    set(on, SPARE, &[state(4)], 0, &[state(4)]);
    try_all(on, 4, &[2, 3]);
    set(on, SPARE, &[state(4)], 0, &[state(4)]);
    set(on, SPARE, &[state(1)], 0, &[state(1)]);
    on.wait(RETRAINED);
    on.read("it has trained again", ID, SPARE, &[state(2), physical(5)]);
    on.case("SM-08");
    for value in [1].into_iter().chain(4..16) {
        set(on, SPARE, &[physical(value)], bad, &[state(2), physical(5)]);
    }
    set(on, SPARE, &[physical(3)], 0, &[state(1), physical(3)]);
    on.wait(RETRAINED);
    for value in 2..5 {
        set(on, SPARE, &[state(value)], bad, &[state(1), physical(3)]);
    }
    set(on, SPARE, &[state(1)], 0, &[state(1), physical(3)]);
    on.wait(RETRAINED);
    on.read("a disabled port stays disabled", ID, SPARE, &[state(1), physical(3)]);
    set(on, SPARE, &[physical(2)], 0, &[state(1), physical(2)]);
    on.wait(RETRAINED);
    on.read("it has trained again", ID, SPARE, &[state(2), physical(5)]);
    on.case("SM-09");
    for value in 1..16 {
        for wanted in [3, 4] {
            let values = [state(wanted), physical(value)];
            set(on, SPARE, &values, bad, &[state(2), physical(5)]);
        }
    }
    on.case("SM-10");
    // The port with the LID of a switch is port 0: others ignore what they do not have.
    let values = [info::LID, info::MASTER_SM_LID, info::LMC].map(|field| one(field, field.max()));
    let keeps = [info::LID, info::MASTER_SM_LID, info::LMC, info::M_KEY].map(|it| one(it, 0));
    set(on, SPARE, &values, 0, &keeps);
    on.read("they are not stored", ID, SPARE, &keeps);
}

/// SM-07 and SM-09 at the one port of a NIC, which must stay up to answer.
pub(super) fn states_of_an_adapter(on: &mut Dialogue) {
    let bad = status::VALUE;
    on.case("SM-07");
    for (stands, refused) in [(2, &[2, 4][..]), (3, &[2]), (4, &[2, 3])] {
        if stands > 2 {
            set(on, 1, &[state(stands)], 0, &[state(stands)]);
        }
        for value in refused.iter().copied().chain(5..16) {
            set(on, 1, &[state(value)], bad, &[state(stands)]);
        }
        set(on, 1, &[state(0)], 0, &[state(stands)]);
    }
    set(on, 1, &[state(4)], 0, &[state(4)]);
    on.case("SM-08");
    for value in [1].into_iter().chain(4..16) {
        set(on, 1, &[physical(value)], bad, &[state(4), physical(5)]);
    }
    on.case("SM-09");
    for value in 1..16 {
        for wanted in [3, 4] {
            set(on, 1, &[state(wanted), physical(value)], bad, &[state(4), physical(5)]);
        }
    }
}

/// SM-10 to SM-16: what has a LID, and limits.
pub(super) fn limits(on: &mut Dialogue) {
    let (node, home, bad) = (on.node, on.node.home(), status::VALUE);
    let limited = if node == Node::Switch { SPARE } else { 1 };
    on.case("SM-10");
    for field in [info::LID, info::MASTER_SM_LID] {
        let lid = if field == info::LID { node.lid() } else { node.manager() };
        for value in [0, 0xc000, 0xc001, 0xfffe, 0xffff] {
            let values = [one(field, value), one(info::VL_STALL_COUNT, value & 7)];
            let stands = [one(field, lid.get().into()), one(info::VL_STALL_COUNT, value & 7)];
            set(on, home, &values, bad, &stands);
        }
        for value in [9, 0xbfff, u64::from(lid.get())] {
            set(on, home, &[one(field, value)], 0, &[one(field, value)]);
        }
    }
    on.case("SM-11");
    for value in (0..8).rev() {
        let is_kept = node == Node::Switch && value > 0;
        let (status, stands) = if is_kept { (bad, 0) } else { (0, value) };
        set(on, home, &[one(info::LMC, value)], status, &[one(info::LMC, stands)]);
    }
    encodings(on, limited);
    on.case("SM-15");
    let read_only = || ATTRIBUTE.fields.iter().filter(|field| field.access == Access::Read);
    let ones: Vec<Value> = read_only().map(|field| one(*field, field.max())).collect();
    let stands = [
        one(info::DIAG_CODE, 0),
        one(info::LOCAL_PORT, 1),
        one(info::LINK_WIDTH_SUPPORTED, 1),
        one(info::LINK_WIDTH_ACTIVE, 1),
        one(info::LINK_SPEED_SUPPORTED, 1),
        one(info::LINK_SPEED_ACTIVE, 1),
        one(info::VL_CAP, 3),
        one(info::MTU_CAP, 4),
        one(info::VL_ARB_HIGH_CAP, 32),
        one(info::VL_ARB_LOW_CAP, 32),
        one(info::MAX_CREDIT_HINT, 0),
        one(info::ROUND_TRIP_LATENCY, 0),
        one(info::CAPABILITY_MASK2, 0),
        one(info::LINK_SPEED_EXT_SUPPORTED, 0),
    ];
    set(on, limited, &ones, 0, &stands);
    on.case("SM-16");
    let last = if node == Node::Switch { 4 } else { 1 };
    for port in 0..=last {
        on.grant(format!("PortInfo of port {port}"), Ask::get(ID, port));
        on.grant("the same, extended speeds known", Ask::get(ID, port | 1 << 31));
    }
    for port in [last + 1, 255, 0x100, 0xffff, 0x1_0001, 0x7fff_ffff, u32::MAX] {
        on.refuse(format!("PortInfo of port {port:#x}"), Ask::get(ID, port), bad);
        on.refuse(format!("Set there: {port:#x}"), Ask::port_info(node, port, &[]), bad);
    }
}

/// SM-12 to SM-14: codes of widths, speeds, sizes and states.
fn encodings(on: &mut Dialogue, limited: u32) {
    let bad = status::VALUE;
    on.case("SM-12");
    // The links of the star are 1x at SDR.
    for (field, all) in [(info::LINK_WIDTH_ENABLED, 255), (info::LINK_SPEED_ENABLED, 15)] {
        for value in [0, 1, all] {
            set(on, limited, &[one(field, value)], 0, &[one(field, 1)]);
        }
        for value in (2..8).chain((8..all).step_by(if all == 15 { 1 } else { 13 })) {
            set(on, limited, &[one(field, value)], bad, &[one(field, 1)]);
        }
    }
    on.case("SM-13");
    // Payloads of 2048 octets, four data lanes.
    for (field, cap) in [(info::NEIGHBOR_MTU, 4), (info::OPERATIONAL_VLS, 3)] {
        for value in 1..=cap {
            set(on, limited, &[one(field, value)], 0, &[one(field, value)]);
        }
        set(on, limited, &[one(field, 0)], 0, &[one(field, cap)]);
        for value in cap + 1..16 {
            set(on, limited, &[one(field, value)], bad, &[one(field, cap)]);
        }
    }
    on.case("SM-14");
    for value in [1, 2, 0] {
        let stands = if value == 0 { 2 } else { value };
        let field = info::LINK_DOWN_DEFAULT;
        set(on, limited, &[one(field, value)], 0, &[one(field, stands)]);
    }
    for value in 3..16 {
        let field = info::LINK_DOWN_DEFAULT;
        set(on, limited, &[one(field, value)], bad, &[one(field, 2)]);
    }
}

/// Gives the node its LID, and makes the ports by which it is asked Active.
pub(super) fn bring_up(on: &mut Dialogue) {
    on.case("");
    let node = on.node;
    on.grant("LID and manager", Ask::port_info(node, node.home(), &[]));
    if node == Node::Switch {
        for port in 1..=3 {
            for value in [3, 4] {
                set(on, port, &[state(value)], 0, &[state(value)]);
            }
        }
    }
}
