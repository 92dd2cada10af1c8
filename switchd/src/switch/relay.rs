//! The way of a packet through the switch: route, admission, queue; and the end of its transmission.
//!
//! A packet that is dropped before its admission occupies only what its port reserved for it: input
//! buffer with credits, nothing with pauses.

use super::Switch;
use super::packet::{Occupied, Packet};
use crate::egress::{Context, UnderWay};
use crate::memory::queues::{Occupancy, QueueId, Stored};
use crate::memory::{Admission, HeadroomAlarm};
use crate::routing::router::Decision;
use crate::routing::{NotificationAction, RoutedPacket};
use management::agent::partitions::Checkpoint;
use proto::counters::DropReason;
use proto::device::Step;
use proto::events::{DeviceEvent, EventKind};
use proto::ids::{Address, Lid, PortNumber, VirtualLane};
use proto::link::port::LinkPort;
use proto::units::{Bytes, Instant};

impl Switch {
    /// Forwards a packet that passed the checks of its port.
    pub(super) fn relay(&mut self, mut packet: Packet) {
        if let Some(edge) = self.edges.get(packet.input.index()) {
            edge.receive(&mut packet.frame, &mut packet.headers);
        }
        let is_data = packet.lane != VirtualLane::MANAGEMENT;
        if is_data && self.enforcement.refuses_in(packet.input, &packet.frame.octets) {
            let at = Checkpoint::Inbound(packet.input);
            self.note_bad_partition(at, &packet.frame.octets, packet.now);
            return self.discard(packet, DropReason::PartitionKey);
        }
        if self.is_for_management(&packet) {
            return self.manage(packet);
        }
        if packet.lane == VirtualLane::MANAGEMENT {
            let own = [Lid::PERMISSIVE, self.lid].map(Address::Lid);
            if own.contains(&packet.headers.destination) {
                return self.discard(packet, DropReason::Management);
            }
        }
        let Packet { ref frame, ref headers, input, now, .. } = packet;
        if self.routing.inspects(headers) {
            match self.routing.on_notification(input, &frame.octets, now) {
                NotificationAction::Forward => {}
                NotificationAction::Absorb => return self.absorb(packet),
                NotificationAction::Refuse => {
                    return self.discard(packet, DropReason::NotificationForged);
                }
            }
        }
        let passing = RoutedPacket { input, headers, octets: &frame.octets, now };
        match self.routing.route(passing) {
            Decision::Unicast(output) if output == input => {
                self.discard(packet, DropReason::Hairpin);
            }
            Decision::Unicast(output) => match self.admit(&packet) {
                Admission::Taken => self.enqueue(packet, output, None),
                Admission::Refused(reason) => self.refuse(packet, &[output], reason),
            },
            Decision::Multicast(outputs) => {
                let mut copies = std::mem::take(&mut self.copies);
                copies.clear();
                copies.extend(outputs.iter().filter(|output| **output != input));
                self.replicate(packet, &copies);
                self.copies = copies;
            }
            Decision::Drop(reason) => self.discard(packet, reason),
        }
    }

    /// Queues a copy of a packet at each output. The copies share its room in the input buffer.
    fn replicate(&mut self, packet: Packet, outputs: &[PortNumber]) {
        let Some((last, others)) = outputs.split_last() else {
            return self.discard(packet, DropReason::Hairpin);
        };
        if let Admission::Refused(reason) = self.admit(&packet) {
            return self.refuse(packet, outputs, reason);
        }
        // Management packets occupy no input buffer that copies could share.
        let shares_room = packet.lane != VirtualLane::MANAGEMENT;
        let group = shares_room.then(|| self.take_group(outputs.len()));
        self.balance.injected += others.len() as u64;
        for output in others {
            self.enqueue(packet.clone(), *output, group);
        }
        self.enqueue(packet, *last, group);
    }

    /// A free group for so many copies.
    fn take_group(&mut self, copies: usize) -> u32 {
        let free = self.groups.iter().position(|copies| *copies == 0);
        let group = free.unwrap_or(self.groups.len());
        if free.is_none() {
            self.groups.push(0);
        }
        self.groups[group] = copies as u32;
        group as u32
    }

    /// Appends an admitted packet to its queue at `output`; the congestion point judges it there.
    pub(super) fn enqueue(&mut self, packet: Packet, output: PortNumber, group: Option<u32>) {
        self.mark_dirty(output, packet.now);
        let index = output.index();
        if packet.lane == VirtualLane::MANAGEMENT {
            let Packet { frame, .. } = packet;
            if let Err(frame) = self.egress[index].store_management(frame) {
                self.discard(Packet { frame, ..packet }, DropReason::ManagementOverrun);
            }
            return;
        }
        let lane = self.sl2vl.lane(packet.input, output, packet.headers.level);
        let id = QueueId { input: packet.input, output, lane };
        if let Some((port, reason)) = self.refusal(id, &packet) {
            let (size, now) = (packet.headers.size, packet.now);
            self.release(Occupied { input: id.input, lane: packet.lane, size, group }, now);
            if reason.is_want_of_room() {
                self.report_refused(id, size, now);
            }
            if reason == DropReason::PartitionKey {
                self.note_bad_partition(Checkpoint::Outbound(port), &packet.frame.octets, now);
            }
            return self.drop_at(port, packet, reason);
        }
        let Packet { mut frame, headers, input, lane: input_lane, arrived, now } = packet;
        if let Some(edge) = self.edges.get(index) {
            edge.send(&mut frame, lane);
        }
        let stored = Stored { frame, headers, input, input_lane, arrived, group };
        let queued = self.queues.store(stored, output, lane);
        let port = &mut self.ports[index];
        note_queue(queued.occupancy, lane, port, now);
        let mut context =
            Context { port, pool: &mut self.pool, log: &mut self.log, step: Step::at(now) };
        let notification = self.egress[index].on_stored(id, queued, &mut context);
        if let Some(notification) = notification {
            self.send_notification(id, notification, now);
        }
    }

    /// Why a packet may not join queue `id`, and the port that counts the drop.
    fn refusal(&mut self, id: QueueId, packet: &Packet) -> Option<(PortNumber, DropReason)> {
        let QueueId { input, output, lane } = id;
        if lane == VirtualLane::MANAGEMENT || !self.ports[output.index()].is_operational(lane) {
            return Some((input, DropReason::Lane));
        }
        if self.shut.contains(output) {
            return Some((output, DropReason::LinkState));
        }
        if self.enforcement.refuses_out(output, &packet.frame.octets) {
            return Some((output, DropReason::PartitionKey));
        }
        if self.drops_for_storm(output, lane) {
            return Some((output, DropReason::PauseStorm));
        }
        let memory = self.memory.as_ref()?;
        let standing = self.queues.standing(output, lane);
        let joins = memory.may_join(input, packet.lane, packet.headers.size, standing);
        (!joins).then_some((output, DropReason::QueueFull))
    }

    /// Reserves room for a packet in the memory of the switch.
    fn admit(&mut self, packet: &Packet) -> Admission {
        let Some(memory) = &mut self.memory else { return Admission::Taken };
        let Packet { input: port, lane, now: at, .. } = *packet;
        let admission = memory.admit(port, lane, packet.headers.size);
        let alarm = memory.take_alarm();
        self.update_pauses(port, lane, at);
        if let Some(HeadroomAlarm { used, headroom }) = alarm {
            let kind = EventKind::HeadroomAlarm { used, headroom };
            self.log.push(DeviceEvent { at, port, tc: lane.get(), kind });
        }
        admission
    }

    /// Drops a packet on its way to `outputs` for which the memory has no room.
    fn refuse(&mut self, packet: Packet, outputs: &[PortNumber], reason: DropReason) {
        let Packet { input, headers, now, .. } = packet;
        for output in outputs.iter().copied() {
            let lane = self.sl2vl.lane(input, output, headers.level);
            self.report_refused(QueueId { input, output, lane }, headers.size, now);
        }
        self.discard(packet, reason);
    }

    /// Reports a drop for want of room to the congestion point of the queue.
    fn report_refused(&mut self, id: QueueId, size: Bytes, now: Instant) {
        let index = id.output.index();
        if id.lane != VirtualLane::MANAGEMENT && self.ports[index].is_operational(id.lane) {
            let occupancy = self.queues.occupancy(id);
            self.egress[index].on_refused(id, size, occupancy, &self.ports[index], now);
        }
    }

    /// Drops a packet before its admission.
    pub(super) fn discard(&mut self, packet: Packet, reason: DropReason) {
        let input = packet.input;
        self.ports[input.index()].release(packet.lane, packet.headers.size, packet.now);
        self.drop_at(input, packet, reason);
    }

    /// Ends a packet for this switch itself before its admission.
    pub(super) fn absorb(&mut self, packet: Packet) {
        self.ports[packet.input.index()].release(packet.lane, packet.headers.size, packet.now);
        self.balance.delivered += 1;
        self.pool.recycle(packet.frame);
    }

    /// Counts the drop of a packet at `port`.
    fn drop_at(&mut self, port: PortNumber, packet: Packet, reason: DropReason) {
        let Packet { frame, headers, lane, now, .. } = packet;
        self.ports[port.index()].count_drop(reason, headers.size, lane, now, &mut self.log);
        self.pool.recycle(frame);
    }

    /// Frees occupied buffer; of copies that share it, the last one frees it.
    pub(super) fn release(&mut self, occupied: Occupied, at: Instant) {
        let Occupied { input, lane, size, group } = occupied;
        if let Some(group) = group {
            let copies = &mut self.groups[group as usize];
            *copies -= 1;
            if *copies > 0 {
                return;
            }
        }
        self.ports[input.index()].release(lane, size, at);
        self.mark_dirty_for_control(input, at);
        if let Some(memory) = &mut self.memory {
            memory.release(input, lane, size);
            self.update_pauses(input, lane, at);
        }
    }

    /// Reports the occupancy of `lane` to its port after a change, and requests or ends pauses where the
    /// memory demands it.
    fn update_pauses(&mut self, port: PortNumber, lane: VirtualLane, now: Instant) {
        let Some(memory) = &mut self.memory else { return };
        self.ports[port.index()].note_input(lane, memory.held(port, lane), now);
        for input in memory.take_changed().iter() {
            let demands = memory.demands(input);
            self.ports[input.index()].demand(demands, now);
            self.dirty.insert(input);
        }
    }

    /// Completes the transmission at `output` if its last bit has left by `now`.
    #[inline]
    pub(super) fn finish(&mut self, output: PortNumber, now: Instant) {
        if self.egress[output.index()].has_sent(now)
            && let Some(done) = self.egress[output.index()].finish()
        {
            self.complete(done);
        }
    }

    /// Frees the room of a frame whose last bit has left, and judges the frame behind it.
    #[inline(never)]
    fn complete(&mut self, done: UnderWay) {
        let UnderWay { queue: id, input_lane, size, end, group, waited } = done;
        let QueueId { input, output, lane } = id;
        self.release(Occupied { input, lane: input_lane, size, group }, end);
        self.queues.finished(id, size);
        let occupancy = self.queues.occupancy(id);
        let port = &mut self.ports[output.index()];
        note_queue(occupancy, lane, port, end);
        if self.routing.watches(output) {
            self.routing.on_departure(output, occupancy.output);
        }
        if let Some(packet) = self.queues.head(id) {
            let blocked = port.blocked_since(lane).or(waited);
            let step = Step::at(end);
            let mut context = Context { port, pool: &mut self.pool, log: &mut self.log, step };
            let egress = &mut self.egress[output.index()];
            let notification = egress.on_head(id, (packet, occupancy), blocked, &mut context);
            if let Some(notification) = notification {
                self.send_notification(id, notification, end);
            }
        }
        self.dirty.insert(output);
        self.mark_coupled_dirty(end);
    }
}

/// Sets the queue gauge of a port.
pub(super) fn note_queue(
    occupancy: Occupancy,
    lane: VirtualLane,
    port: &mut LinkPort,
    now: Instant,
) {
    port.counters_mut(lane).out_queue.set(occupancy.output.get(), now);
}
