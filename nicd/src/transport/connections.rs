//! The table of connections, indexed by class and peer without hashing.
//!
//! It also yields connections in the order of flows: by peer, then by class.

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
    /// By class, then LID. The row of a class is allocated with its first connection.
    rows: Vec<Vec<Cell>>,
}

impl ConnectionTable {
    /// An empty table of adapter `own` for connections to `adapters` in `classes` classes.
    pub fn new(own: Lid, adapters: &[Lid], classes: usize) -> ConnectionTable {
        let highest = adapters.iter().map(|lid| lid.get()).max().unwrap_or(0);
        let mut bits = vec![0; usize::from(highest) / 64 + 1];
        for lid in adapters.iter().map(|lid| usize::from(lid.get())) {
            bits[lid / 64] |= 1 << (lid % 64);
        }
        ConnectionTable { own, adapters: bits, rows: vec![Vec::new(); classes] }
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
        Self::cell(self.rows.get(usize::from(class))?, usize::from(peer.get()))
    }

    /// The queue pair of `class` to `peer`.
    pub fn queue_pair(&self, class: u8, peer: Lid) -> Option<u32> {
        self.find(class, peer).and_then(Connection::queue_pair)
    }

    /// The queue pairs to `peer`, by class.
    pub fn with(&self, peer: Lid) -> impl Iterator<Item = u32> + '_ {
        self.of(usize::from(peer.get())).filter_map(Connection::queue_pair)
    }

    /// All connections, by peer, then by class.
    pub fn in_flow_order(&self) -> impl Iterator<Item = Connection> + '_ {
        let lids = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        (0..lids).flat_map(|lid| self.of(lid))
    }

    fn of(&self, lid: usize) -> impl Iterator<Item = Connection> + '_ {
        self.rows.iter().filter_map(move |row| Self::cell(row, lid))
    }

    fn cell(row: &[Cell], lid: usize) -> Option<Connection> {
        row.get(lid).copied().and_then(Cell::get)
    }

    /// Sets the connection of `class` to `peer`.
    ///
    /// # Panics
    /// If [`ConnectionTable::admits`] is false for `class` and `peer`.
    pub fn set(&mut self, class: u8, peer: Lid, connection: Connection) {
        assert!(self.admits(class, peer), "class {class} to LID {peer}: not a possible connection");
        let row = &mut self.rows[usize::from(class)];
        if row.is_empty() {
            row.resize(self.adapters.len() * 64, Cell::NONE);
        }
        row[usize::from(peer.get())] = Cell::new(connection);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_come_in_the_order_of_flows() {
        use Connection::{Pending, QueuePair};
        let lids = [1, 2, 5, 9].map(Lid::new);
        let mut table = ConnectionTable::new(lids[0], &lids, 2);
        let connections = [QueuePair(0), QueuePair(1), Pending(0), QueuePair(2)];
        for ((class, peer), connection) in
            [(1, 9), (0, 5), (0, 2), (0, 9)].into_iter().zip(connections)
        {
            table.set(class, Lid::new(peer), connection);
        }
        let in_order = [Pending(0), QueuePair(1), QueuePair(2), QueuePair(0)];
        assert_eq!(table.in_flow_order().collect::<Vec<_>>(), in_order);
        assert_eq!(table.with(Lid::new(9)).collect::<Vec<_>>(), [2, 0], "by class");
        assert_eq!(table.with(Lid::new(2)).count(), 0, "a pending connection has no queue pair");
        assert_eq!(table.with(Lid::new(7)).count(), 0, "no adapter has this LID");
    }

    #[test]
    fn a_pending_connection_may_become_a_queue_pair() {
        let lids = [1, 2].map(Lid::new);
        let mut table = ConnectionTable::new(lids[0], &lids, 1);
        assert_eq!(table.find(0, lids[1]), None);
        table.set(0, lids[1], Connection::Pending(7));
        assert_eq!(table.find(0, lids[1]), Some(Connection::Pending(7)));
        assert_eq!(table.queue_pair(0, lids[1]), None);
        table.set(0, lids[1], Connection::QueuePair(7));
        assert_eq!(table.queue_pair(0, lids[1]), Some(7));
    }
}
