//! A set of ports as bits, for iterating over few ports of many.

use proto::ids::PortNumber;

/// A set of ports of one device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortSet([u64; 4]);

impl PortSet {
    /// The empty set.
    pub const EMPTY: PortSet = PortSet([0; 4]);

    /// Adds a port.
    pub fn insert(&mut self, port: PortNumber) {
        self.0[port.index() / 64] |= 1 << (port.index() % 64);
    }

    /// Removes a port.
    pub fn remove(&mut self, port: PortNumber) {
        self.0[port.index() / 64] &= !(1 << (port.index() % 64));
    }

    /// Whether the port is in the set.
    pub fn contains(&self, port: PortNumber) -> bool {
        self.0[port.index() / 64] & 1 << (port.index() % 64) != 0
    }

    /// Whether there is no port in the set.
    pub fn is_empty(&self) -> bool {
        self.0 == [0; 4]
    }

    /// The first port with index `from` or above.
    pub fn first_from(&self, from: usize) -> Option<PortNumber> {
        let word = from / 64;
        if word >= 4 {
            return None;
        }
        let here = self.0[word] & (u64::MAX << (from % 64));
        if here != 0 {
            return Some(PortNumber::from_index(word * 64 + here.trailing_zeros() as usize));
        }
        (word + 1..4)
            .find(|word| self.0[*word] != 0)
            .map(|word| PortNumber::from_index(word * 64 + self.0[word].trailing_zeros() as usize))
    }

    /// All ports of the set in cyclic order, beginning after `last`.
    pub fn after(&self, last: PortNumber) -> impl Iterator<Item = PortNumber> + '_ {
        let start = last.index() + 1;
        let mut from = start;
        let mut wrapped = false;
        std::iter::from_fn(move || {
            let mut next = self.first_from(from);
            if next.is_none() && !wrapped {
                wrapped = true;
                next = self.first_from(0);
            }
            let port = next.filter(|port| !wrapped || port.index() < start)?;
            from = port.index() + 1;
            Some(port)
        })
    }

    /// The ports of the set in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = PortNumber> + '_ {
        let mut next = self.first_from(0);
        std::iter::from_fn(move || {
            let port = next?;
            next = self.first_from(port.index() + 1);
            Some(port)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(indexes: &[usize]) -> PortSet {
        let mut set = PortSet::EMPTY;
        indexes.iter().for_each(|index| set.insert(PortNumber::from_index(*index)));
        set
    }

    #[test]
    fn cyclic_order_ends_with_the_port_itself() {
        let ports = set(&[0, 3, 70, 253]);
        let order: Vec<usize> = ports.after(PortNumber::from_index(3)).map(|p| p.index()).collect();
        assert_eq!(order, [70, 253, 0, 3]);
        let order: Vec<usize> =
            ports.after(PortNumber::from_index(253)).map(|p| p.index()).collect();
        assert_eq!(order, [0, 3, 70, 253]);
        assert_eq!(PortSet::EMPTY.after(PortNumber::from_index(5)).count(), 0);
    }

    #[test]
    fn ports_come_and_go() {
        let mut ports = set(&[64]);
        let port = PortNumber::from_index(64);
        assert!(ports.contains(port) && !ports.is_empty());
        ports.remove(port);
        assert!(ports.is_empty());
        assert_eq!(set(&[5, 1]).iter().map(|p| p.index()).collect::<Vec<_>>(), [1, 5]);
    }
}
