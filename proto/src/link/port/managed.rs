//! What management reads and changes at a port: its state, its arbitration, its traffic.

use super::LinkPort;
use crate::frame::{Frame, FrameHeaders, FrameKind};
use crate::ids::VirtualLane;
use crate::link::config::{ArbitrationConfig, Selection};
use crate::link::credit::{LinkState, Observation};
use crate::link::flow_control::FlowControl;
use crate::units::{Bytes, Instant};
use crate::wire::ethernet::Pfc;
use crate::wire::infiniband::LrhView;

/// Packets and their octets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacketCount {
    /// Packets of any lane; no link packets.
    pub packets: u64,
    /// Their octets, LRH to VCRC.
    pub octets: u64,
}

impl PacketCount {
    pub(super) fn count(&mut self, size: Bytes) {
        self.packets += 1;
        self.octets += size.get();
    }
}

/// The packets of one port on all lanes, as performance management counts them. Source: IBTA Vol 1, 16.1.3.5.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Sent.
    pub sent: PacketCount,
    /// Received, and good.
    pub received: PacketCount,
    /// Received with FECN.
    pub fecn: u64,
    /// Received with BECN.
    pub becn: u64,
}

impl Traffic {
    pub(super) fn receive(&mut self, headers: &FrameHeaders) {
        self.received.count(headers.size);
        self.fecn += u64::from(headers.fecn);
        self.becn += u64::from(headers.becn);
    }
}

/// The packets of one service level, without VL15.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LevelTraffic {
    /// Sent.
    pub sent: PacketCount,
    /// Received, and good.
    pub received: PacketCount,
    /// Received with FECN.
    pub fecn: u64,
    /// Received with BECN.
    pub becn: u64,
}

/// What a managed port counts beside its [`Traffic`]. Source: IBTA Vol 1, 16.1.4, and annex A10.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrafficDetail {
    /// By service level.
    pub levels: [LevelTraffic; 16],
    /// Multicast packets sent.
    pub multicast_sent: u64,
    /// Multicast packets received.
    pub multicast_received: u64,
    /// Link packets received.
    pub link_received: u64,
}

impl TrafficDetail {
    pub(super) fn receive(&mut self, headers: &FrameHeaders) {
        self.multicast_received += u64::from(headers.multicast);
        if headers.lane != VirtualLane::MANAGEMENT {
            let level = &mut self.levels[headers.level.index()];
            level.received.count(headers.size);
            level.fecn += u64::from(headers.fecn);
            level.becn += u64::from(headers.becn);
        }
    }

    fn send(&mut self, lrh: &LrhView<&[u8]>, size: Bytes) {
        self.multicast_sent += u64::from(lrh.dlid().is_multicast());
        if lrh.virtual_lane() != VirtualLane::MANAGEMENT {
            self.levels[lrh.service_level().index()].sent.count(size);
        }
    }
}

impl LinkPort {
    /// Permits the link to advance to `ceiling` and no further, as a subnet manager sets it. No effect on Ethernet.
    pub fn permit(&mut self, ceiling: LinkState, now: Instant) {
        if let FlowControl::Credit(credit) = &mut self.flow {
            credit.flow.permit(ceiling, now);
            self.state.detail.get_or_insert_default();
        }
    }

    /// A managed port sends `frame`, which its owner has made for a grant.
    pub fn note_sent(&mut self, frame: &Frame) {
        if frame.kind == FrameKind::Infiniband
            && let Some(detail) = &mut self.state.detail
            && let Ok(lrh) = LrhView::new(&frame.octets[..])
        {
            detail.send(&lrh, frame.line_size());
        }
    }

    /// What a managed port counts beside [`LinkPort::traffic`].
    pub fn detail(&self) -> Option<&TrafficDetail> {
        self.state.detail.as_deref()
    }

    /// What the link does; `None` unless [`LinkPort::permit`] was called.
    pub fn observe(&self) -> Option<Observation> {
        match &self.flow {
            FlowControl::Credit(credit) => credit.flow.observe(),
            FlowControl::Pause(_) => None,
        }
    }

    /// Arbitrates by other tables from the next packet on. No effect on Ethernet.
    pub fn arbitrate(&mut self, tables: &ArbitrationConfig) {
        if let FlowControl::Credit(credit) = &mut self.flow {
            credit.arbitrate(tables);
        }
    }

    /// Selects traffic classes otherwise from the next frame on. No effect on InfiniBand.
    pub fn select(&mut self, selection: &[Selection; Pfc::PRIORITIES]) {
        if let FlowControl::Pause(pause) = &mut self.flow {
            pause.select(selection);
        }
    }

    /// The packets of this port.
    pub fn traffic(&self) -> &Traffic {
        &self.state.traffic
    }
}
