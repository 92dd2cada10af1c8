//! The laws of a line, which every frame obeys whatever the devices compute.
//!
//! A cable checks them at its sending end, in the simulator, in an exact worker and in a live one:
//!
//! | law | source |
//! |---|---|
//! | frames of one direction are no closer than the later one is long | IEEE 802.3, 4.2.3.2; IBTA Vol 1, 7.6.9 |
//! | a frame leaves not before the input that caused it | causality |
//! | a frame is received not before its last bit has left and the delay is over | causality |
//! | no data frame starts without credit for all of it | IBTA Vol 1, 7.9.4.2 |
//! | no frame of a priority starts in a pause of it | IEEE 802.3, 31B.3; IEEE 802.1Q, 36.1.3.2 |
//!
//! The account of credits and pauses is the cable's own: it reads the flow-control frames that arrive at the sender. A
//! violation is an error of a device or of a driver, never of a host that is too slow: instants are stamps, and what a
//! late frame permits counts from its handling. The law of pacing is checked where the gap is known, in the NIC.

use crate::cable::is_link_local;
use proto::device::{Device, Step};
use proto::events::{DeviceEvent, EventKind, Law};
use proto::frame::{Frame, FrameKind, Integrity};
use proto::ids::{MacAddress, PortNumber};
use proto::link::LinkConfig;
use proto::link::config::{FlowControlConfig, PauseConfig, PauseMode};
use proto::link::credit::blocks;
use proto::link::pause::quanta;
use proto::units::{BitRate, Bytes, Duration, Instant};
use proto::wire::classify::classify_ethernet_by;
use proto::wire::ethernet::{EthernetHeader, MacControl, Pfc};
use proto::wire::infiniband::flow_control_packet::{FlowControlOp, FlowControlPacket};
use std::collections::VecDeque;

/// One direction of a cable, at the port that sends.
pub(crate) struct Line {
    port: PortNumber,
    /// The present rate of the port; none for a device without a link.
    rate: Option<BitRate>,
    /// Picoseconds an octet at that rate, where it is a whole number: a multiplication is cheaper than a division.
    octet_ps: Option<u64>,
    overhead: Bytes,
    /// When the last bit of the latest frame left.
    free_at: Instant,
    control: Control,
    /// A violation was reported; one a line is enough.
    is_broken: bool,
    /// Of the cable to this port.
    pub delay: Duration,
    /// A frame came to this port sooner than its cable permits: when it should have.
    not_before: Instant,
}

/// What permits a frame to start.
enum Control {
    None,
    /// By lane.
    Credit(Vec<CreditAccount>),
    Pause(Box<PauseAccount>),
}

/// Credits of one lane, in blocks modulo 4096.
#[derive(Clone, Copy, Default)]
struct CreditAccount {
    sent: u16,
    limit: u16,
}

/// Pauses of the priorities of one link.
struct PauseAccount {
    config: PauseConfig,
    rate: BitRate,
    /// By priority: in which interval no frame starts.
    paused: [(Instant, Instant); Pfc::PRIORITIES],
    /// The end of the latest of them.
    until: Instant,
    /// When the link goes down and comes up.
    edges: VecDeque<Instant>,
    is_down: bool,
}

/// A frame that broke a law.
struct Violation {
    law: Law,
    lane: u8,
    /// The earliest instant at which the frame was permitted; [`Instant::NEVER`] if none is known.
    earliest: Instant,
}

/// The lines of a device, by port.
pub(crate) fn lines_of(device: &dyn Device) -> Vec<Line> {
    let ports = (0..device.ports()).map(PortNumber::from_index);
    ports.map(|port| Line::new(port, device.link(port), device.ignores_pauses())).collect()
}

impl Line {
    fn new(port: PortNumber, link: Option<&LinkConfig>, ignores_pauses: bool) -> Line {
        let control = match link.map(|link| &link.control) {
            None => Control::None,
            Some(FlowControlConfig::Credit(credit)) => {
                Control::Credit(vec![CreditAccount::default(); usize::from(credit.data_lanes)])
            }
            Some(FlowControlConfig::Pause(_)) if ignores_pauses => Control::None,
            Some(FlowControlConfig::Pause(pause)) => Control::Pause(Box::new(PauseAccount {
                rate: pause.quanta_rate.or(link.map(|link| link.rate)).unwrap_or(BitRate::gbps(1)),
                paused: Default::default(),
                until: Instant::ZERO,
                edges: pause.outages.iter().flat_map(|outage| [outage.from, outage.to]).collect(),
                is_down: false,
                config: pause.clone(),
            })),
        };
        Line {
            port,
            rate: link.map(|link| link.rate),
            octet_ps: link.and_then(|link| octet_ps(link.rate)),
            overhead: link.map_or(Bytes::ZERO, LinkConfig::overhead),
            free_at: Instant::ZERO,
            control,
            is_broken: false,
            delay: Duration::ZERO,
            not_before: Instant::ZERO,
        }
    }

    /// The port sends no faster than `rate` from its next frame on.
    pub fn slow_down(&mut self, rate: BitRate) {
        self.rate = self.rate.map(|_| rate);
        self.octet_ps = octet_ps(rate);
    }

    /// The link goes down or comes up at `now`, by hand.
    pub fn reset(&mut self, now: Instant) {
        match &mut self.control {
            Control::None => {}
            Control::Credit(lanes) => lanes.fill(CreditAccount::default()),
            Control::Pause(pause) => pause.end_all(now),
        }
    }

    /// Notes a frame on the way to this port whose last bit left at `left`, and that arrives at `arrives`.
    #[inline]
    pub fn approaches(&mut self, left: Instant, arrives: Instant) {
        if arrives < left + self.delay {
            self.not_before = left + self.delay;
        }
    }

    /// Checks a frame whose last bit leaves at `end`, sent in `step`.
    #[inline]
    pub fn departs(&mut self, frame: &Frame, end: Instant, step: Step) -> Option<Box<DeviceEvent>> {
        let rate = self.rate?;
        let size = frame.line_size();
        let taken = size + self.overhead;
        let duration = match self.octet_ps {
            Some(octet) => taken.get() * octet,
            None => taken.time_at(rate).as_ps(),
        };
        let start = Instant::from_ps(end.as_ps().saturating_sub(duration));
        let violation = if start < self.free_at {
            Some(Violation { law: Law::LineRate, lane: 0, earliest: self.free_at })
        } else if start < step.since {
            Some(Violation { law: Law::Causality, lane: 0, earliest: step.since })
        } else {
            match &mut self.control {
                Control::None => None,
                Control::Credit(lanes) => charge(lanes, frame, size),
                Control::Pause(pause) => pause.check(frame, start),
            }
        };
        self.free_at = end;
        self.report(violation?, start, size)
    }

    /// Notes a frame that arrived at `arrived` at the port that sends, and is handled in `step`.
    #[inline]
    pub fn arrives(
        &mut self,
        frame: &Frame,
        arrived: Instant,
        step: Step,
    ) -> Option<Box<DeviceEvent>> {
        match &mut self.control {
            Control::None => {}
            Control::Credit(lanes) => extend(lanes, frame),
            Control::Pause(pause) => {
                if is_link_local(frame.kind, &frame.octets) {
                    pause.apply(frame, arrived, step.now);
                }
            }
        }
        let earliest = arrived.max(self.not_before);
        if earliest <= step.now {
            return None;
        }
        let violation = Violation { law: Law::Delay, lane: 0, earliest };
        self.report(violation, step.now, frame.line_size())
    }

    /// The event of the first violation.
    #[cold]
    fn report(
        &mut self,
        violation: Violation,
        at: Instant,
        bytes: Bytes,
    ) -> Option<Box<DeviceEvent>> {
        let Violation { law, lane, earliest } = violation;
        let is_first = !std::mem::replace(&mut self.is_broken, true);
        let kind = EventKind::Violation { law, earliest, bytes };
        is_first.then(|| Box::new(DeviceEvent { at, port: self.port, tc: lane, kind }))
    }
}

/// Picoseconds that an octet takes at `rate`, if that is a whole number.
fn octet_ps(rate: BitRate) -> Option<u64> {
    const BITS_PS: u64 = 8_000_000_000_000;
    BITS_PS.is_multiple_of(rate.get()).then(|| BITS_PS / rate.get())
}

/// The counters are twelve bits wide, and a limit is at most half of their range ahead.
const BLOCKS: u16 = 0xfff;
const AHEAD_MAX: u16 = 2048;

/// Charges a packet to its lane. Link packets and VL15 need no credit; a link packet that initializes restarts the count.
#[inline]
fn charge(lanes: &mut [CreditAccount], frame: &Frame, size: Bytes) -> Option<Violation> {
    if frame.kind != FrameKind::Infiniband {
        let is_init = frame.octets.first().is_some_and(|octet| octet >> 4 == 1);
        if is_init
            && let Ok(packet) = FlowControlPacket::parse_intact(&frame.octets)
            && packet.op == FlowControlOp::Init
            && let Some(lane) = lanes.get_mut(packet.virtual_lane.index())
        {
            lane.sent = 0;
        }
        return None;
    }
    let number = frame.octets.first()? >> 4;
    let lane = lanes.get_mut(usize::from(number))?;
    lane.sent = lane.sent.wrapping_add(blocks(size) as u16) & BLOCKS;
    let has_credit = lane.limit.wrapping_sub(lane.sent) & BLOCKS <= AHEAD_MAX;
    let violation = Violation { law: Law::Credit, lane: number, earliest: Instant::NEVER };
    (!has_credit).then_some(violation)
}

/// Applies a good flow-control packet.
#[inline]
fn extend(lanes: &mut [CreditAccount], frame: &Frame) {
    if frame.kind != FrameKind::InfinibandLink {
        return;
    }
    let packet = match frame.is_unchecked() {
        true => FlowControlPacket::parse(&frame.octets),
        false => FlowControlPacket::parse_intact(&frame.octets),
    };
    if let Ok(packet) = packet
        && !matches!(packet.op, FlowControlOp::Unknown(_))
        && let Some(lane) = lanes.get_mut(packet.virtual_lane.index())
    {
        lane.limit = packet.fccl & BLOCKS;
    }
}

impl PauseAccount {
    /// Applies the outages that began or ended by `now`: each ends all pauses.
    fn pass_edges(&mut self, now: Instant) {
        while let Some(edge) = self.edges.pop_front_if(|edge| *edge <= now) {
            self.is_down = !self.is_down;
            self.end_all(edge);
        }
    }

    fn end_all(&mut self, at: Instant) {
        self.paused.iter_mut().for_each(|(_, until)| *until = at.min(*until));
        self.until = at.min(self.until);
    }

    /// A frame that starts at `start` in a pause of its priority breaks the law.
    #[inline]
    fn check(&mut self, frame: &Frame, start: Instant) -> Option<Violation> {
        if start >= self.until || is_link_local(frame.kind, &frame.octets) {
            return None;
        }
        self.pass_edges(start);
        let (octets, length) = (&frame.octets[..], frame.octets_len());
        let map = &self.config.priorities;
        let headers = classify_ethernet_by(octets, length, map, &self.config.project).ok()?;
        let (from, until) = *self.paused.get(headers.lane.index())?;
        let violation = Violation { law: Law::Pause, lane: headers.lane.get(), earliest: until };
        (from <= start && start < until).then_some(violation)
    }

    /// Applies a good MAC control frame of the link's kind that arrived at `arrived`. What the sender handles late it
    /// obeys from then on.
    fn apply(&mut self, frame: &Frame, arrived: Instant, now: Instant) {
        self.pass_edges(now);
        let header = EthernetHeader::parse(&frame.octets);
        let is_ours = header.is_ok_and(|header| {
            [MacAddress::MAC_CONTROL, self.config.address].contains(&header.destination)
        });
        if self.is_down || !is_ours || frame.integrity == Integrity::Aborted {
            return;
        }
        if frame.octets.len() < MacControl::FRAME_LEN {
            return;
        }
        let (enabled, times) = match (MacControl::parse(&frame.octets), self.config.mode) {
            (Ok(MacControl::Pause(pause)), PauseMode::Global) => {
                (0xff, [pause.time; Pfc::PRIORITIES])
            }
            (Ok(MacControl::Pfc(pfc)), PauseMode::Pfc) => {
                (pfc.enabled & self.config.obeyed, pfc.times)
            }
            _ => return,
        };
        let from = arrived + self.config.response;
        for (priority, time) in times.into_iter().enumerate() {
            if enabled >> priority & 1 == 0 {
                continue;
            }
            let pause = &mut self.paused[priority];
            if time == 0 {
                pause.1 = pause.1.min(arrived);
            } else {
                // A pause that follows another leaves no gap between the two.
                let begin = if pause.1 > now { pause.0 } else { from.max(now) };
                *pause = (begin, from + quanta(time, self.rate));
            }
        }
        self.until = self.paused.iter().map(|(_, until)| *until).max().unwrap_or_default();
    }
}

#[cfg(test)]
mod tests;
