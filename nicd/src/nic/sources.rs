//! The frames of a NIC with a host: those of the channel adapter and those of the host, in turn.

use super::Nic;
use crate::host::HostStack;
use crate::transport::adapter::ChannelAdapter;
use proto::device::Departure;
use proto::ids::VirtualLane;
use proto::link::port::{Head, LaneSource, Transmission};
use proto::units::Instant;

/// Both sources of a port.
struct Sources<'a> {
    adapter: &'a mut ChannelAdapter,
    host: &'a mut HostStack,
}

/// A frame of either source.
enum Either<T> {
    Adapter(T),
    Host,
}

impl Sources<'_> {
    fn of_host(&mut self, lane: VirtualLane, now: Instant) -> Option<Head<Either<AdapterOffer>>> {
        let (size, class) = self.host.head(now).filter(|_| lane == self.host.lane())?;
        Some(Head { size, ready: now, class, offer: Either::Host })
    }

    fn of_adapter(
        &mut self,
        lane: VirtualLane,
        now: Instant,
    ) -> Option<Head<Either<AdapterOffer>>> {
        let Head { size, ready, class, offer } = self.adapter.head(lane, now)?;
        Some(Head { size, ready, class, offer: Either::Adapter(offer) })
    }
}

type AdapterOffer = <ChannelAdapter as LaneSource>::Offer;

impl LaneSource for Sources<'_> {
    type Offer = Either<AdapterOffer>;

    fn lanes(&self) -> u16 {
        let host = u16::from(self.host.is_ready()) << self.host.lane().index();
        self.adapter.lanes() | host
    }

    fn head(&mut self, lane: VirtualLane, now: Instant) -> Option<Head<Self::Offer>> {
        if self.host.goes_first {
            return self.of_host(lane, now).or_else(|| self.of_adapter(lane, now));
        }
        self.of_adapter(lane, now).or_else(|| self.of_host(lane, now))
    }
}

impl Nic {
    /// [`proto::device::Device::poll_transmit`] for a NIC with a host.
    pub(super) fn poll_transmit_with_host(&mut self, now: Instant) -> Option<Departure> {
        self.connect_foreign(now);
        let first = self.poll_sources(now);
        // The choice of a frame may have made a queue pair that asks for a connection.
        let asked = self.connect_foreign(now);
        if first.is_none() && asked { self.poll_sources(now) } else { first }
    }

    /// Carries requests for connections to the host, and their outcomes to the adapter. Whether there were any.
    fn connect_foreign(&mut self, now: Instant) -> bool {
        let Some(host) = &mut self.host else { return false };
        let mut any = false;
        while let Some(wanted) = self.adapter.poll_connect() {
            host.connect(wanted, now);
            any = true;
        }
        while let Some((number, terms)) = host.poll_outcome() {
            self.adapter.on_connection(number, terms.as_ref(), now);
            any = true;
        }
        any
    }

    fn poll_sources(&mut self, now: Instant) -> Option<Departure> {
        let host = self.host.as_mut()?;
        let mut sources = Sources { adapter: &mut self.adapter, host };
        let pool = &mut self.link_packets;
        match self.port.poll_transmit(&mut sources, pool, now, &mut self.events)? {
            Transmission::Control(departure) => Some(departure),
            Transmission::Granted(grant) => {
                host.goes_first = matches!(grant.offer, Either::Adapter(_));
                let (offer, grant) = grant.replace(());
                Some(match offer {
                    Either::Adapter(offer) => self.adapter.transmit(grant.replace(offer).1),
                    Either::Host => {
                        let frame = host.take().expect("the granted frame is the first to leave");
                        grant.departure(frame)
                    }
                })
            }
        }
    }
}
