//! The RoCEv2 wire format: planned addresses, priorities by DSCP or PCP, ECT on data, ICRC.
//!
//! Data carries ECT(0). Acknowledgements and CNPs are not ECN-capable, because no sender reacts to a mark on
//! them. On a link that takes the priority from the PCP, every frame has a priority tag (VLAN ID 0) whose PCP
//! is the class selector of the DSCP. Source: IBTA Vol 1, annex A17; IEEE 802.1Q, 9.6.

use crate::config::{NicConfig, RoceConfig, RoceVersion};
use crate::wire::packet::{FrameContent, OutgoingPacket, Parsed, ReceivedPacket};
use proto::counters::DropReason;
use proto::frame::{FrameClass, ethernet_size};
use proto::ids::{
    Dscp, Ecn, Lid, MacAddress, Priority, QueuePairNumber, ServiceLevel, VirtualLane, VlanId,
};
use proto::link::FlowControlConfig;
use proto::units::Bytes;
use proto::wire::classify::PriorityMap;
use proto::wire::ethernet::{EthernetHeader, Preface, VlanTag, ethertype, plan};
use proto::wire::infiniband::Bth;
use proto::wire::infiniband::envelope::ICRC_LEN;
use proto::wire::internet::{Ipv4, Ipv6, Udp};
use proto::wire::project::{ProjectTypes, SUBTYPE_LEN, Subtype};
use proto::wire::roce::{Layout, NetworkHeaders, Packet, PacketBuilder, checks};

/// The wire format of a RoCEv2 adapter.
#[derive(Clone, Debug)]
pub struct RoceFormat {
    pub(crate) own: Lid,
    version: RoceVersion,
    /// The DSCP of data and acknowledgements, indexed by service level.
    dscp: [Dscp; 16],
    cnp_dscp: Dscp,
    priorities: PriorityMap,
    pub types: ProjectTypes,
    pub cn_tags: bool,
    /// MAC addresses of foreign hosts.
    pub(super) foreign: Vec<(Lid, MacAddress)>,
}

impl RoceFormat {
    /// The format that `config` describes, with the RoCEv2 settings `roce`.
    pub fn new(roce: &RoceConfig, config: &NicConfig) -> RoceFormat {
        let dscp = |level: usize| roce.dscp.get(level).copied().unwrap_or(RoceConfig::DATA);
        let (priorities, types) = match &config.link.control {
            FlowControlConfig::Pause(pause) => (pause.priorities, pause.project),
            FlowControlConfig::Credit(_) => (PriorityMap::BY_DSCP, ProjectTypes::DEFAULT),
        };
        RoceFormat {
            own: config.lid,
            version: roce.version,
            dscp: std::array::from_fn(dscp),
            cnp_dscp: roce.cnp_dscp,
            cn_tags: roce.cn_tags,
            priorities,
            types,
            foreign: Vec::new(),
        }
    }

    pub(super) fn address(&self) -> u64 {
        plan::mac(self.own).number()
    }

    /// The DSCP of data with this service level.
    pub(crate) fn dscp(&self, level: ServiceLevel) -> Dscp {
        self.dscp[level.index()]
    }

    /// Whether frames of `priority` may belong to `lane`. Without a PCP the priority is unknown, and any lane
    /// matches.
    pub fn carries(&self, lane: VirtualLane, priority: Priority) -> bool {
        match &self.priorities {
            PriorityMap::Pcp { .. } => {
                self.priorities.priority(Some(priority), None).get() == lane.get()
            }
            PriorityMap::Dscp { .. } => true,
        }
    }

    pub(super) fn parse_frame<'a>(&self, octets: &'a [u8], length: usize) -> Parsed<'a> {
        let preface = Preface::parse(octets, &self.types).map_err(|error| error.drop_reason())?;
        let at = preface.octets_len();
        match (preface.ethertype(), self.types.subtype(preface.ethertype(), &octets[at..])) {
            (ethertype::CNM, _) => Ok(FrameContent::Cnm { at, flow_id: preface.flow_id() }),
            (_, Some(Subtype::TestFrame)) => Ok(FrameContent::Test(at + SUBTYPE_LEN)),
            (_, Some(Subtype::Bcn)) => Ok(FrameContent::Bcn(at + SUBTYPE_LEN)),
            (_, Some(Subtype::RateTag) | None) => self.parse(octets, length, preface),
        }
    }

    /// The VLAN tag of data with this service level, if the link uses the PCP.
    pub(crate) fn data_tag(&self, level: ServiceLevel) -> Option<VlanTag> {
        self.tag(self.dscp[level.index()])
    }

    /// The VLAN tag of frames with this DSCP, if the link uses the PCP.
    fn tag(&self, dscp: Dscp) -> Option<VlanTag> {
        let has_tags = matches!(self.priorities, PriorityMap::Pcp { .. });
        has_tags.then(|| VlanTag {
            priority: Priority::truncate(dscp.get() >> 3),
            drop_eligible: false,
            id: VlanId::truncate(0),
            ethertype: 0,
        })
    }

    /// The lane of frames with this DSCP: the priority that the port itself would classify.
    pub(crate) fn lane_of(&self, dscp: Dscp) -> VirtualLane {
        let pcp = self.tag(dscp).map(|tag| tag.priority);
        VirtualLane::truncate(self.priorities.priority(pcp, Some(dscp)).get())
    }

    pub(crate) fn lane(&self, level: ServiceLevel) -> VirtualLane {
        self.lane_of(self.dscp[level.index()])
    }

    pub(super) fn notification_lane(&self, _: ServiceLevel) -> VirtualLane {
        self.lane_of(self.cnp_dscp)
    }

    pub(super) fn size(&self, behind_bth: usize) -> Bytes {
        let network = match self.version {
            RoceVersion::V2Ipv4 => Ipv4::LEN,
            RoceVersion::V2Ipv6 => Ipv6::LEN,
        };
        let tag = if self.tag(self.cnp_dscp).is_some() { VlanTag::LEN } else { 0 };
        let before = EthernetHeader::LEN + tag + network + Udp::LEN + Bth::LEN;
        ethernet_size(before + behind_bth + ICRC_LEN)
    }

    #[inline]
    pub(super) fn builder(&self, packet: &OutgoingPacket) -> PacketBuilder<'static> {
        let by_level = self.dscp[packet.level.index()];
        let (dscp, ecn) = match packet.class {
            FrameClass::Data => (by_level, Ecn::Capable0),
            FrameClass::Notification => (self.cnp_dscp, Ecn::NotCapable),
            FrameClass::Ack | FrameClass::Management => (by_level, Ecn::NotCapable),
        };
        PacketBuilder {
            destination: self.mac(packet.to),
            source: plan::mac(self.own),
            tag: self.tag(dscp),
            network: self.network(packet, dscp, ecn),
            bth: packet.bth,
            extended: packet.extended,
        }
    }

    /// The MAC address of adapter or foreign host `to`.
    fn mac(&self, to: Lid) -> MacAddress {
        let foreign = self.foreign.iter().find(|(known, _)| *known == to);
        foreign.map_or_else(|| plan::mac(to), |(_, mac)| *mac)
    }

    fn network(&self, packet: &OutgoingPacket, dscp: Dscp, ecn: Ecn) -> NetworkHeaders<'static> {
        let udp = Udp::roce(source_port(packet.queue_pair, packet.bth.destination));
        match self.version {
            RoceVersion::V2Ipv4 => {
                let (source, destination) = (plan::ipv4(self.own), plan::ipv4(packet.to));
                let ip = Ipv4 { dscp, ecn, source, destination, ..Ipv4::default() };
                NetworkHeaders::Ipv4(ip, &[], udp)
            }
            RoceVersion::V2Ipv6 => {
                let (source, destination) = (plan::ipv6(self.own), plan::ipv6(packet.to));
                let ip = Ipv6 { dscp, ecn, source, destination, ..Ipv6::default() };
                NetworkHeaders::Ipv6(ip, udp)
            }
        }
    }

    pub(crate) fn verify(&self, octets: &[u8]) -> Result<(), DropReason> {
        let verify = |layout: Layout| {
            checks::verify_checksums_at(octets, &layout)?;
            checks::verify_icrc_at(octets, &layout)
        };
        let layout = Layout::find_by(octets, &self.types);
        let checked = layout.and_then(|layout| layout.map_or(Ok(()), verify));
        checked.map_err(|error| error.drop_reason())
    }

    /// Parses the transport packet behind `preface`.
    fn parse<'a>(&self, octets: &'a [u8], length: usize, preface: Preface) -> Parsed<'a> {
        let layout =
            Layout::behind(octets, length, preface).map_err(|error| error.drop_reason())?;
        let layout = layout.ok_or(DropReason::NotRoce)?;
        let packet = Packet::parse_at(octets, &layout).map_err(|error| error.drop_reason())?;
        let (from, to) = match packet.network {
            NetworkHeaders::Ipv4(ip, _, _) => {
                (plan::adapter_of_ipv4(ip.source), plan::adapter_of_ipv4(ip.destination))
            }
            NetworkHeaders::Ipv6(ip, _) => {
                (plan::adapter_of_ipv6(ip.source), plan::adapter_of_ipv6(ip.destination))
            }
            // RoCEv1 has a GRH in place of IP and UDP. This adapter does not support it.
            NetworkHeaders::Global(_) => return Err(DropReason::NotRoce),
        };
        if to != Some(self.own) {
            return Err(DropReason::NotForUs);
        }
        let from = from.ok_or(DropReason::QueuePair)?;
        Ok(FrameContent::Packet(ReceivedPacket { from, transport: packet.transport }))
    }
}

/// The UDP source port of a queue pair's packets, at least 0xC000. ECMP hashes it.
///
/// It is a multiplicative hash of both queue pair numbers (2^64 over the golden ratio), because planned
/// numbers differ in few bits. The standard leaves the function open. Source: IBTA Vol 1, annex A17.9.2.
pub(crate) fn source_port(ours: QueuePairNumber, theirs: QueuePairNumber) -> u16 {
    let both = u64::from(ours.get()) << 24 | u64::from(theirs.get());
    0xc000 | (both.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 50) as u16
}

#[cfg(test)]
mod tests;
