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
    /// When the last bit of the latest frame left.
    free_at: Instant,
    /// The end of the latest pause: an earlier frame is looked at more closely.
    paused_until: Instant,
    /// Picoseconds an octet at the present rate, where it is a whole number: a multiplication is cheaper than a division.
    /// Else so many that each frame is looked at more closely.
    octet_ps: u64,
    overhead: Bytes,
    credits: CreditAccount,
    /// A frame came to this port sooner than its cable permits: when it should have.
    not_before: Instant,
    /// Of the cable to this port.
    pub delay: Duration,
    port: PortNumber,
    /// A violation was reported; one a line is enough.
    is_broken: bool,
    /// The present rate of the port; none for a device without a link.
    rate: Option<BitRate>,
    /// On links with pauses that the device obeys.
    pauses: Option<Box<PauseAccount>>,
}

/// Credits of the data lanes of one link.
struct CreditAccount {
    /// By lane: blocks that may be sent yet. An array of all, because a lane's number needs no check then; those without
    /// credits have more blocks than any run sends.
    room: [i64; 16],
    /// By lane: the latest limit (FCCL), modulo 4096.
    limits: [u16; 16],
    data_lanes: u8,
}

/// Pauses of the priorities of one link.
struct PauseAccount {
    config: PauseConfig,
    /// The rate at which pause quanta are counted.
    rate: BitRate,
    /// By priority: in which interval no frame starts.
    paused: [(Instant, Instant); Pfc::PRIORITIES],
    /// When the link goes down and comes up.
    edges: VecDeque<Instant>,
    is_down: bool,
}

/// The law that a frame broke, its lane, and the earliest instant at which it was permitted; [`Instant::NEVER`] if none
/// is known.
type Violation = (Law, u8, Instant);

/// The lines of a device, by port.
pub(crate) fn lines_of(device: &dyn Device) -> Vec<Line> {
    let ports = (0..device.ports()).map(PortNumber::from_index);
    ports.map(|port| Line::new(port, device.link(port), device.ignores_pauses())).collect()
}

impl Line {
    fn new(port: PortNumber, link: Option<&LinkConfig>, ignores_pauses: bool) -> Line {
        let (data_lanes, pauses) = match link.map(|link| (&link.control, link.rate)) {
            Some((FlowControlConfig::Credit(credit), _)) => (credit.data_lanes, None),
            Some((FlowControlConfig::Pause(pause), rate)) if !ignores_pauses => {
                (0, Some(Box::new(PauseAccount::new(pause, rate))))
            }
            _ => (0, None),
        };
        Line {
            free_at: Instant::ZERO,
            paused_until: Instant::ZERO,
            octet_ps: link.map_or(NOT_WHOLE, |link| octet_ps(link.rate)),
            overhead: link.map_or(Bytes::ZERO, LinkConfig::overhead),
            credits: CreditAccount::new(data_lanes),
            not_before: Instant::ZERO,
            delay: Duration::ZERO,
            port,
            is_broken: false,
            rate: link.map(|link| link.rate),
            pauses,
        }
    }

    /// The port sends no faster than `rate` from its next frame on.
    pub fn slow_down(&mut self, rate: BitRate) {
        self.rate = self.rate.map(|_| rate);
        self.octet_ps = octet_ps(rate);
    }

    /// The link goes down or comes up at `now`, by hand.
    pub fn reset(&mut self, now: Instant) {
        self.credits = CreditAccount::new(self.credits.data_lanes);
        if let Some(pauses) = &mut self.pauses {
            pauses.end_all(now);
            self.paused_until = pauses.until();
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
    #[inline(always)]
    pub fn departs(&mut self, frame: &Frame, end: Instant, step: Step) -> Option<Box<DeviceEvent>> {
        let (size, begin, has_credit) = match frame.kind {
            FrameKind::Infiniband => {
                let size = frame.line_size();
                (size, self.free_at, self.credits.charge(frame, size))
            }
            FrameKind::InfinibandLink => (frame.line_size(), self.free_at, !is_init(frame)),
            FrameKind::Ethernet => (frame.line_size(), self.free_at.max(self.paused_until), true),
        };
        // Sizes of frames are far below what could overflow.
        let duration = size.get().wrapping_add(self.overhead.get()).wrapping_mul(self.octet_ps);
        if !has_credit || end.as_ps() < begin.max(step.since).as_ps().wrapping_add(duration) {
            return self.judge(frame, end, step.since);
        }
        self.free_at = end;
        None
    }

    /// Finds the law that a frame broke, if any, after it was charged.
    #[cold]
    #[inline(never)]
    fn judge(&mut self, frame: &Frame, end: Instant, since: Instant) -> Option<Box<DeviceEvent>> {
        let size = frame.line_size();
        let duration = (size + self.overhead).time_at(self.rate?);
        let start = Instant::from_ps(end.as_ps().saturating_sub(duration.as_ps()));
        let free_at = std::mem::replace(&mut self.free_at, end);
        let violation = if start < free_at {
            (Law::LineRate, 0, free_at)
        } else if start < since {
            (Law::Causality, 0, since)
        } else {
            match (frame.kind, &mut self.pauses) {
                (FrameKind::Ethernet, None) => return None,
                (FrameKind::Ethernet, Some(pauses)) => {
                    let (priority, until) = pauses.bars(frame, start)?;
                    (Law::Pause, priority, until)
                }
                _ => (Law::Credit, self.credits.settle(frame)?, Instant::NEVER),
            }
        };
        self.report(violation, start, size)
    }

    /// Notes a frame that arrived at `arrived` at the port that sends, and is handled in `step`. `is_local` says that it
    /// controls the flow of this link ([`crate::cable::is_link_local`]).
    #[inline(always)]
    pub fn arrives(
        &mut self,
        frame: &Frame,
        is_local: bool,
        arrived: Instant,
        step: Step,
    ) -> Option<Box<DeviceEvent>> {
        if is_local {
            self.obey(frame, arrived, step.now);
        }
        let earliest = arrived.max(self.not_before);
        if earliest <= step.now {
            return None;
        }
        self.report((Law::Delay, 0, earliest), step.now, frame.line_size())
    }

    /// Applies a frame that controls the flow of this link.
    #[inline(never)]
    fn obey(&mut self, frame: &Frame, arrived: Instant, now: Instant) {
        match &mut self.pauses {
            None => self.credits.extend(frame),
            Some(pauses) => {
                pauses.apply(frame, arrived, now);
                self.paused_until = pauses.until();
            }
        }
    }

    /// The event of the first violation.
    #[cold]
    fn report(
        &mut self,
        (law, lane, earliest): Violation,
        at: Instant,
        bytes: Bytes,
    ) -> Option<Box<DeviceEvent>> {
        let is_first = !std::mem::replace(&mut self.is_broken, true);
        let kind = EventKind::Violation { law, earliest, bytes };
        is_first.then(|| Box::new(DeviceEvent { at, port: self.port, tc: lane, kind }))
    }
}

/// Longer than an octet takes at any rate.
const NOT_WHOLE: u64 = 1 << 40;

/// Picoseconds that an octet takes at `rate`, if that is a whole number.
fn octet_ps(rate: BitRate) -> u64 {
    const BITS_PS: u64 = 8_000_000_000_000;
    if BITS_PS.is_multiple_of(rate.get()) { BITS_PS / rate.get() } else { NOT_WHOLE }
}

/// How far the limit `to` is ahead of the count `from`, in blocks: the counters are twelve bits wide, and after a packet a
/// limit is at most half of their range ahead. Source: IBTA Vol 1, 7.9.4.2.
fn ahead(to: u16, from: u16) -> i64 {
    const BLOCKS: u16 = 0xfff;
    /// Blocks of the longest packet: 4096 octets of payload and all headers.
    const PACKET_MAX: u16 = 66;
    const AHEAD_MAX: u16 = 2048 + PACKET_MAX;
    match to.wrapping_sub(from) & BLOCKS {
        ahead @ ..=AHEAD_MAX => i64::from(ahead),
        behind => i64::from(behind) - i64::from(BLOCKS) - 1,
    }
}

/// Whether a link packet initializes its lane.
#[inline]
fn is_init(frame: &Frame) -> bool {
    frame.octets.first().is_some_and(|first| first >> 4 == FlowControlOp::Init.bits())
}

impl CreditAccount {
    /// No data lane has credit; VL15 and lanes that the link does not have need none.
    fn new(data_lanes: u8) -> CreditAccount {
        let room = |lane| if lane < usize::from(data_lanes) { 0 } else { i64::MAX };
        CreditAccount { room: std::array::from_fn(room), limits: Default::default(), data_lanes }
    }

    /// Charges a packet to its lane, and returns whether the lane had credit for it.
    #[inline]
    fn charge(&mut self, frame: &Frame, size: Bytes) -> bool {
        let Some(first) = frame.octets.first() else { return true };
        let room = &mut self.room[usize::from(first >> 4)];
        *room = room.wrapping_sub(i64::from(blocks(size)));
        *room >= 0
    }

    /// The lane of a packet that was charged, if that exceeds its credit. A link packet that initializes restarts the
    /// counts.
    fn settle(&mut self, frame: &Frame) -> Option<u8> {
        if frame.kind == FrameKind::Infiniband {
            let lane = frame.octets.first()? >> 4;
            return (self.room[usize::from(lane)] < 0).then_some(lane);
        }
        if is_init(frame) {
            self.restart();
        }
        None
    }

    /// The link trains: nothing has been sent. A limit of before counts until the next one, which precedes the first packet.
    fn restart(&mut self) {
        let lanes = self.room.iter_mut().zip(self.limits).take(usize::from(self.data_lanes));
        lanes.for_each(|(room, limit)| *room = ahead(limit, 0));
    }

    /// Applies a good flow-control packet. One that initializes restarts the counts of this end too.
    fn extend(&mut self, frame: &Frame) {
        if frame.kind != FrameKind::InfinibandLink {
            return;
        }
        let packet = match frame.is_unchecked() {
            true => FlowControlPacket::parse(&frame.octets),
            false => FlowControlPacket::parse_intact(&frame.octets),
        };
        let Ok(packet) = packet else { return };
        let lane = packet.virtual_lane.index();
        if matches!(packet.op, FlowControlOp::Unknown(_)) || lane >= usize::from(self.data_lanes) {
            return;
        }
        if packet.op == FlowControlOp::Init {
            self.restart();
        }
        let sent = self.limits[lane].wrapping_sub(self.room[lane] as u16);
        self.room[lane] = ahead(packet.fccl, sent);
        self.limits[lane] = packet.fccl;
    }
}

impl PauseAccount {
    fn new(config: &PauseConfig, rate: BitRate) -> PauseAccount {
        PauseAccount {
            rate: config.quanta_rate.unwrap_or(rate),
            paused: Default::default(),
            edges: config.outages.iter().flat_map(|outage| [outage.from, outage.to]).collect(),
            is_down: false,
            config: config.clone(),
        }
    }

    /// Applies the outages that began or ended by `now`: each ends all pauses.
    fn pass_edges(&mut self, now: Instant) {
        while let Some(edge) = self.edges.pop_front_if(|edge| *edge <= now) {
            self.is_down = !self.is_down;
            self.end_all(edge);
        }
    }

    fn end_all(&mut self, at: Instant) {
        self.paused.iter_mut().for_each(|(_, until)| *until = at.min(*until));
    }

    /// The end of the latest pause.
    fn until(&self) -> Instant {
        self.paused.iter().map(|(_, until)| *until).max().unwrap_or_default()
    }

    /// The pause in which a frame that starts at `start` may not: its priority, and when it ends.
    #[inline(never)]
    fn bars(&mut self, frame: &Frame, start: Instant) -> Option<(u8, Instant)> {
        if is_link_local(frame.kind, &frame.octets) {
            return None;
        }
        self.pass_edges(start);
        let (octets, length) = (&frame.octets[..], frame.octets_len());
        let map = &self.config.priorities;
        let headers = classify_ethernet_by(octets, length, map, &self.config.project).ok()?;
        let (from, until) = *self.paused.get(headers.lane.index())?;
        (from <= start && start < until).then_some((headers.lane.get(), until))
    }

    /// Applies a good MAC control frame of the link's kind that arrived at `arrived`. What the sender handles late it
    /// obeys from then on.
    #[inline(never)]
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
    }
}

#[cfg(test)]
mod tests;
