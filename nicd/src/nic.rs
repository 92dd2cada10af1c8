//! A NIC: one port, the channel adapter behind it, and the workload that feeds it.
//!
//! This file composes them and answers the driver. Frames are chosen and made by the adapter when
//! the port has room for one; arrivals of the workload are made up for just before that.

use crate::config::NicConfig;
use crate::config::check::ConfigError;
use crate::transport::ChannelAdapter;
use crate::workload::{Act, Workload};
use proto::counters::{DeviceReading, PortReading};
use proto::device::{Departure, Device};
use proto::events::{DeviceEvent, EventLog};
use proto::frame::{Frame, FrameKind, FramePool};
use proto::ids::{PortNumber, VirtualLane};
use proto::link::port::{Arrival, LinkPort};
use proto::units::Instant;

/// One NIC with one port.
pub struct Nic {
    port: LinkPort,
    adapter: ChannelAdapter,
    workload: Workload,
    link_packets: FramePool,
    events: EventLog,
    /// The latest instant heard of.
    now: Instant,
    /// A reading has taken arrivals in that nobody has yet asked to send.
    looked_ahead: bool,
}

impl Nic {
    /// A NIC at the beginning of the run.
    ///
    /// # Errors
    /// If no NIC can be made of `config`.
    pub fn new(config: NicConfig) -> Result<Nic, ConfigError> {
        let scheme = config.check()?;
        Ok(Nic {
            port: LinkPort::new(PortNumber::from_index(0), &config.link, Instant::ZERO),
            workload: Workload::new(&config),
            adapter: ChannelAdapter::new(config, scheme),
            link_packets: FramePool::default(),
            events: EventLog::default(),
            now: Instant::ZERO,
            looked_ahead: false,
        })
    }

    /// Posts and takes back whatever the workload has done up to `now`.
    fn catch_up(&mut self, now: Instant) {
        while let Some(started) = self.adapter.poll_started() {
            if let Some(posting) = self.workload.on_started(started.item, started.to, started.at) {
                self.adapter.post(&posting);
            }
        }
        while let Some(act) = self.workload.poll_act(now) {
            match act {
                Act::Post(posting) => self.adapter.post(&posting),
                Act::Stop { item, at } => self.adapter.withdraw(item, at),
            }
        }
    }

    fn data_lanes(&self) -> impl Iterator<Item = VirtualLane> + use<> {
        (0..self.port.data_lanes()).map(VirtualLane::truncate)
    }
}

impl Device for Nic {
    fn handle_frame(&mut self, _: PortNumber, frame: Frame, arrived: Instant, now: Instant) {
        self.now = now;
        if let Arrival::Packet(headers) = self.port.receive(&frame, arrived, now, &mut self.events)
        {
            let outcome = self.adapter.receive(&frame, &headers, arrived, now);
            let lane = VirtualLane::truncate(headers.lane);
            self.port.release(lane, headers.size, arrived);
            if let Err(reason) = outcome {
                let size = headers.size;
                self.port.count_drop(reason, size, headers.lane, now, &mut self.events);
            }
        }
        match frame.kind {
            FrameKind::InfinibandLink => self.link_packets.recycle(frame),
            FrameKind::Infiniband | FrameKind::Ethernet => self.adapter.recycle(frame),
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.now = now;
        self.port.handle_timeout(now, &mut self.events);
        self.adapter.handle_timeout(now);
    }

    fn poll_transmit(&mut self, now: Instant) -> Option<Departure> {
        self.now = now;
        if self.port.line_free_at() > now {
            return None;
        }
        self.catch_up(now);
        self.looked_ahead = false;
        let (adapter, pool) = (&mut self.adapter, &mut self.link_packets);
        self.port.poll_transmit(adapter, pool, now, &mut self.events)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let mut next = self.port.poll_timeout().min(self.adapter.poll_timeout());
        let line_free = self.port.line_free_at();
        let line_is_busy = line_free > self.now;
        if line_is_busy && (self.port.control_is_due(self.now) || self.adapter.has_started()) {
            next = next.min(line_free);
        }
        for lane in self.data_lanes() {
            // With something ready, a lane waits for the busy line, or else for credit, which no
            // arrival and no permission can bring. With nothing ready it waits for those, but
            // while the line is busy nobody need hear of them.
            if !self.adapter.is_ready(lane) {
                let due = self.workload.next_act(lane).min(self.adapter.next_permission(lane));
                next = next.min(due.max(line_free));
            } else if line_is_busy || self.looked_ahead {
                next = next.min(line_free.max(self.now));
            }
        }
        (next < Instant::NEVER).then_some(next)
    }

    fn poll_event(&mut self) -> Option<DeviceEvent> {
        self.events.pop().or_else(|| self.adapter.poll_event())
    }

    fn read(&mut self, now: Instant, reading: &mut DeviceReading) {
        self.read_bins(now, reading);
        self.adapter.read_received(reading);
    }

    fn read_bins(&mut self, now: Instant, reading: &mut DeviceReading) {
        self.now = now;
        self.catch_up(now);
        self.looked_ahead = true;
        reading.ports.resize_with(1, PortReading::default);
        self.port.read(now, &mut reading.ports[0]);
        self.adapter.read_bins(now, reading);
        reading.balance.link_local = self.port.link_local_sent();
    }

    fn restart_watermarks(&mut self) {
        self.port.restart_watermarks();
        self.adapter.restart_watermarks();
    }

    fn ports(&self) -> usize {
        1
    }
}

#[cfg(test)]
pub(crate) mod tests;
