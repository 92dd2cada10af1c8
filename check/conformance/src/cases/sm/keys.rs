//! The M_Key: what it refuses, what it hides, and its lease.

use super::desk::Desk;
use super::dialogue::{Ask, Dialogue, Node, Reply, Value};
use crate::prelude::*;
use management::attribute::subnet::{node_info, port_info as info};
use management::datagram::{M_KEY, SUBNET_DIRECTED, method};

const KEY: u64 = 0x5eb0_0000_0000_0005;
const WRONG: u64 = KEY + 1;
const ID: u16 = info::ATTRIBUTE.id;
/// The lease, and a time after it. Units: seconds of PortInfo; fabric time.
const LEASE: u64 = 1;
const AFTER_LEASE: Duration = us(1_050_000);
const HALF_LEASE: Duration = us(525_000);
const REFUSED: Reply = Reply::Lost(DropReason::Key);

fn key(protect: u64, lease: u64) -> [Value; 3] {
    [(info::M_KEY, 0, KEY), (info::M_KEY_PROTECT, 0, protect), (info::M_KEY_LEASE, 0, lease)]
}

/// SM-17 to SM-20.
pub(super) fn keys(on: &mut Dialogue, level: Level) {
    let (node, home) = (on.node, on.node.home());
    let get = |key: u64| Ask::get(ID, home).with(M_KEY, key);
    let set = |key: u64, values: &[Value]| Ask::port_info(node, home, values).with(M_KEY, key);
    let shown = |value: u64| Reply::Answer(0, vec![(info::M_KEY, 0, value)]);
    let violations = |count: u64| Reply::Answer(0, vec![(info::M_KEY_VIOLATIONS, 0, count)]);
    on.case("SM-17");
    let clear = [(info::M_KEY_VIOLATIONS, 0, 0)];
    on.grant("the key is set while it is 0", set(WRONG, &[&key(0, 0)[..], &clear].concat()));
    let rows = [
        (0, Some(KEY), "shows the key"),
        (1, Some(0), "hides the key"),
        (2, None, "is silent"),
        (3, None, "is silent"),
    ];
    for (level, wrong_shows, what) in rows {
        on.say(format!("protection {level}"), set(KEY, &key(level, 0)), shown(KEY));
        on.say("the key itself", get(KEY), shown(KEY));
        let reply = wrong_shows.map_or(REFUSED, shown);
        on.say(format!("Get with a wrong key at level {level} {what}"), get(WRONG), reply);
        on.say("a Set with a wrong key", set(WRONG, &key(0, 0)), REFUSED);
        on.say("a Set without a key", set(0, &key(0, 0)), REFUSED);
        let other = Ask::get(node_info::ATTRIBUTE.id, 0).with(M_KEY, WRONG);
        let reply = wrong_shows.map_or(REFUSED, |_| Reply::Answer(0, Vec::new()));
        on.say("NodeInfo follows the same rule", other, reply);
    }
    on.case("SM-18");
    // Two Sets at each of four levels, two Gets at two of them.
    on.say("refusals are counted", get(KEY), violations(12));
    let keeps = [(info::M_KEY_VIOLATIONS, 0, 7)];
    let mut values = key(0, 0).to_vec();
    values.extend(keeps);
    on.say("another value than 0 keeps the count", set(KEY, &values), violations(12));
    values.extend(clear);
    on.say("0 clears it", set(KEY, &values), violations(0));
    if level == Level::Engine {
        lease(on);
    }
    on.case("");
    let none = [(info::M_KEY, 0, 0), (info::M_KEY_VIOLATIONS, 0, 0)];
    on.grant("the key is given up", set(KEY, &none));
}

/// SM-19: the shortest lease is a second, so it is waited for on the virtual clock alone.
fn lease(on: &mut Dialogue) {
    let (node, home) = (on.node, on.node.home());
    let get = |key: u64| Ask::get(ID, home).with(M_KEY, key);
    let set = |key: u64, values: &[Value]| Ask::port_info(node, home, values).with(M_KEY, key);
    on.case("SM-19");
    let protects = |level: u64| Reply::Answer(0, vec![(info::M_KEY_PROTECT, 0, level)]);
    on.grant("a lease of a second", set(KEY, &key(2, LEASE)));
    on.say("a refusal starts it", get(WRONG), REFUSED);
    on.wait(HALF_LEASE);
    on.say("the good key ends it", get(KEY), protects(2));
    on.wait(HALF_LEASE);
    on.say("the key protects", get(WRONG), REFUSED);
    on.wait(AFTER_LEASE);
    on.say("the lease has expired: reads are free", get(WRONG), protects(0));
    on.say("writes are not", set(WRONG, &key(0, 0)), REFUSED);
}

/// SM-20: violations stop at their maximum.
pub fn violations_stick() -> Finding {
    const MAX: u64 = 0xffff;
    for node in [Node::Switch, Node::Nic] {
        let (mut desk, home) = (Desk::new(node)?, node.home());
        desk.granted(&Ask::port_info(node, home, &key(1, 0)))?;
        let wrong = Ask::new(SUBNET_DIRECTED, method::SET, ID, home).with(M_KEY, WRONG);
        for _ in 0..MAX + 5 {
            same("answers to a wrong key", desk.ask(&wrong).len(), 0)?;
        }
        let answer = desk.granted(&Ask::get(ID, home).with(M_KEY, KEY))?;
        let found = info::M_KEY_VIOLATIONS.get(answer.data());
        same(format!("{}: violations", node.daemon()), found, MAX)?;
    }
    Ok(format!("switchd and nicd: {} wrong keys count {MAX}", MAX + 5))
}
