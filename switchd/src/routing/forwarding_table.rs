//! The linear and multicast forwarding tables. Source: IBTA Vol 1, 18.2.4.3.

use super::{Lookup, RoutedPacket, Table};
use crate::config::{MulticastRoute, Route};
use proto::counters::DropReason;
use proto::ids::{Address, Lid, PortNumber};

/// First multicast LID.
const MULTICAST_FIRST: u16 = 0xc000;

/// One port for each unicast LID, a set of ports for each multicast LID.
#[derive(Clone, Debug, Default)]
pub struct ForwardingTable {
    unicast: Vec<Option<PortNumber>>,
    multicast: Vec<Vec<PortNumber>>,
}

impl ForwardingTable {
    /// The tables of these routes. A later route overrides an earlier one for the same LID.
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

    fn to(&self, destination: Lid) -> Lookup<'_> {
        if destination.is_multicast() {
            let index = usize::from(destination.get() - MULTICAST_FIRST);
            return match self.multicast.get(index) {
                Some(ports) if !ports.is_empty() => Lookup::Multicast(ports),
                _ => Lookup::NoRoute(DropReason::NoMulticastRoute),
            };
        }
        match self.ports_to(destination) {
            [] => Lookup::NoRoute(DropReason::NoRoute),
            legal => Lookup::Unicast(legal),
        }
    }
}

impl Table for ForwardingTable {
    fn find(&mut self, packet: RoutedPacket<'_>) -> Lookup<'_> {
        match packet.headers.destination {
            Address::Lid(lid) => self.to(lid),
            Address::Mac(_) => Lookup::NoRoute(DropReason::NoRoute),
        }
    }

    fn ports_to(&self, adapter: Lid) -> &[PortNumber] {
        self.unicast.get(usize::from(adapter.get())).map_or(&[], Option::as_slice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_lids_follow_their_routes_and_other_lids_have_none() {
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
        let nowhere = Lookup::NoRoute(DropReason::NoRoute);
        let out = |port| vec![PortNumber::from_index(port)];
        assert_eq!(to(3), Lookup::Unicast(&out(0)));
        assert_eq!(to(4), Lookup::Unicast(&out(3)));
        assert_eq!(to(0), nowhere);
        assert_eq!(to(10), nowhere);
        assert_eq!(to(0xc000), Lookup::NoRoute(DropReason::NoMulticastRoute));
        assert!(matches!(to(0xc001), Lookup::Multicast(ports) if ports.len() == 2));
        assert_eq!(to(0xffff), nowhere);
    }
}
