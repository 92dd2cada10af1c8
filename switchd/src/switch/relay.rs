//! The way of a packet through the switch: route, room, queue; and what follows its last bit.
//!
//! A packet that is dropped before it was admitted has only what its port took for it: a place in the
//! input buffer where credits account for it, nothing where pauses do.

use super::Switch;
use super::notify::Judged;
use crate::egress::{Placed, UnderWay};
use crate::memory::queues::{Queues, Stored};
use crate::memory::{Admission, HeadroomAlarm};
use crate::routing::router::Decision;
use crate::routing::{Passage, Passing};
use proto::counters::DropReason;
use proto::events::{DeviceEvent, EventKind};
use proto::frame::{Frame, FrameHeaders};
use proto::ids::{Lid, PortNumber, ServiceLevel, VirtualLane};
use proto::link::port::LinkPort;
use proto::units::{Bytes, Instant};

/// What travels with a packet through the switch.
#[derive(Clone, Copy)]
pub(super) struct Packet {
    pub headers: FrameHeaders,
    pub lane: VirtualLane,
    pub arrived: Instant,
    pub now: Instant,
}

/// Room that a packet, or the copies of one, have taken.
#[derive(Clone, Copy)]
pub(super) struct Taken {
    pub input: PortNumber,
    pub lane: VirtualLane,
    pub size: Bytes,
    /// Copies of one packet share this key.
    pub group: Option<u32>,
}

impl Switch {
    /// A packet passed its port's checks.
    pub(super) fn relay(&mut self, port: PortNumber, mut frame: Frame, mut packet: Packet) {
        if let Some(border) = self.borders.get(port.index()) {
            border.enter(&mut frame, &mut packet.headers);
        }
        if packet.lane == VirtualLane::MANAGEMENT {
            let destination = Lid::new(packet.headers.destination as u16);
            if destination == Lid::PERMISSIVE || destination == self.lid {
                return self.discard(port, frame, packet, DropReason::Management);
            }
        }
        let Packet { ref headers, now, .. } = packet;
        if self.routing.listens_to(headers) {
            match self.routing.hear(port, &frame.octets, now) {
                Passage::Forward => {}
                Passage::Absorb => return self.absorb(port, frame, &packet),
                Passage::Refuse => {
                    return self.discard(port, frame, packet, DropReason::NotificationForged);
                }
            }
        }
        let passing = Passing { input: port, headers, octets: &frame.octets, now };
        match self.routing.route(passing) {
            Decision::Unicast(output) if output == port => {
                self.discard(port, frame, packet, DropReason::Hairpin);
            }
            Decision::Unicast(output) => match self.admit(port, &packet) {
                Admission::Taken => self.enqueue(port, output, frame, packet, None),
                Admission::Refused(reason) => self.refuse(port, &[output], frame, packet, reason),
            },
            Decision::Multicast(outputs) => {
                let outputs: Vec<_> = outputs.iter().copied().filter(|out| *out != port).collect();
                self.replicate(port, &outputs, frame, packet);
            }
            Decision::Drop(reason) => self.discard(port, frame, packet, reason),
        }
    }

    /// Queues a copy of one packet at each output; they share its place in the input buffer.
    fn replicate(
        &mut self,
        port: PortNumber,
        outputs: &[PortNumber],
        frame: Frame,
        packet: Packet,
    ) {
        let Some((last, others)) = outputs.split_last() else {
            return self.discard(port, frame, packet, DropReason::Hairpin);
        };
        if let Admission::Refused(reason) = self.admit(port, &packet) {
            return self.refuse(port, outputs, frame, packet, reason);
        }
        let group = self.groups.iter().position(|copies| *copies == 0).unwrap_or(self.groups.len());
        if group == self.groups.len() {
            self.groups.push(0);
        }
        self.groups[group] = outputs.len() as u32;
        self.balance.injected += others.len() as u64;
        for output in others {
            self.enqueue(port, *output, frame.clone(), packet, Some(group as u32));
        }
        self.enqueue(port, *last, frame, packet, Some(group as u32));
    }

    fn enqueue(
        &mut self,
        port: PortNumber,
        output: PortNumber,
        mut frame: Frame,
        packet: Packet,
        group: Option<u32>,
    ) {
        self.stir(output, packet.now);
        if packet.lane == VirtualLane::MANAGEMENT {
            if let Err(frame) = self.egress[output.index()].store_management(frame) {
                self.discard(port, frame, packet, DropReason::ManagementOverrun);
            }
            return;
        }
        let Packet { headers, lane: input_lane, arrived, now } = packet;
        let lane = self.sl2vl.lane(port, output, ServiceLevel::truncate(headers.level));
        if let Some((place, reason)) = self.refusal(port, output, lane, &packet) {
            self.release(Taken { input: port, lane: input_lane, size: headers.size, group }, now);
            if reason.is_want_of_room() {
                self.tell_refused(Placed { input: port, output, lane }, headers.size, now);
            }
            return self.lose(place, frame, packet, reason);
        }
        if let Some(border) = self.borders.get(output.index()) {
            border.leave(&mut frame, lane);
        }
        let stored = Stored { frame, headers, input: port, input_lane, arrived, group };
        let is_head = self.queues.store(stored, output, lane);
        let place = Placed { input: port, output, lane };
        let out = &mut self.ports[output.index()];
        note_queue(&self.queues, place, out, now);
        let (egress, queues) = (&mut self.egress[output.index()], &mut self.queues);
        egress.on_stored(place, is_head, queues, out, now, &mut self.log);
        self.answer(place, Judged::Tail, now);
    }

    /// Why a packet may not join the queue of `output` and `lane`, and the port that counts it.
    fn refusal(
        &mut self,
        input: PortNumber,
        output: PortNumber,
        lane: VirtualLane,
        packet: &Packet,
    ) -> Option<(PortNumber, DropReason)> {
        if lane == VirtualLane::MANAGEMENT || !self.ports[output.index()].is_operational(lane) {
            return Some((input, DropReason::Lane));
        }
        if self.gives_up(output, lane) {
            return Some((output, DropReason::PauseStorm));
        }
        let memory = self.memory.as_ref()?;
        let standing = self.queues.standing(output, lane);
        let joins = memory.may_join(input, packet.lane, packet.headers.size, standing);
        (!joins).then_some((output, DropReason::QueueFull))
    }

    /// Takes room for a packet of which copies will wait.
    fn admit(&mut self, port: PortNumber, packet: &Packet) -> Admission {
        let Some(memory) = &mut self.memory else { return Admission::Taken };
        let admission = memory.admit(port, packet.lane, packet.headers.size);
        let alarm = memory.take_alarm();
        self.tell(port, packet.lane, packet.now);
        if let Some(HeadroomAlarm { used, headroom }) = alarm {
            let (at, tc) = (packet.now, packet.lane.get());
            let kind = EventKind::HeadroomAlarm { used, headroom };
            self.log.push(DeviceEvent { at, port, tc, kind });
        }
        admission
    }

    /// There was no room for a packet on its way to `outputs`.
    fn refuse(
        &mut self,
        port: PortNumber,
        outputs: &[PortNumber],
        frame: Frame,
        packet: Packet,
        reason: DropReason,
    ) {
        for output in outputs {
            let level = ServiceLevel::truncate(packet.headers.level);
            let lane = self.sl2vl.lane(port, *output, level);
            let place = Placed { input: port, output: *output, lane };
            self.tell_refused(place, packet.headers.size, packet.now);
        }
        self.discard(port, frame, packet, reason);
    }

    /// The congestion point of an output hears that a packet found no room on its way there.
    fn tell_refused(&mut self, place: Placed, size: Bytes, now: Instant) {
        let output = place.output.index();
        self.egress[output].on_refused(place, size, &self.queues, &self.ports[output], now);
    }

    /// A packet ends here before it was admitted.
    fn discard(&mut self, port: PortNumber, frame: Frame, packet: Packet, reason: DropReason) {
        self.ports[port.index()].release(packet.lane, packet.headers.size, packet.now);
        self.lose(port, frame, packet, reason);
    }

    /// A notification ends here, heard and before it was admitted.
    fn absorb(&mut self, port: PortNumber, frame: Frame, packet: &Packet) {
        self.ports[port.index()].release(packet.lane, packet.headers.size, packet.now);
        self.balance.delivered += 1;
        self.pool.recycle(frame);
    }

    /// Counts a packet that ends here at the port which is to blame.
    fn lose(&mut self, port: PortNumber, frame: Frame, packet: Packet, reason: DropReason) {
        let size = packet.headers.size;
        let tc = packet.lane.get();
        self.ports[port.index()].count_drop(reason, size, tc, packet.now, &mut self.log);
        self.pool.recycle(frame);
    }

    /// Gives room back, once all copies that share it are gone.
    pub(super) fn release(&mut self, taken: Taken, at: Instant) {
        let Taken { input, lane, size, group } = taken;
        if let Some(group) = group {
            let copies = &mut self.groups[group as usize];
            *copies -= 1;
            if *copies > 0 {
                return;
            }
        }
        self.ports[input.index()].release(lane, size, at);
        self.stir_to_tell(input, at);
        if let Some(memory) = &mut self.memory {
            memory.release(input, lane, size);
            self.tell(input, lane, at);
        }
    }

    /// Room was taken or given back: ports are told how full they are, and whom they shall silence.
    fn tell(&mut self, port: PortNumber, lane: VirtualLane, now: Instant) {
        let Some(memory) = &mut self.memory else { return };
        self.ports[port.index()].note_input(lane, memory.held(port, lane), now);
        for input in memory.take_changed().iter() {
            let demands = memory.demands(input);
            self.ports[input.index()].demand(demands, now);
            self.stirred.insert(input);
        }
    }

    /// The last bit of a frame has left `output` by now: its room is free, and the frame behind it is
    /// judged.
    #[inline]
    pub(super) fn finish(&mut self, output: PortNumber, now: Instant) {
        if self.egress[output.index()].has_sent(now)
            && let Some(done) = self.egress[output.index()].finish()
        {
            self.finished(output, done);
        }
    }

    #[inline(never)]
    fn finished(&mut self, output: PortNumber, done: UnderWay) {
        let index = output.index();
        let UnderWay { input, input_lane, lane, size, end, group, waited } = done;
        self.release(Taken { input, lane: input_lane, size, group }, end);
        let place = Placed { input, output, lane };
        let queues = &mut self.queues;
        let has_head = queues.finished(input, output, lane, size).is_some();
        let port = &mut self.ports[index];
        note_queue(queues, place, port, end);
        if self.routing.watches(output) {
            self.routing.on_departure(output, queues.standing(output, lane));
        }
        if has_head {
            let blocked = port.blocked_since(lane).or(waited);
            self.egress[index].on_head(place, blocked, queues, port, end, &mut self.log);
            self.answer(place, Judged::Head, end);
        }
        self.stirred.insert(output);
        if self.queues.couples_outputs() {
            self.ports.iter().for_each(|port| self.stirred.insert(port.number()));
        }
    }
}

/// The port shows how much waits for it.
pub(super) fn note_queue(queues: &Queues, place: Placed, port: &mut LinkPort, now: Instant) {
    let standing = queues.standing(place.output, place.lane).get();
    port.counters_mut(place.lane).out_queue.set(standing, now);
}
