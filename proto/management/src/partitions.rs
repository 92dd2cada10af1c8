//! Partition keys: which packets a port takes, and what a notice reports about one that it does not take.
//!
//! A P_Key has fifteen bits of partition, and bit 15 for the membership: 1 is full, 0 limited. Two keys match if their
//! partitions are equal and not 0, and at least one of them is that of a full member.
//! Source: IBTA Vol 1, 10.9.1 (partitions), 10.9.3 (matching).

use crate::attribute::subnet::p_key_table::P_KEY;
use proto::ids::{Lid, QueuePairNumber, ServiceLevel};
use proto::wire::infiniband::opcode::Transport;
use proto::wire::infiniband::{Bth, BthView, Deth, Lrh, envelope};

/// Entries of a table.
pub(crate) const ENTRIES: usize = 32;
/// The bit of full members.
const FULL: u16 = 1 << 15;

/// The P_Key table of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartitionTable([u16; ENTRIES]);

impl Default for PartitionTable {
    /// The port is a full member of the default partition, as after a reset.
    fn default() -> PartitionTable {
        let mut table = PartitionTable([0; ENTRIES]);
        table.0[0] = Bth::DEFAULT_PARTITION;
        table
    }
}

impl PartitionTable {
    /// The table in a block of the attribute.
    pub fn new(block: &[u8; 64]) -> PartitionTable {
        PartitionTable(std::array::from_fn(|index| P_KEY.at(index, block) as u16))
    }

    /// The first entry that matches `key`.
    #[inline]
    pub fn find(&self, key: u16) -> Option<u16> {
        let matches = |entry: &u16| {
            let is_same = (entry ^ key) & !FULL == 0 && key & !FULL != 0;
            is_same && (entry | key) & FULL != 0
        };
        self.0.iter().copied().find(matches)
    }

    /// The entries that stand for a partition.
    pub fn keys(&self) -> impl Iterator<Item = u16> + '_ {
        self.0.iter().copied().filter(|entry| entry & !FULL != 0)
    }

    /// The key of a packet whose sender knows no other: entry 0.
    pub fn first(&self) -> u16 {
        self.0[0]
    }

    /// Whether `key` is an entry, whatever its membership.
    pub fn has(&self, key: u16) -> bool {
        self.0.iter().any(|entry| (entry ^ key) & !FULL == 0)
    }
}

/// The P_Key of a packet; `None` for a raw one, which has none. Some headers behind the BTH may be missing.
#[inline]
pub fn key_of(octets: &[u8]) -> Option<u16> {
    let offset = envelope::bth_offset(octets).ok().flatten()?;
    BthView::new(&octets[offset..]).ok().map(|bth| bth.partition_key())
}

/// A packet with a bad P_Key, as a notice reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadPartition {
    /// Its P_Key.
    pub key: u16,
    /// Its service level.
    pub level: ServiceLevel,
    /// LID of the sender.
    pub source: Lid,
    /// LID of the receiver.
    pub destination: Lid,
    /// Queue pair of the sender, which only a datagram has.
    pub source_pair: Option<QueuePairNumber>,
    /// Queue pair of the receiver.
    pub pair: QueuePairNumber,
}

impl BadPartition {
    /// The packet in `octets`; `None` if it has no BTH.
    pub fn of(octets: &[u8]) -> Option<BadPartition> {
        let offset = envelope::bth_offset(octets).ok().flatten()?;
        let (lrh, bth) = (Lrh::parse(octets).ok()?, Bth::parse(&octets[offset..]).ok()?);
        let is_datagram = bth.opcode.row().is_some_and(|row| row.transport == Transport::Ud);
        let deth = is_datagram.then(|| Deth::parse(&octets[offset + Bth::LEN..]).ok()).flatten();
        Some(BadPartition {
            key: bth.partition_key,
            level: lrh.service_level,
            source: lrh.slid,
            destination: lrh.dlid,
            source_pair: deth.map(|deth| deth.source),
            pair: bth.destination,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(keys: &[u16]) -> PartitionTable {
        let mut block = [0; 64];
        keys.iter().enumerate().for_each(|(at, key)| P_KEY.set_at(at, &mut block, (*key).into()));
        PartitionTable::new(&block)
    }

    #[test]
    fn a_key_needs_its_partition_and_one_full_member() {
        let table = table(&[0x7fff, 0x8005, 0x0006]);
        let cases = [
            (0xffff, Some(0x7fff)),
            (0x7fff, None),
            (0x8005, Some(0x8005)),
            (0x0005, Some(0x8005)),
            (0x8006, Some(0x0006)),
            (0x0006, None),
            (0x8007, None),
            // The partition 0 does not exist.
            (0x8000, None),
            (0x0000, None),
        ];
        for (key, entry) in cases {
            assert_eq!(table.find(key), entry, "{key:#06x}");
        }
        assert_eq!(table.first(), 0x7fff);
        assert!(table.has(0xffff) && !table.has(0x8007));
        assert_eq!(PartitionTable::default().find(0x7fff), Some(0xffff));
    }
}
