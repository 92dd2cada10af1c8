//! The way in of Ethernet: MAC control is obeyed, everything else checked for headers and length.
//!
//! What a frame has no FCS for here is its integrity: the cable says whether it came whole.
//! Source: IEEE 802.3, 31.5, 31B.3.3 and 31D.3.3 (MAC control); IEEE 802.1Q, 6.7 and 36.2 (who may
//! be paused by what).

use super::{Arrival, Loss};
use crate::counters::DropReason;
use crate::events::{Direction, EventKind, EventLog};
use crate::frame::{Frame, Integrity};
use crate::ids::VirtualLane;
use crate::link::flow::Flow;
use crate::link::pause::Obeyed;
use crate::link::port::LinkPort;
use crate::units::{Bytes, Instant};
use crate::wire::classify::classify_ethernet;
use crate::wire::ethernet::{EthernetHeader, MacAddress, MacControl, Pause, Pfc};

/// Two tags, IPv6, UDP, BTH, the longest extended headers, ICRC and FCS around a payload: what a
/// frame may have beyond its MTU.
const HEADERS_MAX: u64 = 22 + 40 + 8 + 12 + 28 + 4 + 4;

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
        if MacControl::is_announced(&frame.octets) {
            let control = control_of(frame, pauses.flow.address()).map_err(|reason| (reason, 0))?;
            return Ok(self.receive_mac_control(control, arrived, log));
        }
        if frame.integrity == Integrity::Aborted {
            return Err((DropReason::Aborted, 0));
        }
        let headers = classify_ethernet(&frame.octets, &pauses.priorities)
            .map_err(|error| (error.drop_reason(), 0))?;
        if headers.payload > self.mtu || headers.size.get() > self.mtu.get() + HEADERS_MAX {
            return Err((DropReason::Mtu, headers.lane));
        }
        self.count_received(VirtualLane::truncate(headers.lane), &headers);
        Ok(Arrival::Packet(headers))
    }

    /// Does what the frame asks for, if this link goes by it; whatever it is, it ends here.
    fn receive_mac_control(
        &mut self,
        control: Control,
        arrived: Instant,
        log: &mut EventLog,
    ) -> Arrival {
        let Flow::Pause(pauses) = &mut self.flow else { return Arrival::Control };
        let (lowest, obeyed) = match control {
            Control::Pause(pause) => (0, pauses.flow.on_pause(pause, arrived)),
            Control::Pfc(pfc) => {
                (pfc.enabled.trailing_zeros() as usize % 8, pauses.flow.on_pfc(&pfc, arrived))
            }
        };
        self.lanes[lowest].counters.ctl_rx += 1;
        let Obeyed { silenced, time, freed } = obeyed;
        let (fill, dir) = (Bytes::ZERO, Direction::Rx);
        let kind = EventKind::Xoff { priorities: silenced, quanta: time, fill, dir };
        self.log_pause(arrived, silenced, kind, log);
        let kind = EventKind::Xon { priorities: freed, fill, dir };
        self.log_pause(arrived, freed, kind, log);
        self.speak(freed, arrived, log);
        Arrival::Control
    }
}

/// A MAC control frame that a port of Ethernet understands.
enum Control {
    Pause(Pause),
    Pfc(Pfc),
}

/// What the frame, which is MAC control, asks of the port that has this `address`; or why it asks
/// nothing. Who sent it does not matter.
fn control_of(frame: &Frame, address: MacAddress) -> Result<Control, DropReason> {
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
    match MacControl::parse(&frame.octets).map_err(|error| error.drop_reason())? {
        MacControl::Pause(pause) => Ok(Control::Pause(pause)),
        MacControl::Pfc(pfc) => Ok(Control::Pfc(pfc)),
        MacControl::Unknown(_) => Err(DropReason::MacControlOpcode),
    }
}
