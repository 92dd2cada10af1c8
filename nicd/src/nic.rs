//! A NIC: one port, the channel adapter behind it, and the workload that posts messages.
//!
//! On Ethernet the host may be slower than the line. Frames then wait in a receive buffer between port and
//! adapter ([`crate::rx_buffer`]), and the port pauses its peer when the buffer fills.
//!
//! The adapter chooses and makes a frame when the port can send one. Just before that, the NIC posts the
//! messages that the workload has generated up to this instant.

use crate::config::check::ConfigError;
use crate::config::{NicConfig, StormConfig};
use crate::host::HostStack;
use crate::rx_buffer::RxBuffer;
use crate::transport::adapter::ChannelAdapter;
use crate::transport::queue_pair::HeldRequest;
use crate::transport::receive::ReceivedFrame;
use crate::workload::{Workload, WorkloadAction};
use managed::Managed;
use proto::counters::{Balance, BinReading, DeviceReading, DropReason};
use proto::device::{Control, Departure, Depth, Device, Instrumented, ManagementDatagram, Step};
use proto::events::{DeviceEvent, EventLog};
use proto::frame::{Frame, FrameHeaders, FrameKind, FramePool};
use proto::ids::{Lid, PortNumber, VirtualLane};
use proto::link::LinkConfig;
use proto::link::credit::LinkState;
use proto::link::port::{Arrival, LinkPort, Transmission};
use proto::units::{BitRate, Bytes, Instant};

/// A NIC with one port.
pub struct Nic {
    port: LinkPort,
    /// The receive buffer of a slow host.
    rx_buffer: Option<RxBuffer>,
    /// A configured storm that has not begun.
    storm: Option<StormConfig>,
    /// The priorities that a storm pauses: bit n is priority n.
    storm_priorities: u8,
    adapter: ChannelAdapter,
    /// The host beside the adapter, on fabrics with foreign hosts.
    host: Option<Box<HostStack>>,
    /// On a fabric under a subnet manager.
    managed: Option<Box<Managed>>,
    workload: Workload,
    link_packets: FramePool,
    events: EventLog,
    /// The latest step.
    step: Step,
    /// A reading has posted arrivals, and `poll_transmit` has not run since then.
    has_unsent_arrivals: bool,
}

impl Nic {
    /// A NIC at the start of the run.
    ///
    /// # Errors
    /// [`ConfigError`] if `config` is invalid.
    pub fn new(config: NicConfig) -> Result<Nic, ConfigError> {
        let scheme = config.check()?;
        let roce = config.wire.roce();
        let drain = roce.and_then(|roce| roce.drain);
        let mut port = LinkPort::new(PortNumber::from_index(0), &config.link, Instant::ZERO);
        let managed = Managed::new(&config);
        if managed.is_some() {
            port.permit(LinkState::Initialize, Instant::ZERO);
        }
        Ok(Nic {
            managed,
            rx_buffer: drain.map(|drain| RxBuffer::new(drain, config.link.buffer)),
            storm: roce.and_then(|roce| roce.storm),
            storm_priorities: 0,
            port,
            workload: Workload::new(&config),
            host: HostStack::new(&config),
            adapter: ChannelAdapter::new(config, scheme),
            link_packets: FramePool::default(),
            events: EventLog::default(),
            step: Step::default(),
            has_unsent_arrivals: false,
        })
    }

    /// Applies every action of the workload up to `now`: messages posted, items stopped.
    fn catch_up(&mut self, now: Instant) {
        while let Some(started) = self.adapter.poll_started() {
            if let Some(request) = self.workload.on_started(&started) {
                self.adapter.post(&request);
            }
        }
        while let Some(progress) = self.adapter.poll_progress() {
            self.workload.on_progress(&progress, now);
        }
        while let Some(action) = self.workload.poll_action(now) {
            match action {
                WorkloadAction::Post(request) => self.adapter.post(&request),
                WorkloadAction::Stop { item, at } => self.adapter.withdraw(item, at),
            }
        }
    }

    /// Hands a frame that passed the port's checks to the adapter, or to the receive buffer of a slow host.
    fn accept(&mut self, frame: Frame, headers: FrameHeaders, arrived: Instant, now: Instant) {
        let Some(drain) = &mut self.rx_buffer else {
            self.deliver(frame, &headers, arrived, now);
            return;
        };
        let lane = headers.lane;
        match drain.admit(frame, headers, arrived) {
            Ok(()) => self.port.note_input(lane, drain.held(lane), now),
            Err(frame) => {
                let size = headers.size;
                self.port.count_drop(DropReason::ReceiveBuffer, size, lane, now, &mut self.events);
                self.adapter.recycle(frame);
            }
        }
    }

    /// Delivers a frame, then the held requests that it released.
    fn deliver(&mut self, frame: Frame, headers: &FrameHeaders, arrived: Instant, now: Instant) {
        self.hand_over(frame, headers, arrived, now);
        self.deliver_released(now);
    }

    /// Delivers the requests that the reorder buffer has released, with `now` as their arrival.
    fn deliver_released(&mut self, now: Instant) {
        while let Some(HeldRequest { frame, headers }) = self.adapter.poll_released_request() {
            self.hand_over(frame, &headers, now, now);
        }
    }

    /// Delivers one frame to the adapter. On InfiniBand this frees its input buffer as of `arrived`.
    #[inline]
    fn hand_over(
        &mut self,
        mut frame: Frame,
        headers: &FrameHeaders,
        arrived: Instant,
        now: Instant,
    ) {
        if self.managed.is_some() && Managed::claims(headers) {
            self.port.release(headers.lane, headers.size, arrived);
            return self.manage(frame, headers, now);
        }
        let for_host = match &mut self.host {
            Some(host) if HostStack::claims(headers) => {
                frame.materialise();
                host.receive(&frame, headers, now)
            }
            _ => None,
        };
        let received = ReceivedFrame { frame: &frame, headers, arrived };
        let outcome = for_host.unwrap_or_else(|| self.adapter.receive(&received, now));
        let (lane, size) = (headers.lane, headers.size);
        self.port.release(lane, size, arrived);
        if let Err(reason) = outcome {
            self.port.count_drop(reason, size, lane, now, &mut self.events);
            if reason == DropReason::PartitionKey {
                self.note_bad_partition(&frame, now);
            }
        }
        self.adapter.recycle(frame);
    }

    /// Whether this NIC may send PAUSE: the host is slow, or a storm is due.
    fn may_send_pause(&self) -> bool {
        self.rx_buffer.is_some() || self.storm.is_some()
    }

    /// Delivers the frames that the slow host has drained by `now`.
    fn drain_rx_buffer(&mut self, now: Instant) {
        while let Some(waiting) = self.rx_buffer.as_mut().and_then(|drain| drain.poll(now)) {
            self.deliver(waiting.frame, &waiting.headers, waiting.drained_at, now);
            let lane = waiting.headers.lane;
            let held = self.rx_buffer.as_ref().map_or(Bytes::ZERO, |drain| drain.held(lane));
            self.port.note_input(lane, held, waiting.drained_at);
        }
    }

    /// Sets the priorities that the port asks its peer to pause, bit n for priority n.
    fn update_pause(&mut self, now: Instant) {
        if let Some(storm) = self.storm.take_if(|storm| storm.start <= now) {
            self.storm_priorities = storm.priorities;
        }
        let paused = self.rx_buffer.as_ref().map_or(0, |buffer| buffer.paused);
        self.port.demand(self.storm_priorities | paused, now);
    }

    /// Posts the workload's messages up to `now`, so that a reading includes them.
    fn advance_to(&mut self, now: Instant) {
        self.step = Step::at(now);
        self.catch_up(now);
        self.has_unsent_arrivals = true;
    }

    fn data_lanes(&self) -> impl Iterator<Item = VirtualLane> + use<> {
        (0..self.port.data_lanes()).map(VirtualLane::truncate)
    }

    /// [`Device::poll_transmit`] without a host.
    fn poll_transmit_alone(&mut self) -> Option<Departure> {
        let (adapter, pool) = (&mut self.adapter, &mut self.link_packets);
        match self.port.poll_transmit(adapter, pool, self.step, &mut self.events)? {
            Transmission::Control(departure) => Some(departure),
            Transmission::Granted(grant) => Some(self.adapter.transmit(grant)),
        }
    }
}

impl Device for Nic {
    fn handle_frame(&mut self, _: PortNumber, frame: Frame, arrived: Instant, now: Instant) {
        self.step = Step::late(arrived, now);
        if self.may_send_pause() {
            self.drain_rx_buffer(now);
        }
        match self.port.receive(&frame, arrived, now, &mut self.events) {
            Arrival::Packet(headers) => self.accept(frame, headers, arrived, now),
            // This NIC never sends PAUSE, so the buffer is reused for data.
            Arrival::Control if frame.kind == FrameKind::Ethernet && !self.may_send_pause() => {
                self.adapter.recycle(frame);
            }
            Arrival::Control => self.link_packets.recycle(frame),
            Arrival::Lost(_) if frame.kind == FrameKind::InfinibandLink => {
                self.link_packets.recycle(frame);
            }
            Arrival::Lost(_) => self.adapter.recycle(frame),
        }
        if self.may_send_pause() {
            self.update_pause(now);
        }
        if self.managed.is_some() {
            self.observe(now);
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.step = Step::at(now);
        self.port.handle_timeout(now, &mut self.events);
        if self.may_send_pause() {
            self.drain_rx_buffer(now);
            self.update_pause(now);
        }
        self.adapter.handle_timeout(now);
        if let Some(host) = &mut self.host {
            host.handle_timeout(now);
        }
        if self.managed.is_some() {
            self.observe(now);
        }
        self.deliver_released(now);
    }

    fn poll_transmit(&mut self, now: Instant) -> Option<Departure> {
        self.step = self.step.resume(now);
        if self.port.line_free_at() > now {
            return None;
        }
        self.catch_up(now);
        self.has_unsent_arrivals = false;
        let departure = match (&self.host, &self.managed) {
            (Some(_), _) => self.poll_transmit_with_host(now),
            (None, Some(_)) => self.poll_transmit_managed(now),
            (None, None) => self.poll_transmit_alone(),
        }?;
        self.port.note_sent(&departure.frame);
        Some(departure)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let mut next = self.port.poll_timeout().min(self.adapter.poll_timeout());
        let host = self.host.as_ref();
        next = next.min(host.map_or(Instant::NEVER, |host| host.poll_timeout()));
        if self.may_send_pause() {
            let through = self.rx_buffer.as_ref().map_or(Instant::NEVER, RxBuffer::poll_timeout);
            next = next.min(through).min(self.storm.map_or(Instant::NEVER, |storm| storm.start));
        }
        let line_free = self.port.line_free_at();
        let now = self.step.now;
        let line_is_busy = line_free > now;
        let managed = self.managed.as_ref();
        next = next.min(managed.map_or(Instant::NEVER, |it| it.poll_timeout()));
        let beside =
            host.is_some_and(|host| host.is_ready()) || managed.is_some_and(|it| it.is_ready());
        let news = self.adapter.has_news() || beside;
        if line_is_busy && (self.port.control_is_due(now) || news) {
            next = next.min(line_free);
        }
        // Path records move queue pairs to other lanes than those of the workload.
        let of_any = managed.map(|_| self.workload.next_action());
        for lane in self.data_lanes() {
            // A ready lane waits for the busy line or for credit. An arrival does not help it, because it goes behind
            // the messages that wait. A permission may, or a stop that withdraws the first message: the frame that is
            // then first may be short enough for the credit that is left. A lane that is not ready waits for either, but
            // not before the line is free.
            let permission = self.adapter.next_permission(lane);
            if !self.adapter.is_ready(lane) {
                let action = of_any.unwrap_or_else(|| self.workload.next_action_at(lane));
                next = next.min(action.min(permission).max(line_free));
            } else if line_is_busy || self.has_unsent_arrivals {
                next = next.min(line_free.max(now));
            } else if self.port.may_transmit(lane, Bytes::new(1)) {
                next = next.min(permission.max(now)).min(self.workload.next_stop(now));
            }
        }
        (next < Instant::NEVER).then_some(next)
    }

    fn poll_event(&mut self) -> Option<DeviceEvent> {
        self.events.pop().or_else(|| self.adapter.poll_event())
    }

    fn ports(&self) -> usize {
        1
    }

    fn link(&self, port: PortNumber) -> Option<&LinkConfig> {
        (port.index() == 0).then_some(self.adapter.link())
    }
}

impl Instrumented for Nic {
    fn read(&mut self, now: Instant, reading: &mut DeviceReading) {
        self.read_to(Depth::All, now, reading);
    }

    fn read_to(&mut self, depth: Depth, now: Instant, reading: &mut DeviceReading) {
        self.read_ports(now, reading);
        if depth == Depth::Ports {
            return;
        }
        self.adapter.read_flows(depth, now, reading);
        self.port.read_named(now, &mut reading.ports[0].named);
        self.adapter.read_named(&mut reading.ports[0].named);
        if let Some(host) = &self.host {
            host.read_named(&mut reading.ports[0].named);
        }
        self.adapter.read_received(reading);
    }

    fn read_ports(&mut self, now: Instant, reading: &mut DeviceReading) {
        self.advance_to(now);
        reading.ports.resize_with(1, Default::default);
        let port = &mut reading.ports[0];
        self.port.read(now, port);
        self.adapter.read_lanes(now, &mut port.lanes);
        let draining = self.rx_buffer.as_ref().map_or(0, RxBuffer::frames);
        let mut balance = self.adapter.balance();
        if let Some(host) = &self.host {
            balance.delivered += host.delivered;
            balance.injected += host.injected;
        }
        let mut waiting = 0;
        if let Some(managed) = &self.managed {
            balance.delivered += managed.delivered;
            balance.injected += managed.injected;
            waiting = managed.buffered();
        }
        let (link_local, buffered) =
            (self.port.link_local_sent(), draining + waiting + balance.buffered);
        reading.balance = Balance { link_local, buffered, ..balance };
    }

    fn read_bin(&mut self, now: Instant, reading: &mut BinReading) {
        self.advance_to(now);
        reading.ports.resize_with(1, Default::default);
        let port = &mut reading.ports[0];
        self.port.read_bin(now, port);
        self.adapter.read_lanes(now, &mut port.lanes);
        self.adapter.read_bin(now, reading);
    }

    fn begin_bin(&mut self, now: Instant) {
        self.port.restart_watermarks();
        self.adapter.begin_bin(now);
    }
}

impl Control for Nic {
    fn let_post(&mut self, item: Option<&str>, on: bool, now: Instant) -> bool {
        self.advance_to(now);
        for item in self.workload.let_post(item, on, now) {
            if !on {
                self.adapter.withdraw(item, now);
            }
        }
        self.workload.has(item)
    }

    fn answer(&mut self, line: &str, now: Instant) -> Option<String> {
        self.advance_to(now);
        // An empty line has an empty answer.
        self.host.as_mut().map(|host| host.answer(line, now).unwrap_or_default())
    }

    fn send_management(&mut self, datagram: ManagementDatagram, now: Instant) -> bool {
        self.send_for_client(datagram, now)
    }

    fn poll_management(&mut self) -> Option<ManagementDatagram> {
        self.managed.as_mut()?.endpoint.poll_client()
    }

    fn claim_manager(&mut self, on: bool, now: Instant) -> bool {
        let Some(managed) = &mut self.managed else { return false };
        let changes = managed.endpoint.agents.has_manager() != on;
        managed.endpoint.agents.set_manager(on, now);
        changes
    }

    fn begin(&mut self, now: Instant) {
        self.workload.skip_to(now);
    }

    fn reset_peer(&mut self, adapter: Lid, now: Instant) {
        self.advance_to(now);
        self.adapter.reset_peer(adapter, now);
    }

    fn set_link(&mut self, _: PortNumber, is_up: bool, now: Instant) {
        self.advance_to(now);
        self.port.set_link(is_up, now, &mut self.events);
        self.observe(now);
    }

    fn slow_down(&mut self, port: PortNumber, rate: BitRate) -> bool {
        port.index() == 0 && self.port.slow_down(rate)
    }
}

mod managed;
mod sources;

#[cfg(test)]
pub(crate) mod tests;
