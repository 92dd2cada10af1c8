//! Reception on Ethernet: MAC control frames change the pause state; other frames pass the header and
//! length checks.
//!
//! Frames carry no FCS here: [`Integrity`] is the result of the receiving MAC's check. The port's owner decides
//! about buffer space. Source: IEEE 802.3, 31.5, 31B.3.3 and 31D.3.3 (MAC control); IEEE 802.1Q,
//! 36.1.3.2 (PFC receiver).

use super::{Arrival, Loss};
use crate::counters::DropReason;
use crate::events::EventLog;
use crate::frame::{Frame, Integrity};
use crate::ids::{MacAddress, VirtualLane};
use crate::link::flow_control::PauseControl;
use crate::link::port::state::PortState;
use crate::units::Instant;
use crate::wire::classify::classify_ethernet_by;
use crate::wire::ethernet::{EthernetHeader, MacControl};

/// Octets that a frame may have beyond the MTU: two VLAN tags, a rate-regulated tag, IPv6, UDP, BTH, the
/// longest extended headers, ICRC and FCS.
const HEADERS_MAX: u64 = 22 + 16 + 40 + 8 + 12 + 28 + 4 + 4;

/// An Ethernet frame arrived.
pub(super) fn receive(
    pause: &mut PauseControl,
    state: &mut PortState,
    frame: &Frame,
    arrived: Instant,
    log: &mut EventLog,
) -> Result<Arrival, Loss> {
    let is_control = MacControl::is_announced(&frame.octets);
    if pause.outages.is_down() {
        // The neighbour counted its pause as a frame of this link, so it must not end as a frame of the fabric.
        let reason =
            if is_control { DropReason::MacControlLinkState } else { DropReason::LinkState };
        return Err((reason, VirtualLane::ZERO));
    }
    if is_control {
        return receive_mac_control(pause, state, frame, arrived, log);
    }
    if frame.integrity == Integrity::Aborted {
        return Err((DropReason::Aborted, VirtualLane::ZERO));
    }
    let (octets, length) = (&frame.octets[..], frame.octets_len());
    let headers = classify_ethernet_by(octets, length, &pause.priorities, &pause.project)
        .map_err(|error| (error.drop_reason(), VirtualLane::ZERO))?;
    if headers.payload > state.mtu || headers.size.get() > state.mtu.get() + HEADERS_MAX {
        return Err((DropReason::Mtu, headers.lane));
    }
    state.count_received(&headers);
    Ok(Arrival::Packet(headers))
}

/// Applies a MAC control frame if the link uses its kind. The source address does not matter.
fn receive_mac_control(
    pause: &mut PauseControl,
    state: &mut PortState,
    frame: &Frame,
    arrived: Instant,
    log: &mut EventLog,
) -> Result<Arrival, Loss> {
    let control =
        mac_control(frame, pause.flow.address).map_err(|reason| (reason, VirtualLane::ZERO))?;
    let (enabled, reserved, change) = match &control {
        MacControl::Pause(frame) => (1, 0, pause.flow.on_pause(*frame, arrived)),
        MacControl::Pfc(pfc) => (pfc.enabled, pfc.reserved, pause.flow.on_pfc(pfc, arrived)),
        MacControl::Unknown(_) => return Err((DropReason::MacControlOpcode, VirtualLane::ZERO)),
    };
    // One frame counts on one priority: the lowest of those it enables.
    let lowest = enabled.trailing_zeros() as usize % state.lanes.len();
    state.lanes[lowest].counters.ctl_rx += 1;
    if reserved != 0 {
        let reason = DropReason::PfcVector;
        state.count_drop(reason, frame.line_size(), VirtualLane::ZERO, arrived, log);
    }
    state.apply_received(change, arrived, log);
    Ok(Arrival::Control)
}

/// The MAC control frame for the port with this `address`, or the reason to discard it.
fn mac_control(frame: &Frame, address: MacAddress) -> Result<MacControl, DropReason> {
    if frame.integrity == Integrity::Aborted {
        return Err(DropReason::MacControlAborted);
    }
    if frame.octets.len() < MacControl::FRAME_LEN {
        return Err(DropReason::MacControlLength);
    }
    let header = EthernetHeader::parse(&frame.octets).map_err(|error| error.drop_reason())?;
    if ![MacAddress::MAC_CONTROL, address].contains(&header.destination) {
        return Err(DropReason::MacControlAddress);
    }
    MacControl::parse(&frame.octets).map_err(|error| error.drop_reason())
}
