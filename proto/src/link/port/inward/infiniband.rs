//! The way in of InfiniBand: link CRC, lane, length and MTU, and the buffer a packet takes.
//!
//! A frame is classified, its link CRC verified (unless it cannot have changed), its lane, length and
//! MTU checked. Source: IBTA Vol 1, 7.3 (packet receiver states), 7.6.9, 7.9.4.

use super::{Arrival, Loss};
use crate::counters::DropReason;
use crate::frame::{Frame, Integrity};
use crate::ids::VirtualLane;
use crate::link::credit::{ControlOutcome, LinkState};
use crate::link::flow::{Credits, Flow};
use crate::link::port::LinkPort;
use crate::units::{Bytes, Instant};
use crate::wire::classify::classify;
use crate::wire::infiniband::crc::verify_vcrc;
use crate::wire::infiniband::envelope;
use crate::wire::infiniband::flow_control_packet::FlowControlPacket;

/// LRH, GRH, BTH, the longest extended headers, ICRC and VCRC around a payload: what a packet may
/// have beyond its MTU. Source: IBTA Vol 1, 7.7.5 (MTU plus 126 octets).
const HEADERS_MAX: u64 = 126;

impl LinkPort {
    /// A link packet.
    pub(super) fn receive_control(
        &mut self,
        frame: &Frame,
        arrived: Instant,
    ) -> Result<Arrival, Loss> {
        let Flow::Credits(credits) = &mut self.flow else {
            unreachable!("link packets are for ports with credits")
        };
        if frame.integrity == Integrity::Aborted {
            return Err((DropReason::LinkPacket, 0));
        }
        let packet =
            FlowControlPacket::parse(&frame.octets).map_err(|error| (error.drop_reason(), 0))?;
        if credits.flow.on_control(&packet, arrived) == ControlOutcome::Discarded {
            return Err((DropReason::LinkPacket, packet.virtual_lane.get()));
        }
        self.lanes[packet.virtual_lane.index()].counters.ctl_rx += 1;
        Ok(Arrival::Control)
    }

    /// A data packet.
    pub(super) fn receive_packet(&mut self, frame: &Frame, now: Instant) -> Result<Arrival, Loss> {
        if frame.integrity == Integrity::Aborted {
            return Err((DropReason::Aborted, 0));
        }
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
            self.counters_mut(VirtualLane::MANAGEMENT).ctl_rx += 1;
            return Ok(Arrival::Packet(headers));
        }
        let Flow::Credits(Credits { flow, .. }) = &mut self.flow else {
            unreachable!("packets with an LRH are for ports with credits")
        };
        if flow.state() == LinkState::Initialize {
            return Err((DropReason::LinkState, tc));
        }
        if !flow.admit(lane, headers.size, now) {
            return Err((DropReason::BufferOverrun, tc));
        }
        self.lanes[lane.index()].in_queue.set(flow.in_use(lane).get(), now);
        self.count_received(lane, &headers);
        Ok(Arrival::Packet(headers))
    }

    /// A packet admitted from `lane` left the input buffer at `at`. Where the owner keeps that buffer
    /// nothing happens here.
    pub fn release(&mut self, lane: VirtualLane, size: Bytes, at: Instant) {
        let Flow::Credits(Credits { flow, .. }) = &mut self.flow else { return };
        if lane == VirtualLane::MANAGEMENT {
            return;
        }
        flow.release(lane, size, at);
        self.lanes[lane.index()].in_queue.set(flow.in_use(lane).get(), at);
    }
}
