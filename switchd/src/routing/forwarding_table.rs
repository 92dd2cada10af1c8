//! The linear and multicast forwarding tables. Source: IBTA Vol 1, 18.2.4.3.

use super::{Found, Passing, Table};
use crate::config::{MulticastRoute, Route};
use proto::counters::DropReason;
use proto::ids::{Lid, PortNumber};

/// First multicast LID.
const MULTICAST_FIRST: u16 = 0xc000;

/// One port for every unicast LID, a set of ports for every multicast LID.
#[derive(Clone, Debug, Default)]
pub struct ForwardingTable {
    unicast: Vec<Option<PortNumber>>,
    multicast: Vec<Vec<PortNumber>>,
}

impl ForwardingTable {
    /// The tables written out; a later run of LIDs overrides an earlier one.
    pub fn new(routes: &[Route], multicast: &[MulticastRoute]) -> ForwardingTable {
        let mut table = ForwardingTable::default();
        for route in routes {
            for lid in route.first.get()..=route.last.get() {
                if Lid::new(lid).is_unicast() {
                    let index = usize::from(lid);
                    if table.unicast.len() <= index {
                        table.unicast.resize(index + 1, None);
                    }
                    table.unicast[index] = Some(route.port);
                }
            }
        }
        for group in multicast.iter().filter(|group| group.lid.is_multicast()) {
            let index = usize::from(group.lid.get() - MULTICAST_FIRST);
            if table.multicast.len() <= index {
                table.multicast.resize(index + 1, Vec::new());
            }
            table.multicast[index].clone_from(&group.ports);
        }
        table
    }
}

impl ForwardingTable {
    fn to(&self, destination: Lid) -> Found<'_> {
        if destination.is_multicast() {
            let index = usize::from(destination.get() - MULTICAST_FIRST);
            return match self.multicast.get(index) {
                Some(ports) if !ports.is_empty() => Found::Multicast(ports),
                _ => Found::Nowhere(DropReason::NoMulticastRoute),
            };
        }
        match self.ports_to(destination) {
            [] => Found::Nowhere(DropReason::NoRoute),
            legal => Found::Legal(legal),
        }
    }
}

impl Table for ForwardingTable {
    fn find(&mut self, packet: Passing<'_>) -> Found<'_> {
        self.to(Lid::new(packet.headers.destination as u16))
    }

    fn ports_to(&self, adapter: Lid) -> &[PortNumber] {
        self.unicast.get(usize::from(adapter.get())).map_or(&[], Option::as_slice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_lids_go_where_they_are_told_and_others_nowhere() {
        let run = |first, last, port| Route {
            first: Lid::new(first),
            last: Lid::new(last),
            port: PortNumber::from_index(port),
        };
        let group = MulticastRoute {
            lid: Lid::new(0xc001),
            ports: vec![PortNumber::from_index(0), PortNumber::from_index(2)],
        };
        let table = ForwardingTable::new(&[run(1, 9, 0), run(4, 4, 3)], &[group]);
        let to = |lid| table.to(Lid::new(lid));
        let nowhere = Found::Nowhere(DropReason::NoRoute);
        let out = |port| vec![PortNumber::from_index(port)];
        assert_eq!(to(3), Found::Legal(&out(0)));
        assert_eq!(to(4), Found::Legal(&out(3)));
        assert_eq!(to(0), nowhere);
        assert_eq!(to(10), nowhere);
        assert_eq!(to(0xc000), Found::Nowhere(DropReason::NoMulticastRoute));
        assert!(matches!(to(0xc001), Found::Multicast(ports) if ports.len() == 2));
        assert_eq!(to(0xffff), nowhere);
    }
}
