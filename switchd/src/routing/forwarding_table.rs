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
            for lid in (route.first.get()..=route.last.get()).map(Lid::new) {
                if lid.is_unicast() {
                    table.set_route(lid, Some(route.port));
                }
            }
        }
        for group in multicast.iter().filter(|group| group.lid.is_multicast()) {
            table.set_multicast(group.lid, group.ports.clone());
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

    fn set_route(&mut self, adapter: Lid, output: Option<PortNumber>) {
        let index = usize::from(adapter.get());
        if self.unicast.len() <= index {
            if output.is_none() {
                return;
            }
            self.unicast.resize(index + 1, None);
        }
        self.unicast[index] = output;
    }

    fn set_multicast(&mut self, group: Lid, outputs: Vec<PortNumber>) {
        let index = usize::from(group.get() - MULTICAST_FIRST);
        if self.multicast.len() <= index {
            self.multicast.resize(index + 1, Vec::new());
        }
        self.multicast[index] = outputs;
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

    #[test]
    fn a_route_that_is_set_replaces_the_one_before() {
        let mut table = ForwardingTable::default();
        let (lid, port) = (Lid::new(70), PortNumber::from_index(3));
        table.set_route(lid, None);
        table.set_route(lid, Some(port));
        assert_eq!(table.to(lid), Lookup::Unicast(&[port]));
        table.set_route(lid, None);
        assert_eq!(table.to(lid), Lookup::NoRoute(DropReason::NoRoute));
        table.set_multicast(Lid::new(0xc002), vec![port]);
        assert!(matches!(table.to(Lid::new(0xc002)), Lookup::Multicast([only]) if *only == port));
    }
}
