//! Reception on InfiniBand: link CRC, lane, length, MTU, and the input buffer that a packet occupies.
//!
//! The port classifies a packet, verifies its link CRC unless the octets cannot have changed, and then
//! checks lane, length and MTU. Source: IBTA Vol 1, 7.3 (packet receiver states), 7.6.9, 7.9.4.

use super::{Arrival, Loss};
use crate::counters::DropReason;
use crate::frame::{Frame, Integrity};
use crate::ids::VirtualLane;
use crate::link::credit::{ControlOutcome, LinkState};
use crate::link::flow_control::CreditControl;
use crate::link::port::state::PortState;
use crate::units::Instant;
use crate::wire::classify::classify_frame;
use crate::wire::infiniband::crc::verify_vcrc;
use crate::wire::infiniband::envelope;
use crate::wire::infiniband::flow_control_packet::FlowControlPacket;

/// Octets that a packet may have beyond the MTU: LRH, GRH, BTH, the longest extended headers, ICRC and
/// VCRC. Source: IBTA Vol 1, 7.7.5 (MTU plus 126 octets).
const HEADERS_MAX: u64 = 126;

/// A link packet arrived.
pub(super) fn receive_control(
    credit: &mut CreditControl,
    state: &mut PortState,
    frame: &Frame,
    arrived: Instant,
) -> Result<Arrival, Loss> {
    if frame.integrity == Integrity::Aborted {
        return Err((DropReason::LinkPacket, VirtualLane::ZERO));
    }
    let packet = FlowControlPacket::parse(&frame.octets)
        .map_err(|error| (error.drop_reason(), VirtualLane::ZERO))?;
    if credit.flow.on_control(&packet, arrived) == ControlOutcome::Discarded {
        return Err((DropReason::LinkPacket, packet.virtual_lane));
    }
    state.lanes[packet.virtual_lane.index()].counters.ctl_rx += 1;
    if let Some(detail) = &mut state.detail {
        detail.link_received += 1;
    }
    Ok(Arrival::Control)
}

/// A data or management packet arrived.
pub(super) fn receive_packet(
    credit: &mut CreditControl,
    state: &mut PortState,
    frame: &Frame,
    now: Instant,
) -> Result<Arrival, Loss> {
    if frame.integrity == Integrity::Aborted {
        return Err((DropReason::Aborted, VirtualLane::ZERO));
    }
    if envelope::is_below_minimum(&frame.octets) {
        return Err((DropReason::PacketLength, VirtualLane::ZERO));
    }
    let headers =
        classify_frame(frame).map_err(|error| (error.drop_reason(), VirtualLane::ZERO))?;
    let lane = headers.lane;
    if frame.is_unchecked() && verify_vcrc(&frame.octets).is_err() {
        return Err((DropReason::Vcrc, lane));
    }
    let is_management = lane == VirtualLane::MANAGEMENT;
    // VL15 carries management datagrams and no raw packets (IBTA Vol 1, 7.6.3).
    let is_legal = if is_management {
        !envelope::is_raw(&frame.octets)
    } else {
        lane.index() < state.lanes.len()
    };
    if !is_legal {
        return Err((DropReason::Lane, lane));
    }
    if headers.payload > state.mtu || headers.size.get() > state.mtu.get() + HEADERS_MAX {
        return Err((DropReason::Mtu, lane));
    }
    if credit.flow.is_disabled() {
        return Err((DropReason::LinkState, lane));
    }
    if is_management {
        state.counters_mut(lane).ctl_rx += 1;
        state.count_traffic(&headers);
        return Ok(Arrival::Packet(headers));
    }
    if credit.flow.state() == LinkState::Initialize {
        return Err((DropReason::LinkState, lane));
    }
    if !credit.flow.admit(lane, headers.size, now) {
        return Err((DropReason::BufferOverrun, lane));
    }
    state.lanes[lane.index()].in_queue.set(credit.flow.in_use(lane).get(), now);
    credit.flow.on_data(now);
    state.count_received(&headers);
    state.count_traffic(&headers);
    Ok(Arrival::Packet(headers))
}
