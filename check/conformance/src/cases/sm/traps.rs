//! Notices for the manager: when one is sent, how often, and what ends it.

use super::dialogue::{Ask, Dialogue, Heard, Node, Reply, heard};
use crate::prelude::*;
use management::Datagram;
use management::attribute::subnet::{notice, port_info as info, switch_info};
use management::datagram::{M_KEY, SUBNET_DIRECTED, SUBNET_LID_ROUTED, TRANSACTION, method};
use management::packet;
use std::collections::BTreeSet;

/// SubnetTimeOut while notices are watched, and its time: 4.096 us · 2^13.
const TIMEOUT: u64 = 13;
const INTERVAL: Duration = Duration::from_ns(4_096 << TIMEOUT);
/// Longer than the 400 000 symbol times after which a silent peer is gone, 0.32 s at 10 Mb/s.
const GONE: Duration = us(400_000);
/// Repetitions that are waited for.
const SENDINGS: u64 = 4;
/// Room for the notices that wait to be repressed.
const QUIET: Duration = us(20_000);
/// The key of the NIC while it is watched.
const KEY: u64 = 5;
const LINK_STATE: u64 = 128;
const BAD_KEY: u64 = 256;

/// When the parts of the watch begin, by device.
#[derive(Clone, Copy, Debug)]
pub struct Watch {
    /// The event happens.
    event: Instant,
    /// TrapRepress comes with another transaction.
    wrong: Instant,
    /// TrapRepress comes with the transaction of the notice.
    right: Instant,
    /// The watch is over.
    end: Instant,
}

/// The neighbour of port 1 represses the notice of this transaction.
fn repress(bed: &mut dyn Bed, node: Node, transaction: u64) {
    let (class, id) = (SUBNET_LID_ROUTED, notice::ATTRIBUTE.id);
    let datagram = Datagram::request(class, method::TRAP_REPRESS, id, 0, transaction);
    // A TrapRepress needs the key, too.
    let ask = Ask { datagram, port: 1, addresses: None }.with(M_KEY, KEY);
    let octets = ask.octets(node);
    bed.send(1, &octets);
}

/// The transactions of the notices that the device has sent, without repetitions.
fn transactions(bed: &dyn Bed) -> BTreeSet<u64> {
    let read = |seen: &Seen| packet::parse(&seen.frame.octets).ok();
    let datagrams = bed.seen().iter().filter_map(read).map(|(_, datagram)| datagram);
    let notices = datagrams.filter(|datagram| datagram.method() == method::TRAP);
    notices.map(|datagram| datagram.get(&TRANSACTION)).collect()
}

/// SM-38 to SM-40: all notices so far are repressed, and the event raises one.
pub(super) fn watch(on: &mut Dialogue) -> Watch {
    let node = on.node;
    let timeout = [(info::SUBNET_TIMEOUT, 0, TIMEOUT)];
    on.case("");
    on.step(|bed, node| {
        transactions(bed).into_iter().for_each(|one| repress(bed, node, one));
    });
    on.wait(QUIET);
    on.grant("notices come often", Ask::port_info(node, node.home(), &timeout));
    let clear = [(switch_info::PORT_STATE_CHANGE, 0, 1), (switch_info::LINEAR_FDB_TOP, 0, 63)];
    if node == Node::Switch {
        on.case("SM-29");
        let id = switch_info::ATTRIBUTE.id;
        let change = |value: u64| vec![(switch_info::PORT_STATE_CHANGE, 0, value)];
        on.say("PortStateChange is set", Ask::get(id, 0), Reply::Answer(0, change(1)));
        let keep = Ask::set(id, 0, &clear[1..]);
        on.say("0 keeps it", keep, Reply::Answer(0, change(1)));
        on.say("1 clears it", Ask::set(id, 0, &clear), Reply::Answer(0, change(0)));
    }
    let event = on.now();
    match node {
        Node::Switch => {
            on.mode(4, FcMode::Off);
            on.wait(GONE);
        }
        Node::Nic => {
            on.case("SM-40");
            let key = [(info::M_KEY, 0, KEY), timeout[0]];
            on.grant("a key", Ask::port_info(node, 1, &key));
            let wrong = Ask::new(SUBNET_DIRECTED, method::SET, info::ATTRIBUTE.id, 1);
            let lost = Reply::Lost(DropReason::Key);
            on.say("a wrong key", wrong.with(M_KEY, KEY + 1), lost);
            on.case("");
        }
    }
    on.wait(INTERVAL * SENDINGS);
    let wrong = on.now();
    on.step(|bed, node| {
        let other = transactions(bed).last().map_or(0, |last| last + 99);
        repress(bed, node, other);
    });
    on.wait(INTERVAL * SENDINGS);
    let right = on.now();
    on.step(|bed, node| {
        let last = transactions(bed).last().copied();
        repress(bed, node, last.unwrap_or_default());
    });
    let end = right + INTERVAL * SENDINGS;
    on.wait(INTERVAL * SENDINGS);
    Watch { event, wrong, right, end }
}

impl Watch {
    fn notices(&self, record: &Record, number: u64) -> Vec<Heard> {
        let mut all = heard(record, (self.event, self.end));
        all.retain(|one| {
            one.datagram.method() == method::TRAP && notice::TRAP.get(one.datagram.data()) == number
        });
        all
    }

    /// SM-38 at the switch, SM-40 at the NIC: what the notice says.
    pub fn content(&self, node: Node, record: &Record) -> Result<String> {
        let number = if node == Node::Switch { LINK_STATE } else { BAD_KEY };
        let all = self.notices(record, number);
        let Some(first) = all.first() else { bail!("no trap {number}") };
        let data = first.datagram.data();
        let own = u64::from(node.lid().get());
        let addresses = (first.addresses.source, first.addresses.destination);
        same("its LIDs", addresses, (node.lid(), node.manager()))?;
        same("its lane", first.addresses.lane, VirtualLane::MANAGEMENT)?;
        same("its class", first.datagram.class(), SUBNET_LID_ROUTED)?;
        same("its M_Key", first.datagram.get(&M_KEY), 0)?;
        let producer = if node == Node::Switch { 2 } else { 1 };
        let fields = [notice::GENERIC, notice::PRODUCER, notice::ISSUER_LID];
        let found = fields.map(|field| field.get(data));
        same("generic, producer and issuer", found, [1, producer, own])?;
        let at = if number == BAD_KEY { 2 } else { 0 };
        let lid = notice::DETAILS.at(at, data) << 8 | notice::DETAILS.at(at + 1, data);
        same("the LID in its details", lid, own)?;
        Ok(format!("{}: trap {number}", node.daemon()))
    }

    /// SM-39: the distance of its sendings, and what ends them.
    pub fn repetition(&self, node: Node, record: &Record) -> Result<String> {
        let number = if node == Node::Switch { LINK_STATE } else { BAD_KEY };
        let all = self.notices(record, number);
        let numbers: Vec<_> = all.iter().map(|one| one.datagram.get(&TRANSACTION)).collect();
        let is_one = numbers.windows(2).all(|pair| pair[0] == pair[1]);
        ensure!(is_one, "transactions {numbers:?}");
        for pair in all.windows(2) {
            let apart = pair[1].at.since(pair[0].at);
            ensure!(apart >= INTERVAL, "two sendings {} apart", in_ms(apart));
        }
        let count = |from, to| all.iter().filter(|one| one.at >= from && one.at < to).count();
        let (before, between) = (count(self.event, self.wrong), count(self.wrong, self.right));
        lies("sendings before any TrapRepress", before, 3..)?;
        lies("sendings after a wrong one", between, 3..)?;
        // The right one takes its time on the line.
        same("sendings after the right one", count(self.right + us(2_500), self.end), 0)?;
        Ok(format!("{}: {} sendings", node.daemon(), all.len()))
    }
}
