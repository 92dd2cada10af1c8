//! Partitions: the packets that a port takes, those that a switch passes where it enforces them, and the notices.

use super::dialogue::{Ask, Dialogue, Node, Reply, Value, heard};
use crate::prelude::*;
use management::attribute::performance::port_counters as counters;
use management::attribute::subnet::{notice, p_key_table as keys, port_info as info};
use management::datagram::{PERFORMANCE, method};
use management::packet::Addresses;
use testbed::frames::infiniband::Packet;

/// The table of the port with the LID: a full member of partition 1, a limited one of partition 2.
const TABLE: [u64; 2] = [0x8001, 0x0002];
/// P_Keys of requests that do not match: limited to limited, other partitions, and partition 0.
const BAD: [u16; 6] = [0x0002, 0x8003, 0xffff, 0x7fff, 0x8000, 0x0000];
/// Those that do, and the entry of the table with which the answer comes.
const GOOD: [(u16, u16); 3] = [(0x8001, 0x8001), (0x0001, 0x8001), (0x8002, 0x0002)];
const REFUSED: DropReason = DropReason::PartitionKey;
/// The notices of an end port and of a switch that enforces.
const AT_END: u64 = 257;
const AT_SWITCH: u64 = 259;

fn table(on: &mut Dialogue, what: &str, port: u32, entries: &[u64]) {
    let values: Vec<Value> =
        entries.iter().enumerate().map(|(index, key)| (keys::P_KEY, index, *key)).collect();
    let ask = Ask::set(keys::ATTRIBUTE.id, port << 16, &values);
    on.say(what, ask, Reply::Answer(0, values));
}

fn counters_of(port: u64) -> Ask {
    let id = counters::ATTRIBUTE.id;
    Ask::new(PERFORMANCE, method::GET, id, 0).data(&[(counters::PORT_SELECT, 0, port)])
}

/// A request with this P_Key.
fn with_key(node: Node, partition: u16) -> Ask {
    let general = Addresses::general(node.manager(), node.lid(), 1, VirtualLane::ZERO);
    counters_of(1).addressed(Addresses { partition, ..general })
}

/// SM-47 at both kinds of node, and SM-48 at a switch.
pub(super) fn partitions(on: &mut Dialogue) {
    let (node, home) = (on.node, on.node.home());
    on.case("SM-47");
    on.grant("no violations", Ask::port_info(node, home, &[(info::P_KEY_VIOLATIONS, 0, 0)]));
    table(on, "partitions 1 and 2", 0, &TABLE);
    for (key, entry) in GOOD {
        let what = format!("P_Key {key:#06x} matches {entry:#06x}");
        on.say(what, with_key(node, key), Reply::Answer(0, Vec::new()));
    }
    for key in BAD {
        on.say(format!("P_Key {key:#06x}"), with_key(node, key), Reply::Lost(REFUSED));
    }
    let count = [(info::P_KEY_VIOLATIONS, 0, BAD.len() as u64)];
    on.read("each of them counts", info::ATTRIBUTE.id, home, &count);
    on.grant("subnet management has no partition", Ask::get(0x0011, 0));
    table(on, "the default partition alone", 0, &[0xffff, 0]);
    if node == Node::Switch {
        enforcement(on);
    }
}

/// SM-48: data of the default partition from port 1 to port 2.
fn enforcement(on: &mut Dialogue) {
    on.case("SM-48");
    let node = on.node;
    let octets = Packet { payload: 64, ..Packet::new(1, 2, 0) }.octets();
    let data = |on: &mut Dialogue, what: &str, expected: Reply| {
        on.put(what, 1, octets.clone(), 0, expected);
    };
    let passes = || Reply::Copies(vec![2], 0);
    let ways = [
        (1, info::ENFORCE_PARTITIONS_IN, counters::RCV_CONSTRAINT_ERRORS, Reply::Lost(REFUSED)),
        (
            2,
            info::ENFORCE_PARTITIONS_OUT,
            counters::XMIT_CONSTRAINT_ERRORS,
            Reply::Discarded(2, REFUSED),
        ),
    ];
    for (port, way, errors, refused) in ways {
        table(on, "another partition", port, &[0x8001]);
        data(on, "nothing is enforced", passes());
        on.grant("the port enforces", Ask::port_info(node, port, &[(way, 0, 1)]));
        data(on, "no entry has the partition of the packet", refused);
        on.grant("subnet management passes", Ask::get(0x0011, 0));
        table(on, "two partitions", port, &[0x8001, 0xffff]);
        data(on, "an entry has it", passes());
        let count = vec![(errors, 0, 1)];
        on.say("one was refused", counters_of(port.into()), Reply::Answer(0, count));
        on.grant("the port enforces nothing", Ask::port_info(node, port, &[(way, 0, 0)]));
        table(on, "the default partition alone", port, &[0xffff, 0]);
    }
}

/// SM-49: what the first notice of a kind says.
pub(super) fn notices(node: Node, record: &Record) -> Result<String> {
    let all = heard(record, (Instant::ZERO, Instant::NEVER));
    let first = |number: u64| {
        let is_its = |data: &[u8]| notice::TRAP.get(data) == number;
        all.iter().find(|one| one.datagram.method() == method::TRAP && is_its(one.datagram.data()))
    };
    let words = |number: u64, places: &[usize]| {
        let Some(found) = first(number) else { bail!("no trap {number}") };
        let data = found.datagram.data();
        let word = |at: &usize| u16::from_be_bytes([data[*at], data[at + 1]]);
        Ok(places.iter().map(word).collect::<Vec<_>>())
    };
    let [own, manager] = [node.lid(), node.manager()].map(Lid::get);
    // Issuer, LIDs of sender and receiver, and the P_Key in four octets.
    let said = words(AT_END, &[6, 12, 14, 16, 18])?;
    same("trap 257", said, vec![own, manager, own, 0, BAD[0]])?;
    if node == Node::Nic {
        return Ok(format!("{}: trap {AT_END}", node.daemon()));
    }
    // Issuer, LIDs of sender and receiver, P_Key, and the LID of the switch.
    let said = words(AT_SWITCH, &[6, 12, 14, 16, 58])?;
    same("trap 259", said, vec![own, 1, 2, 0xffff, own])?;
    Ok(format!("{}: traps {AT_END} and {AT_SWITCH}", node.daemon()))
}
