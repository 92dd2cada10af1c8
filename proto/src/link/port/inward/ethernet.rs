//! The way in of Ethernet: MAC control is obeyed, everything else checked for headers and length.
//!
//! Frames have no FCS here: whether one came whole is for the cable to say ([`Integrity`]). Whoever
//! owns the port decides whether there is room. Source: IEEE 802.3, 31.5, 31B.3.3 and 31D.3.3 (MAC
//! control); IEEE 802.1Q, 36.1.3.2 (PFC receiver).

use super::{Arrival, Loss};
use crate::counters::DropReason;
use crate::events::EventLog;
use crate::frame::{Frame, Integrity};
use crate::ids::VirtualLane;
use crate::link::flow::Flow;
use crate::link::port::LinkPort;
use crate::units::Instant;
use crate::wire::classify::classify_ethernet_by;
use crate::wire::ethernet::{EthernetHeader, MacAddress, MacControl};

/// Two VLAN tags, a rate-regulated tag, IPv6, UDP, BTH, the longest extended headers, ICRC and FCS
/// around a payload: what a frame may have beyond its MTU.
const HEADERS_MAX: u64 = 22 + 16 + 40 + 8 + 12 + 28 + 4 + 4;

impl LinkPort {
    /// A frame of Ethernet.
    pub(super) fn receive_frame(
        &mut self,
        frame: &Frame,
        arrived: Instant,
        log: &mut EventLog,
    ) -> Result<Arrival, Loss> {
        let Flow::Pause(pauses) = &self.flow else {
            unreachable!("frames of Ethernet are for ports with pause")
        };
        if pauses.outages.is_down() {
            return Err((DropReason::LinkState, 0));
        }
        if MacControl::is_announced(&frame.octets) {
            return self.receive_mac_control(frame, arrived, log);
        }
        if frame.integrity == Integrity::Aborted {
            return Err((DropReason::Aborted, 0));
        }
        let headers = classify_ethernet_by(&frame.octets, &pauses.priorities, &pauses.project)
            .map_err(|error| (error.drop_reason(), 0))?;
        if headers.payload > self.mtu || headers.size.get() > self.mtu.get() + HEADERS_MAX {
            return Err((DropReason::Mtu, headers.lane));
        }
        self.count_received(VirtualLane::truncate(headers.lane), &headers);
        Ok(Arrival::Packet(headers))
    }

    /// Does what the frame asks for, if this link goes by it. Who sent it does not matter.
    fn receive_mac_control(
        &mut self,
        frame: &Frame,
        arrived: Instant,
        log: &mut EventLog,
    ) -> Result<Arrival, Loss> {
        let Flow::Pause(pauses) = &mut self.flow else {
            unreachable!("MAC control is for ports with pause")
        };
        let control = mac_control(frame, pauses.flow.address()).map_err(|reason| (reason, 0))?;
        let (spoken_of, above, changed) = match &control {
            MacControl::Pause(pause) => (1, 0, pauses.flow.on_pause(*pause, arrived)),
            MacControl::Pfc(pfc) => (pfc.enabled, pfc.reserved, pauses.flow.on_pfc(pfc, arrived)),
            MacControl::Unknown(_) => return Err((DropReason::MacControlOpcode, 0)),
        };
        // One frame counts on one priority: the lowest of those that it speaks of.
        let lowest = spoken_of.trailing_zeros() as usize % self.lanes.len();
        self.lanes[lowest].counters.ctl_rx += 1;
        if above != 0 {
            self.count_drop(DropReason::PfcVector, frame.line_size(), 0, arrived, log);
        }
        self.obey(changed, arrived, log);
        Ok(Arrival::Control)
    }
}

/// What a MAC control frame says to the port of this `address`, or why it says nothing.
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
