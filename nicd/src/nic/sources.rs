//! The frames of a NIC with two sources, in turn: the channel adapter, and a host or the management beside it.

use super::Nic;
use crate::host::HostStack;
use crate::transport::adapter::ChannelAdapter;
use proto::device::{Departure, Step};
use proto::events::EventLog;
use proto::frame::{Frame, FrameClass, FramePool};
use proto::ids::VirtualLane;
use proto::link::port::{Head, LaneSource, LinkPort, Transmission};
use proto::units::{Bytes, Instant};

/// A source of frames beside the adapter.
pub(super) trait Beside {
    /// The lanes that may have a frame, bit n for lane n.
    fn lanes(&self) -> u16;
    /// Size and class of the next frame of `lane`.
    fn head(&mut self, lane: VirtualLane, now: Instant) -> Option<(Bytes, FrameClass)>;
    /// Takes the frame of [`Beside::head`].
    fn take(&mut self, lane: VirtualLane) -> Option<Frame>;
    /// The next frame of a common lane is this source's, if it has one.
    fn goes_first(&mut self) -> &mut bool;
}

impl Beside for HostStack {
    fn lanes(&self) -> u16 {
        u16::from(self.is_ready()) << self.lane().index()
    }

    fn head(&mut self, lane: VirtualLane, now: Instant) -> Option<(Bytes, FrameClass)> {
        self.next_frame(now).filter(|_| lane == self.lane())
    }

    fn take(&mut self, _: VirtualLane) -> Option<Frame> {
        self.take_frame()
    }

    fn goes_first(&mut self) -> &mut bool {
        &mut self.goes_first
    }
}

/// Both sources of a port.
struct Sources<'a, B> {
    adapter: &'a mut ChannelAdapter,
    beside: &'a mut B,
}

/// A frame of either source.
enum Either<T> {
    Adapter(T),
    Beside,
}

impl<B: Beside> Sources<'_, B> {
    fn of_beside(&mut self, lane: VirtualLane, now: Instant) -> Option<Head<Either<AdapterOffer>>> {
        let (size, class) = self.beside.head(lane, now)?;
        Some(Head { size, ready: now, class, offer: Either::Beside })
    }

    fn of_adapter(
        &mut self,
        lane: VirtualLane,
        now: Instant,
    ) -> Option<Head<Either<AdapterOffer>>> {
        // The adapter has data lanes only.
        if lane == VirtualLane::MANAGEMENT {
            return None;
        }
        let Head { size, ready, class, offer } = self.adapter.head(lane, now)?;
        Some(Head { size, ready, class, offer: Either::Adapter(offer) })
    }
}

type AdapterOffer = <ChannelAdapter as LaneSource>::Offer;

impl<B: Beside> LaneSource for Sources<'_, B> {
    type Offer = Either<AdapterOffer>;

    fn lanes(&self) -> u16 {
        self.adapter.lanes() | self.beside.lanes()
    }

    fn head(&mut self, lane: VirtualLane, now: Instant) -> Option<Head<Self::Offer>> {
        // The adapter is always asked, because it then notes the flows whose permission has come.
        let adapter = self.of_adapter(lane, now);
        if *self.beside.goes_first() {
            return self.of_beside(lane, now).or(adapter);
        }
        adapter.or_else(|| self.of_beside(lane, now))
    }
}

impl Nic {
    /// [`proto::device::Device::poll_transmit`] for a NIC with a host.
    pub(super) fn poll_transmit_with_host(&mut self, now: Instant) -> Option<Departure> {
        self.connect_foreign(now);
        let first = self.poll_host();
        // The choice of a frame may have made a queue pair that asks for a connection.
        let asked = self.connect_foreign(now);
        if first.is_none() && asked { self.poll_host() } else { first }
    }

    fn poll_host(&mut self) -> Option<Departure> {
        let Nic { host, adapter, port, link_packets, events, step, .. } = self;
        poll_sources(port, adapter, &mut **host.as_mut()?, (link_packets, events), *step)
    }

    /// The same for a NIC under a subnet manager.
    pub(super) fn poll_transmit_managed(&mut self, now: Instant) -> Option<Departure> {
        if self.has_new_peer() {
            self.after_management(now);
        }
        let first = self.poll_managed();
        // The choice of a frame may have made a queue pair that asks for its path.
        if first.is_none() && self.has_new_peer() {
            self.after_management(now);
            return self.poll_managed();
        }
        first
    }

    fn poll_managed(&mut self) -> Option<Departure> {
        let Nic { managed, adapter, port, link_packets, events, step, .. } = self;
        poll_sources(port, adapter, &mut **managed.as_mut()?, (link_packets, events), *step)
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
}

/// The next frame of either source that starts to leave.
fn poll_sources(
    port: &mut LinkPort,
    adapter: &mut ChannelAdapter,
    beside: &mut impl Beside,
    (pool, events): (&mut FramePool, &mut EventLog),
    step: Step,
) -> Option<Departure> {
    let mut sources = Sources { adapter, beside };
    match port.poll_transmit(&mut sources, pool, step, events)? {
        Transmission::Control(departure) => Some(departure),
        Transmission::Granted(grant) => {
            *beside.goes_first() = matches!(grant.offer, Either::Adapter(_));
            let (offer, grant) = grant.replace(());
            Some(match offer {
                Either::Adapter(offer) => adapter.transmit(grant.replace(offer).1),
                Either::Beside => {
                    let frame = beside.take(grant.lane);
                    grant.departure(frame.expect("the granted frame is the first to leave"))
                }
            })
        }
    }
}
