//! What one port counts, as performance management reads it: single counters, and rows of sixteen by lane or by level.
//!
//! Source: IBTA Vol 1, 16.1.3.5, 16.1.4, and annex A10.

use super::port::Port;
use proto::counters::{DropReason, PortReading};
use proto::link::port::{LinkPort, PacketCount, Traffic, TrafficDetail};
use proto::units::{BitRate, Bytes, Instant};

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
    /// Packets received with a wrong link CRC.
    LocalPhysicalErrors,
    /// Packets received whose headers are wrong.
    MalformedPackets,
    /// Packets without a route for their LID.
    DlidMappingErrors,
    /// Packets on a lane that is not there.
    VlMappingErrors,
    /// Packets whose route leads back to where they came from.
    LoopingErrors,
    /// Link packets sent.
    XmitFlowPackets,
    /// Link packets received.
    RcvFlowPackets,
    /// Multicast packets sent.
    MulticastXmitPackets,
    /// Multicast packets received.
    MulticastRcvPackets,
    /// Other packets sent.
    UnicastXmitPackets,
    /// Other packets received.
    UnicastRcvPackets,
    /// Ticks in which the congestion control table held packets back, the sum over all lanes.
    TimeCongested,
    /// Nothing that this device can see.
    None,
}

/// Sixteen counters, one for each lane or service level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Row {
    /// By lane: ticks in which a packet waited and had no credit.
    LaneWait,
    /// By lane: packets that the congestion point marked.
    LaneMarked,
    /// By lane: ticks in which the congestion control table held packets back.
    LaneCongested,
    /// By level: words sent.
    LevelXmitData,
    /// By level: words received.
    LevelRcvData,
    /// By level: packets received with FECN.
    LevelRcvFecn,
    /// By level: packets received with BECN.
    LevelRcvBecn,
}

/// Numbers of counters and rows.
const SINGLE: usize = Counter::None as usize + 1;
const ROWS: usize = Row::LevelRcvBecn as usize + 1;
/// Entries of a row.
pub(super) const ENTRIES: usize = 16;

/// The totals of one port since the device began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Totals {
    single: [u64; SINGLE],
    rows: [[u64; ENTRIES]; ROWS],
}

impl Default for Totals {
    fn default() -> Totals {
        Totals { single: [0; SINGLE], rows: [[0; ENTRIES]; ROWS] }
    }
}

impl Totals {
    /// The totals of a port at `now`.
    pub fn read(port: &mut LinkPort, now: Instant) -> Totals {
        let mut reading = PortReading::default();
        port.read(now, &mut reading);
        let mut totals = Totals::of(&reading, port.traffic(), port.rate());
        totals.set(Counter::XmitFlowPackets, port.link_local_sent());
        if let Some(detail) = port.detail() {
            totals.add_detail(detail);
        }
        totals
    }

    /// The totals in these counters of a port.
    pub fn of(reading: &PortReading, traffic: &Traffic, rate: BitRate) -> Totals {
        let drops = |reasons: &[DropReason]| {
            reasons.iter().map(|reason| reading.drops.get(*reason)).sum::<u64>()
        };
        let mut totals = Totals::default();
        for lane in &reading.lanes {
            let (waited, marked) = (ticks(lane.counters.hold_ps, rate), lane.counters.marks);
            totals.rows[Row::LaneWait as usize][usize::from(lane.tc)] = waited;
            totals.rows[Row::LaneMarked as usize][usize::from(lane.tc)] = marked;
        }
        let waited: u64 = reading.lanes.iter().map(|lane| lane.counters.hold_ps).sum();
        let values = [
            (Counter::XmitData, words(&traffic.sent)),
            (Counter::RcvData, words(&traffic.received)),
            (Counter::XmitPackets, traffic.sent.packets),
            (Counter::RcvPackets, traffic.received.packets),
            (Counter::UnicastXmitPackets, traffic.sent.packets),
            (Counter::UnicastRcvPackets, traffic.received.packets),
            (Counter::XmitWait, ticks(waited, rate)),
            (Counter::RcvErrors, drops(RECEIVE_ERRORS)),
            (Counter::RemotePhysicalErrors, drops(&[DropReason::Aborted])),
            (Counter::RelayErrors, drops(RELAY_ERRORS)),
            (Counter::XmitDiscards, drops(&[DropReason::LinkState])),
            (Counter::LinkRecoveries, reading.watchdogs),
            (Counter::BufferOverruns, drops(&[DropReason::BufferOverrun])),
            (Counter::Vl15Dropped, drops(&[DropReason::ManagementOverrun])),
            (Counter::RcvFecn, traffic.fecn),
            (Counter::RcvBecn, traffic.becn),
            (Counter::LocalPhysicalErrors, drops(&[DropReason::Vcrc])),
            (Counter::MalformedPackets, drops(MALFORMED)),
            (Counter::DlidMappingErrors, drops(&[DropReason::NoRoute])),
            (Counter::VlMappingErrors, drops(&[DropReason::Lane])),
            (Counter::LoopingErrors, drops(&[DropReason::Hairpin])),
        ];
        values.iter().for_each(|(counter, value)| totals.set(*counter, *value));
        totals
    }

    fn add_detail(&mut self, detail: &TrafficDetail) {
        self.set(Counter::RcvFlowPackets, detail.link_received);
        for (multicast, counter, other) in [
            (detail.multicast_sent, Counter::MulticastXmitPackets, Counter::UnicastXmitPackets),
            (detail.multicast_received, Counter::MulticastRcvPackets, Counter::UnicastRcvPackets),
        ] {
            self.set(counter, multicast);
            self.set(other, self.get(other) - multicast);
        }
        for (index, level) in detail.levels.iter().enumerate() {
            for (row, value) in [
                (Row::LevelXmitData, words(&level.sent)),
                (Row::LevelRcvData, words(&level.received)),
                (Row::LevelRcvFecn, level.fecn),
                (Row::LevelRcvBecn, level.becn),
            ] {
                self.rows[row as usize][index] = value;
            }
        }
    }

    /// The same with the time, in picoseconds by lane, in which reaction points held packets back.
    #[must_use]
    pub fn with_congested(mut self, lanes: impl Iterator<Item = u64>, rate: BitRate) -> Totals {
        for (lane, time) in lanes.enumerate() {
            self.rows[Row::LaneCongested as usize][lane] = ticks(time, rate);
        }
        let sum = self.rows[Row::LaneCongested as usize].iter().sum();
        self.set(Counter::TimeCongested, sum);
        self
    }

    /// The same with what the agent itself has counted at the port.
    #[must_use]
    pub(super) fn with_state(mut self, port: &Port) -> Totals {
        self.set(Counter::LinkDowned, port.downed);
        self.set(Counter::XmitConstraintErrors, port.constraint_errors.sent);
        self.set(Counter::RcvConstraintErrors, port.constraint_errors.received);
        self
    }

    /// The total of `counter`.
    pub fn get(&self, counter: Counter) -> u64 {
        self.single[counter as usize]
    }

    /// The totals of `row`.
    pub fn row(&self, row: Row) -> &[u64; ENTRIES] {
        &self.rows[row as usize]
    }

    pub(super) fn set(&mut self, counter: Counter, value: u64) {
        self.single[counter as usize] = value;
    }

    pub(super) fn set_entry(&mut self, row: Row, index: usize, value: u64) {
        self.rows[row as usize][index] = value;
    }

    /// Applies `change` to every total with that of `other`.
    fn each(&mut self, other: &Totals, change: impl Fn(&mut u64, u64)) {
        let own = self.single.iter_mut().chain(self.rows.iter_mut().flatten());
        let all = own.zip(other.single.iter().chain(other.rows.iter().flatten()));
        all.for_each(|(own, other)| change(own, *other));
    }

    pub(super) fn add(&mut self, other: &Totals) {
        self.each(other, |sum, more| *sum += more);
    }

    /// What was counted since `base`.
    pub(super) fn since(mut self, base: &Totals) -> Totals {
        self.each(base, |count, before| *count -= before);
        self
    }
}

const WORD: u64 = 4;
const VCRC: u64 = 2;
const MALFORMED: &[DropReason] =
    &[DropReason::Malformed, DropReason::LinkVersion, DropReason::PacketLength, DropReason::Mtu];
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
fn words(count: &PacketCount) -> u64 {
    (count.octets - count.packets * VCRC) / WORD
}

/// A time in picoseconds in times of one word on the line.
fn ticks(time: u64, rate: BitRate) -> u64 {
    time / Bytes::new(WORD).time_at(rate).as_ps().max(1)
}
