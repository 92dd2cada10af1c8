//! The table of connections: what this adapter has with each of them in each class, found without hashing.
//!
//! It knows the order of flows, too: by peer, then by class.

use proto::ids::Lid;

/// What an adapter has with a peer in a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Connection {
    /// A conversation, by the index of its queue pair.
    QueuePair(u32),
    /// Messages for one that has not begun, by their index.
    Pending(u32),
}

impl Connection {
    /// The queue pair, if the conversation has begun.
    pub fn queue_pair(self) -> Option<u32> {
        match self {
            Connection::QueuePair(index) => Some(index),
            Connection::Pending(_) => None,
        }
    }
}

/// Four octets for an `Option<Connection>`: there is one a peer and class, of which most are empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cell(u32);

impl Cell {
    const NONE: Cell = Cell(u32::MAX);
    const PENDING: u32 = 1 << 31;

    fn new(party: Connection) -> Cell {
        match party {
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

/// Finds parties by class and peer.
#[derive(Clone, Debug)]
pub struct ConnectionTable {
    own: Lid,
    /// Bit n of word w: LID 64 w + n is an adapter's.
    adapters: Vec<u64>,
    /// By class, then LID; a class's row is made with its first party.
    rows: Vec<Vec<Cell>>,
}

impl ConnectionTable {
    /// A table for connections of adapter `own` with `adapters` in `classes` classes.
    pub fn new(own: Lid, adapters: &[Lid], classes: usize) -> ConnectionTable {
        let highest = adapters.iter().map(|lid| lid.get()).max().unwrap_or(0);
        let mut bits = vec![0; usize::from(highest) / 64 + 1];
        for lid in adapters.iter().map(|lid| usize::from(lid.get())) {
            bits[lid / 64] |= 1 << (lid % 64);
        }
        ConnectionTable { own, adapters: bits, rows: vec![Vec::new(); classes] }
    }

    /// Whether a connection of `class` with `peer` is possible at all.
    pub fn admits(&self, class: u8, peer: Lid) -> bool {
        let lid = usize::from(peer.get());
        let is_adapter =
            self.adapters.get(lid / 64).is_some_and(|bits| bits >> (lid % 64) & 1 == 1);
        usize::from(class) < self.rows.len() && peer != self.own && is_adapter
    }

    /// What there is with `peer` in `class`.
    pub fn find(&self, class: u8, peer: Lid) -> Option<Connection> {
        Self::cell(self.rows.get(usize::from(class))?, usize::from(peer.get()))
    }

    /// The queue pair for `class` and `peer`, if there is one.
    pub fn queue_pair(&self, class: u8, peer: Lid) -> Option<u32> {
        self.find(class, peer).and_then(Connection::queue_pair)
    }

    /// The queue pairs with `peer`, by class.
    pub fn with(&self, peer: Lid) -> impl Iterator<Item = u32> + '_ {
        self.of(usize::from(peer.get())).filter_map(Connection::queue_pair)
    }

    /// All there is, in the order of flows: by peer, then by class.
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

    /// Notes what there is with `peer` in `class` from now on.
    ///
    /// # Panics
    /// If [`ConnectionTable::admits`] does not admit the pair.
    pub fn set(&mut self, class: u8, peer: Lid, party: Connection) {
        assert!(self.admits(class, peer), "only adapters of the fabric are peers");
        let row = &mut self.rows[usize::from(class)];
        if row.is_empty() {
            row.resize(self.adapters.len() * 64, Cell::NONE);
        }
        row[usize::from(peer.get())] = Cell::new(party);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parties_come_in_the_order_of_their_flows_whenever_they_were_made() {
        use Connection::{Pending, QueuePair};
        let lids = [1, 2, 5, 9].map(Lid::new);
        let mut table = ConnectionTable::new(lids[0], &lids, 2);
        let parties = [QueuePair(0), QueuePair(1), Pending(0), QueuePair(2)];
        for ((class, peer), party) in [(1, 9), (0, 5), (0, 2), (0, 9)].into_iter().zip(parties) {
            table.set(class, Lid::new(peer), party);
        }
        let in_order = [Pending(0), QueuePair(1), QueuePair(2), QueuePair(0)];
        assert_eq!(table.in_flow_order().collect::<Vec<_>>(), in_order);
        assert_eq!(table.with(Lid::new(9)).collect::<Vec<_>>(), [2, 0], "by class");
        assert_eq!(table.with(Lid::new(2)).count(), 0, "nothing has begun there");
        assert_eq!(table.with(Lid::new(7)).count(), 0, "no adapter has that LID");
    }

    #[test]
    fn what_there_is_with_a_peer_may_change() {
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
