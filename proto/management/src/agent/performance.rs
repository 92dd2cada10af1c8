//! The performance management agent: counters of ports, as tables of fields.
//!
//! A device's own totals only rise, so a Set keeps the total from which a counter counts. Each attribute has its own
//! such base. Source: IBTA Vol 1, 16.1.3 and 16.1.4.

use super::Outcome;
use super::port::Port;
use crate::attribute::performance::{
    ATTRIBUTES, class_port_info, port_counters as short, port_counters_extended as long,
    port_rcv_con_ctrl as marks,
};
use crate::attribute::{Attribute, Field};
use crate::datagram::{CLASS_VERSION, Datagram, method, status};
use proto::counters::{DropReason, PortReading};
use proto::ids::PortNumber;
use proto::link::port::Traffic;
use proto::units::{BitRate, Bytes};
use std::collections::BTreeMap;

/// What a port counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counter {
    /// Words of four octets sent, LRH to ICRC.
    XmitData,
    /// Words received.
    RcvData,
    /// Packets sent.
    XmitPackets,
    /// Packets received.
    RcvPackets,
    /// Ticks in which a packet waited and had no credit. A tick is the time of one word.
    XmitWait,
    /// Packets received with an error.
    RcvErrors,
    /// Packets whose sender had aborted them.
    RemotePhysicalErrors,
    /// Packets without a route.
    RelayErrors,
    /// Packets that the output discarded.
    XmitDiscards,
    /// Packets that a switch did not send because of their P_Key.
    XmitConstraintErrors,
    /// Packets that a switch did not take because of their P_Key.
    RcvConstraintErrors,
    /// Times that the link has started again.
    LinkRecoveries,
    /// Times that the link has lost its peer.
    LinkDowned,
    /// Packets beyond the credits given.
    BufferOverruns,
    /// Management packets without room.
    Vl15Dropped,
    /// Packets received with FECN.
    RcvFecn,
    /// Packets received with BECN.
    RcvBecn,
    /// Nothing that this device can see.
    None,
}

/// Number of counters.
const COUNT: usize = Counter::None as usize + 1;

/// The totals of one port since the device began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals([u64; COUNT]);

impl Totals {
    /// The totals of a port from its counters.
    pub fn of(reading: &PortReading, traffic: &Traffic, rate: BitRate) -> Totals {
        let drops = |reasons: &[DropReason]| {
            reasons.iter().map(|reason| reading.drops.get(*reason)).sum::<u64>()
        };
        let waited: u64 = reading.lanes.iter().map(|lane| lane.counters.hold_ps).sum();
        let tick = Bytes::new(WORD).time_at(rate).as_ps().max(1);
        let mut totals = Totals::default();
        let values = [
            (Counter::XmitData, words(traffic.sent.octets, traffic.sent.packets)),
            (Counter::RcvData, words(traffic.received.octets, traffic.received.packets)),
            (Counter::XmitPackets, traffic.sent.packets),
            (Counter::RcvPackets, traffic.received.packets),
            (Counter::XmitWait, waited / tick),
            (Counter::RcvErrors, drops(RECEIVE_ERRORS)),
            (Counter::RemotePhysicalErrors, drops(&[DropReason::Aborted])),
            (Counter::RelayErrors, drops(RELAY_ERRORS)),
            (Counter::XmitDiscards, drops(&[DropReason::LinkState])),
            (Counter::LinkRecoveries, reading.watchdogs),
            (Counter::BufferOverruns, drops(&[DropReason::BufferOverrun])),
            (Counter::Vl15Dropped, drops(&[DropReason::ManagementOverrun])),
            (Counter::RcvFecn, traffic.fecn),
            (Counter::RcvBecn, traffic.becn),
        ];
        values.iter().for_each(|(counter, value)| totals.0[*counter as usize] = *value);
        totals
    }

    /// The same with what the agent itself has counted at the port.
    #[must_use]
    pub(super) fn with_state(mut self, port: &Port) -> Totals {
        let values = [
            (Counter::LinkDowned, port.downed),
            (Counter::XmitConstraintErrors, port.constraint_errors.sent),
            (Counter::RcvConstraintErrors, port.constraint_errors.received),
        ];
        values.iter().for_each(|(counter, value)| self.0[*counter as usize] = *value);
        self
    }

    /// The total of `counter`.
    pub fn get(&self, counter: Counter) -> u64 {
        self.0[counter as usize]
    }

    fn add(&mut self, other: &Totals) {
        self.0.iter_mut().zip(other.0).for_each(|(sum, more)| *sum += more);
    }
}

const WORD: u64 = 4;
const VCRC: u64 = 2;
const RECEIVE_ERRORS: &[DropReason] = &[
    DropReason::Malformed,
    DropReason::LinkVersion,
    DropReason::PacketLength,
    DropReason::Vcrc,
    DropReason::Lane,
    DropReason::Mtu,
];
const RELAY_ERRORS: &[DropReason] =
    &[DropReason::NoRoute, DropReason::NoMulticastRoute, DropReason::Hairpin];

/// PktLen of all packets: words from LRH to ICRC.
fn words(octets: u64, packets: u64) -> u64 {
    (octets - packets * VCRC) / WORD
}

/// The fields of an attribute, each with its counter, in the order of the bits of CounterSelect.
type Row = (Field, Counter);

const SHORT: &[Row] = &[
    (short::SYMBOL_ERRORS, Counter::None),
    (short::LINK_RECOVERIES, Counter::LinkRecoveries),
    (short::LINK_DOWNED, Counter::LinkDowned),
    (short::RCV_ERRORS, Counter::RcvErrors),
    (short::RCV_REMOTE_PHYSICAL_ERRORS, Counter::RemotePhysicalErrors),
    (short::RCV_SWITCH_RELAY_ERRORS, Counter::RelayErrors),
    (short::XMIT_DISCARDS, Counter::XmitDiscards),
    (short::XMIT_CONSTRAINT_ERRORS, Counter::XmitConstraintErrors),
    (short::RCV_CONSTRAINT_ERRORS, Counter::RcvConstraintErrors),
    (short::LOCAL_INTEGRITY_ERRORS, Counter::None),
    (short::BUFFER_OVERRUNS, Counter::BufferOverruns),
    (short::VL15_DROPPED, Counter::Vl15Dropped),
    (short::XMIT_DATA, Counter::XmitData),
    (short::RCV_DATA, Counter::RcvData),
    (short::XMIT_PACKETS, Counter::XmitPackets),
    (short::RCV_PACKETS, Counter::RcvPackets),
    (short::XMIT_WAIT, Counter::XmitWait),
];
const LONG: &[Row] = &[
    (long::XMIT_DATA, Counter::XmitData),
    (long::RCV_DATA, Counter::RcvData),
    (long::XMIT_PACKETS, Counter::XmitPackets),
    (long::RCV_PACKETS, Counter::RcvPackets),
];
const MARKS: &[Row] = &[(marks::RCV_FECN, Counter::RcvFecn), (marks::RCV_BECN, Counter::RcvBecn)];

fn rows(attribute: u16) -> &'static [Row] {
    match attribute {
        0x0012 => SHORT,
        0x001d => LONG,
        0x0031 => MARKS,
        _ => &[],
    }
}

/// PortSelect that means all ports of a node, which ibqueryerrors asks adapters for, too.
const ALL_PORTS: u8 = 0xff;
/// CapabilityMask: all ports at once, 64-bit counters without those of unicast and multicast, XmitWait.
const CAPABILITIES: u64 = 0x0100 | 0x0400 | 0x1000;
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
        ports: u8,
        totals: &mut dyn FnMut(PortNumber) -> Totals,
    ) -> Outcome {
        let status = self.access(datagram, ports, totals).err().unwrap_or(0);
        datagram.answer(status);
        Outcome::Answer
    }

    fn access(
        &mut self,
        datagram: &mut Datagram,
        ports: u8,
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
                reset(attribute.id, &asked, &total, base);
            }
            let mut counted = total;
            counted.0.iter_mut().zip(base.0).for_each(|(count, base)| *count -= base);
            sum.add(&counted);
        }
        let data = datagram.data_mut();
        for (field, counter) in rows(attribute.id) {
            // Counters of PortCounters stop at their maximum; those of 64 bits never reach it.
            field.set(data, sum.get(*counter).min(field.max()));
        }
        Ok(())
    }
}

/// Restarts the selected counters.
fn reset(attribute: u16, asked: &[u8], total: &Totals, base: &mut Totals) {
    let mut select = short::COUNTER_SELECT.get(asked);
    if attribute == short::ATTRIBUTE.id {
        select |= (short::COUNTER_SELECT2.get(asked) & 1) << 16;
    }
    for (bit, (_, counter)) in rows(attribute).iter().enumerate() {
        if select >> bit & 1 == 1 {
            base.0[*counter as usize] = total.get(*counter);
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
