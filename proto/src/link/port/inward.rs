//! The way in: what a port checks of a frame, what it counts, and the buffer it takes for it.
//!
//! A frame is classified, its link CRC verified (unless it cannot have changed), its lane, length and
//! MTU checked, in the order that decides which counter names a frame with two faults.
//! Source: IBTA Vol 1, 7.3 (packet receiver states), 7.6.9, 7.9.4.

use super::LinkPort;
use crate::counters::DropReason;
use crate::events::EventLog;
use crate::frame::{Frame, FrameClass, FrameHeaders, FrameKind, Integrity};
use crate::ids::VirtualLane;
use crate::link::credit::{ControlOutcome, LinkState};
use crate::units::{Bytes, Instant};
use crate::wire::classify::classify;
use crate::wire::infiniband::crc::verify_vcrc;
use crate::wire::infiniband::envelope;
use crate::wire::infiniband::flow_control_packet::FlowControlPacket;

/// LRH, GRH, BTH, the longest extended headers, ICRC and VCRC around a payload: what a packet may
/// have beyond its MTU. Source: IBTA Vol 1, 7.7.5 (MTU plus 126 octets).
const HEADERS_MAX: u64 = 126;

/// What became of a frame that reached a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// A link packet: it has done its work.
    Control,
    /// A good packet. On a data lane, buffer was taken for it: the owner owes a
    /// [`LinkPort::release`].
    Packet(FrameHeaders),
    /// It ended here and was counted.
    Lost(DropReason),
}

impl LinkPort {
    /// A frame's last bit reached the port at `arrived`.
    pub fn receive(
        &mut self,
        frame: &Frame,
        arrived: Instant,
        now: Instant,
        log: &mut EventLog,
    ) -> Arrival {
        let aborted = frame.integrity == Integrity::Aborted;
        let outcome = match frame.kind {
            FrameKind::InfinibandLink if aborted => Err((DropReason::LinkPacket, 0)),
            _ if aborted => Err((DropReason::Aborted, 0)),
            FrameKind::InfinibandLink => self.receive_control(frame, arrived),
            FrameKind::Infiniband => self.receive_packet(frame, now),
            FrameKind::Ethernet => Err((DropReason::Malformed, 0)),
        };
        match outcome {
            Ok(arrival) => arrival,
            Err((reason, tc)) => {
                self.count_drop(reason, frame.line_size(), tc, now, log);
                Arrival::Lost(reason)
            }
        }
    }

    fn receive_control(
        &mut self,
        frame: &Frame,
        arrived: Instant,
    ) -> Result<Arrival, (DropReason, u8)> {
        let packet =
            FlowControlPacket::parse(&frame.octets).map_err(|error| (error.drop_reason(), 0))?;
        if self.flow.on_control(&packet, arrived) == ControlOutcome::Discarded {
            return Err((DropReason::LinkPacket, packet.virtual_lane.get()));
        }
        self.lanes[packet.virtual_lane.index()].counters.ctl_rx += 1;
        Ok(Arrival::Control)
    }

    fn receive_packet(&mut self, frame: &Frame, now: Instant) -> Result<Arrival, (DropReason, u8)> {
        if envelope::is_below_minimum(&frame.octets) {
            return Err((DropReason::PacketLength, 0));
        }
        let headers =
            classify(frame.kind, &frame.octets).map_err(|error| (error.drop_reason(), 0))?;
        let tc = headers.lane;
        if frame.integrity == Integrity::Unchecked && verify_vcrc(&frame.octets).is_err() {
            return Err((DropReason::Vcrc, tc));
        }
        let lane = VirtualLane::truncate(headers.lane);
        // VL15 carries management datagrams and nothing raw (IBTA Vol 1, 7.6.3).
        if !self.is_operational(lane)
            || lane == VirtualLane::MANAGEMENT && envelope::is_raw(&frame.octets)
        {
            return Err((DropReason::Lane, tc));
        }
        if headers.payload > self.mtu || headers.size.get() > self.mtu.get() + HEADERS_MAX {
            return Err((DropReason::Mtu, tc));
        }
        if lane == VirtualLane::MANAGEMENT {
            self.management.ctl_rx += 1;
            return Ok(Arrival::Packet(headers));
        }
        if self.flow.state() == LinkState::Initialize {
            return Err((DropReason::LinkState, tc));
        }
        if !self.flow.admit(lane, headers.size, now) {
            return Err((DropReason::BufferOverrun, tc));
        }
        let in_use = self.flow.in_use(lane).get();
        let state = &mut self.lanes[lane.index()];
        state.in_queue.set(in_use, now);
        let counters = &mut state.counters;
        match headers.class {
            FrameClass::Data => {
                counters.rx_frames += 1;
                counters.rx_bytes += headers.size.get();
            }
            FrameClass::Ack | FrameClass::Notification | FrameClass::Management => {
                counters.ctl_rx += 1
            }
        }
        counters.notes_rx += u64::from(headers.becn);
        Ok(Arrival::Packet(headers))
    }

    /// A packet admitted from `lane` left the input buffer at `at`.
    pub fn release(&mut self, lane: VirtualLane, size: Bytes, at: Instant) {
        if lane == VirtualLane::MANAGEMENT {
            return;
        }
        self.flow.release(lane, size, at);
        let in_use = self.flow.in_use(lane).get();
        self.lanes[lane.index()].in_queue.set(in_use, at);
    }
}
