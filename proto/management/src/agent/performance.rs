//! The performance management agent: counters of ports, as tables of fields.
//!
//! A device's own totals only rise, so a Set keeps the total from which a counter counts. Each attribute has its own
//! such base. Attributes that count packets by opcode, and sampling, are not there: they get the status of an unknown
//! attribute. Source: IBTA Vol 1, 16.1.3 and 16.1.4, annex A10.

use super::totals::ENTRIES;
use super::{NodeKind, Outcome};
use crate::attribute::performance::{
    ATTRIBUTES, class_port_info, port_counters as short, port_counters_extended as long,
    port_flow_ctl_counters as flow, port_rcv_con_ctrl as marks, port_rcv_data_sl,
    port_rcv_error_details as errors, port_sl_rcv_becn, port_sl_rcv_fecn, port_vl_xmit_time_cong,
    port_vl_xmit_wait, port_xmit_con_ctrl, port_xmit_data_sl,
    port_xmit_discard_details as discards, sw_port_vl_congestion,
};
use crate::attribute::{Attribute, Field};
use crate::datagram::{CLASS_VERSION, Datagram, method, status};
use proto::ids::PortNumber;
use std::collections::BTreeMap;

pub use super::totals::{Counter, Row, Totals};

/// What a field shows.
#[derive(Clone, Copy)]
enum Source {
    One(Counter),
    /// A row of fields.
    Each(Row),
}

use Source::{Each, One};

/// The fields of an attribute, in the order of the bits of CounterSelect.
type Fields = &'static [(Field, Source)];

/// The fields of each attribute, and the kind of node that has it, if not both.
const TABLE: &[(u16, Option<NodeKind>, Fields)] = &[
    (short::ATTRIBUTE.id, None, SHORT),
    (errors::ATTRIBUTE.id, None, ERRORS),
    (discards::ATTRIBUTE.id, None, DISCARDS),
    (flow::ATTRIBUTE.id, None, FLOW),
    (port_vl_xmit_wait::ATTRIBUTE.id, None, &[(port_vl_xmit_wait::WAIT, Each(Row::LaneWait))]),
    (long::ATTRIBUTE.id, None, LONG),
    (
        sw_port_vl_congestion::ATTRIBUTE.id,
        Some(NodeKind::Switch),
        &[(sw_port_vl_congestion::MARKED, Each(Row::LaneMarked))],
    ),
    (marks::ATTRIBUTE.id, None, MARKS),
    (port_sl_rcv_fecn::ATTRIBUTE.id, None, &[(port_sl_rcv_fecn::FECN, Each(Row::LevelRcvFecn))]),
    (port_sl_rcv_becn::ATTRIBUTE.id, None, &[(port_sl_rcv_becn::BECN, Each(Row::LevelRcvBecn))]),
    (
        port_xmit_con_ctrl::ATTRIBUTE.id,
        Some(NodeKind::Adapter),
        &[(port_xmit_con_ctrl::TIME_CONGESTED, One(Counter::TimeCongested))],
    ),
    (
        port_vl_xmit_time_cong::ATTRIBUTE.id,
        Some(NodeKind::Adapter),
        &[(port_vl_xmit_time_cong::TIME_CONGESTED, Each(Row::LaneCongested))],
    ),
    (port_xmit_data_sl::ATTRIBUTE.id, None, &[(port_xmit_data_sl::DATA, Each(Row::LevelXmitData))]),
    (port_rcv_data_sl::ATTRIBUTE.id, None, &[(port_rcv_data_sl::DATA, Each(Row::LevelRcvData))]),
];

const SHORT: Fields = &[
    (short::SYMBOL_ERRORS, One(Counter::None)),
    (short::LINK_RECOVERIES, One(Counter::LinkRecoveries)),
    (short::LINK_DOWNED, One(Counter::LinkDowned)),
    (short::RCV_ERRORS, One(Counter::RcvErrors)),
    (short::RCV_REMOTE_PHYSICAL_ERRORS, One(Counter::RemotePhysicalErrors)),
    (short::RCV_SWITCH_RELAY_ERRORS, One(Counter::RelayErrors)),
    (short::XMIT_DISCARDS, One(Counter::XmitDiscards)),
    (short::XMIT_CONSTRAINT_ERRORS, One(Counter::XmitConstraintErrors)),
    (short::RCV_CONSTRAINT_ERRORS, One(Counter::RcvConstraintErrors)),
    (short::LOCAL_INTEGRITY_ERRORS, One(Counter::None)),
    (short::BUFFER_OVERRUNS, One(Counter::BufferOverruns)),
    (short::VL15_DROPPED, One(Counter::Vl15Dropped)),
    (short::XMIT_DATA, One(Counter::XmitData)),
    (short::RCV_DATA, One(Counter::RcvData)),
    (short::XMIT_PACKETS, One(Counter::XmitPackets)),
    (short::RCV_PACKETS, One(Counter::RcvPackets)),
    (short::XMIT_WAIT, One(Counter::XmitWait)),
];
const LONG: Fields = &[
    (long::XMIT_DATA, One(Counter::XmitData)),
    (long::RCV_DATA, One(Counter::RcvData)),
    (long::XMIT_PACKETS, One(Counter::XmitPackets)),
    (long::RCV_PACKETS, One(Counter::RcvPackets)),
    (long::UNICAST_XMIT_PACKETS, One(Counter::UnicastXmitPackets)),
    (long::UNICAST_RCV_PACKETS, One(Counter::UnicastRcvPackets)),
    (long::MULTICAST_XMIT_PACKETS, One(Counter::MulticastXmitPackets)),
    (long::MULTICAST_RCV_PACKETS, One(Counter::MulticastRcvPackets)),
];
const ERRORS: Fields = &[
    (errors::LOCAL_PHYSICAL_ERRORS, One(Counter::LocalPhysicalErrors)),
    (errors::MALFORMED_PACKETS, One(Counter::MalformedPackets)),
    (errors::BUFFER_OVERRUNS, One(Counter::BufferOverruns)),
    (errors::DLID_MAPPING_ERRORS, One(Counter::DlidMappingErrors)),
    (errors::VL_MAPPING_ERRORS, One(Counter::VlMappingErrors)),
    (errors::LOOPING_ERRORS, One(Counter::LoopingErrors)),
];
/// A port discards nothing for the age of packets.
const DISCARDS: Fields = &[
    (discards::INACTIVE_DISCARDS, One(Counter::XmitDiscards)),
    (discards::NEIGHBOR_MTU_DISCARDS, One(Counter::None)),
    (discards::LIFETIME_DISCARDS, One(Counter::None)),
    (discards::HOQ_LIFETIME_DISCARDS, One(Counter::None)),
];
const FLOW: Fields = &[
    (flow::XMIT_FLOW_PACKETS, One(Counter::XmitFlowPackets)),
    (flow::RCV_FLOW_PACKETS, One(Counter::RcvFlowPackets)),
];
const MARKS: Fields =
    &[(marks::RCV_FECN, One(Counter::RcvFecn)), (marks::RCV_BECN, One(Counter::RcvBecn))];

/// The fields of an attribute at a node of this kind.
fn fields(attribute: u16, kind: NodeKind) -> Option<Fields> {
    let is_it =
        |row: &&(u16, Option<NodeKind>, _)| row.0 == attribute && row.1.is_none_or(|of| of == kind);
    TABLE.iter().find(is_it).map(|(_, _, fields)| *fields)
}

/// PortSelect that means all ports of a node, which ibqueryerrors asks adapters for, too.
const ALL_PORTS: u8 = 0xff;
/// CapabilityMask: all ports at once, all 64-bit counters, XmitWait.
const CAPABILITIES: u64 = 0x0100 | 0x0200 | 0x1000;
const RESPONSE_TIME: u64 = 16;

/// The agent.
#[derive(Debug, Default)]
pub struct PerformanceAgent {
    /// By attribute and port: the totals from which its counters count.
    bases: BTreeMap<(u16, u8), Totals>,
}

impl PerformanceAgent {
    /// Answers a datagram.
    pub(super) fn receive(
        &mut self,
        datagram: &mut Datagram,
        (kind, ports): (NodeKind, u8),
        totals: &mut dyn FnMut(PortNumber) -> Totals,
    ) -> Outcome {
        let status = self.access(datagram, (kind, ports), totals).err().unwrap_or(0);
        datagram.answer(status);
        Outcome::Answer
    }

    fn access(
        &mut self,
        datagram: &mut Datagram,
        (kind, ports): (NodeKind, u8),
        totals: &mut dyn FnMut(PortNumber) -> Totals,
    ) -> Result<(), u16> {
        if datagram.get(&CLASS_VERSION) != 1 {
            return Err(status::VERSION);
        }
        let is_set = match datagram.method() {
            method::GET => false,
            method::SET => true,
            _ => return Err(status::METHOD),
        };
        let known = |attribute: &&&Attribute| attribute.id == datagram.attribute();
        let attribute = ATTRIBUTES.iter().find(known).ok_or(status::ATTRIBUTE)?;
        if attribute.id == class_port_info::ATTRIBUTE.id {
            if is_set {
                return Err(status::ATTRIBUTE);
            }
            write_class_port_info(datagram.data_mut());
            return Ok(());
        }
        let fields = fields(attribute.id, kind).ok_or(status::ATTRIBUTE)?;
        let select = datagram.data()[1];
        let chosen = match select {
            ALL_PORTS => 1..=ports,
            _ if (1..=ports).contains(&select) => select..=select,
            _ => return Err(status::VALUE),
        };
        let asked: [u8; 64] = *datagram.data().first_chunk().expect("a datagram has more");
        let mut sum = Totals::default();
        for port in chosen {
            let port = PortNumber::new(port).expect("a port of the node");
            let total = totals(port);
            let base = self.bases.entry((attribute.id, port.get())).or_default();
            if is_set {
                reset(fields, selected(attribute.id, &asked), &total, base);
            }
            sum.add(&total.since(base));
        }
        let data = datagram.data_mut();
        for (field, source) in fields {
            // Counters stop at their maximum; those of 64 bits never reach it.
            let shown = |value: u64| value.min(field.max());
            match source {
                One(counter) => field.set(data, shown(sum.get(*counter))),
                Each(row) => {
                    let entries = sum.row(*row).iter().enumerate();
                    entries.for_each(|(at, value)| field.set_at(at, data, shown(*value)));
                }
            }
        }
        Ok(())
    }
}

/// The bits of the counters that a Set restarts.
fn selected(attribute: u16, asked: &[u8]) -> u64 {
    let select = short::COUNTER_SELECT.get(asked);
    if attribute == short::ATTRIBUTE.id {
        return select | (short::COUNTER_SELECT2.get(asked) & 1) << 16;
    }
    select
}

/// Restarts the selected counters.
fn reset(fields: Fields, select: u64, total: &Totals, base: &mut Totals) {
    let mut bits = (0..).map(|bit| select >> bit & 1 == 1);
    let mut is_selected = || bits.next().expect("an endless row");
    for (_, source) in fields {
        match source {
            One(counter) if is_selected() => base.set(*counter, total.get(*counter)),
            One(_) => {}
            Each(row) => {
                for index in (0..ENTRIES).filter(|_| is_selected()) {
                    base.set_entry(*row, index, total.row(*row)[index]);
                }
            }
        }
    }
}

/// ClassPortInfo of performance management.
fn write_class_port_info(data: &mut [u8]) {
    let values = [
        (class_port_info::BASE_VERSION, 1),
        (class_port_info::CLASS_VERSION, 1),
        (class_port_info::CAPABILITY_MASK, CAPABILITIES),
        (class_port_info::RESP_TIME, RESPONSE_TIME),
    ];
    values.iter().for_each(|(field, value)| field.set(data, *value));
}
