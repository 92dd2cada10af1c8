//! The table of connections, indexed by class and peer without hashing. A multicast group is a peer, too.
//!
//! It also yields connections in the order of flows: by peer, then by class.

use crate::config::check::GROUP_FIRST;
use proto::ids::Lid;

/// The state of a connection to a peer in a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Connection {
    /// The index of its queue pair.
    QueuePair(u32),
    /// The index of the pending connection.
    Pending(u32),
}

impl Connection {
    /// The queue pair, if there is one.
    pub fn queue_pair(self) -> Option<u32> {
        match self {
            Connection::QueuePair(index) => Some(index),
            Connection::Pending(_) => None,
        }
    }
}

/// An `Option<Connection>` in four octets. The table has one per class and peer, most of them empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cell(u32);

impl Cell {
    const NONE: Cell = Cell(u32::MAX);
    const PENDING: u32 = 1 << 31;

    fn new(connection: Connection) -> Cell {
        match connection {
            Connection::QueuePair(index) => Cell(index),
            Connection::Pending(index) => Cell(index | Cell::PENDING),
        }
    }

    fn get(self) -> Option<Connection> {
        match self {
            Cell::NONE => None,
            Cell(bits) if bits & Cell::PENDING == 0 => Some(Connection::QueuePair(bits)),
            Cell(bits) => Some(Connection::Pending(bits & !Cell::PENDING)),
        }
    }
}

/// The connections of one adapter.
#[derive(Clone, Debug)]
pub struct ConnectionTable {
    own: Lid,
    /// Bit n of word w is set if LID 64 w + n belongs to an adapter.
    adapters: Vec<u64>,
    /// Numbers of groups in the plan, from the first one.
    groups: usize,
    /// By class, then LID, groups last. The row of a class is allocated with its first connection.
    rows: Vec<Vec<Cell>>,
}

impl ConnectionTable {
    /// An empty table of adapter `own` for connections to `adapters`, and to multicast `groups`, in `classes` classes.
    pub fn new(own: Lid, adapters: &[Lid], groups: &[Lid], classes: usize) -> ConnectionTable {
        let number = |lid: &Lid| usize::from(lid.get() - GROUP_FIRST) + 1;
        let groups = groups.iter().map(number).max().unwrap_or(0);
        let highest = adapters.iter().map(|lid| lid.get()).max().unwrap_or(0);
        let mut bits = vec![0; usize::from(highest) / 64 + 1];
        for lid in adapters.iter().map(|lid| usize::from(lid.get())) {
            bits[lid / 64] |= 1 << (lid % 64);
        }
        ConnectionTable { own, adapters: bits, groups, rows: vec![Vec::new(); classes] }
    }

    /// Whether a connection of `class` to `peer` is possible: class and adapter exist, and `peer` is another
    /// adapter.
    pub fn admits(&self, class: u8, peer: Lid) -> bool {
        let lid = usize::from(peer.get());
        let is_adapter =
            self.adapters.get(lid / 64).is_some_and(|bits| bits >> (lid % 64) & 1 == 1);
        usize::from(class) < self.rows.len() && peer != self.own && is_adapter
    }

    /// The connection of `class` to `peer`.
    pub fn find(&self, class: u8, peer: Lid) -> Option<Connection> {
        Self::cell(self.rows.get(usize::from(class))?, self.place(peer))
    }

    /// Where a peer is in a row.
    fn place(&self, peer: Lid) -> usize {
        match peer.is_multicast() {
            true => self.adapters.len() * 64 + usize::from(peer.get() - GROUP_FIRST),
            false => usize::from(peer.get()),
        }
    }

    /// The queue pair of `class` to `peer`.
    pub fn queue_pair(&self, class: u8, peer: Lid) -> Option<u32> {
        self.find(class, peer).and_then(Connection::queue_pair)
    }

    /// The queue pairs to `peer`, by class.
    pub fn with(&self, peer: Lid) -> impl Iterator<Item = u32> + '_ {
        self.of(self.place(peer)).filter_map(Connection::queue_pair)
    }

    /// All connections, by peer, then by class.
    pub fn in_flow_order(&self) -> impl Iterator<Item = Connection> + '_ {
        let places = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        (0..places).flat_map(|place| self.of(place))
    }

    fn of(&self, place: usize) -> impl Iterator<Item = Connection> + '_ {
        self.rows.iter().filter_map(move |row| Self::cell(row, place))
    }

    fn cell(row: &[Cell], place: usize) -> Option<Connection> {
        row.get(place).copied().and_then(Cell::get)
    }

    /// Sets the connection of `class` to `peer`.
    ///
    /// # Panics
    /// If [`ConnectionTable::admits`] is false for `class` and `peer`, and `peer` is not a group.
    pub fn set(&mut self, class: u8, peer: Lid, connection: Connection) {
        let is_possible = self.admits(class, peer) || peer.is_multicast();
        assert!(is_possible, "class {class} to LID {peer}: not a possible connection");
        let (place, length) = (self.place(peer), self.adapters.len() * 64 + self.groups);
        let row = &mut self.rows[usize::from(class)];
        if row.is_empty() {
            row.resize(length, Cell::NONE);
        }
        row[place] = Cell::new(connection);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_come_in_the_order_of_flows() {
        use Connection::{Pending, QueuePair};
        let lids = [1, 2, 5, 9].map(Lid::new);
        let group = Lid::new(0xc001);
        let mut table = ConnectionTable::new(lids[0], &lids, &[group], 2);
        table.set(1, group, QueuePair(3));
        let connections = [QueuePair(0), QueuePair(1), Pending(0), QueuePair(2)];
        for ((class, peer), connection) in
            [(1, 9), (0, 5), (0, 2), (0, 9)].into_iter().zip(connections)
        {
            table.set(class, Lid::new(peer), connection);
        }
        let in_order = [Pending(0), QueuePair(1), QueuePair(2), QueuePair(0), QueuePair(3)];
        assert_eq!(table.in_flow_order().collect::<Vec<_>>(), in_order);
        assert_eq!(table.with(Lid::new(9)).collect::<Vec<_>>(), [2, 0], "by class");
        assert_eq!(table.with(group).collect::<Vec<_>>(), [3]);
        assert!(!table.admits(1, group), "no packet comes from a group");
        assert_eq!(table.with(Lid::new(2)).count(), 0, "a pending connection has no queue pair");
        assert_eq!(table.with(Lid::new(7)).count(), 0, "no adapter has this LID");
    }

    #[test]
    fn a_pending_connection_may_become_a_queue_pair() {
        let lids = [1, 2].map(Lid::new);
        let mut table = ConnectionTable::new(lids[0], &lids, &[], 1);
        assert_eq!(table.find(0, lids[1]), None);
        table.set(0, lids[1], Connection::Pending(7));
        assert_eq!(table.find(0, lids[1]), Some(Connection::Pending(7)));
        assert_eq!(table.queue_pair(0, lids[1]), None);
        table.set(0, lids[1], Connection::QueuePair(7));
        assert_eq!(table.queue_pair(0, lids[1]), Some(7));
    }
}
