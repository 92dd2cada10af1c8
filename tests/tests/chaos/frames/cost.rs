//! What a hostile frame costs the worker, by class of fault, against a good frame that is forwarded.
//!
//! No thread and no clock: batches of one class are sent to the port, and the time of the processor is taken from the
//! first system call that receives them until the switch has nothing more to do. Classes take turns, and each is compared
//! with the good frames of its own round.

use super::bed::{self, Carrier, SWITCH};
use super::cables::Cables;
use super::forge::{Forge, Forged, GOOD};
use emulation::cable::exchange::Exchange;
use emulation::cable::inbox::Accepted;
use emulation::cable::lines::Lines;
use emulation::clock::{Clock, monotonic_ns, process_cpu_ns};
use proto::device::Device;
use proto::frame::{Frame, FrameKind};
use proto::ids::{PortNumber, VirtualLane};
use proto::link::credit::CreditFlow;
use proto::technology::Technology;
use proto::units::{BitRate, Bytes, Duration, Instant};
use proto::wire::infiniband::FlowControlPacket;
use std::io;
use std::num::NonZeroU64;

/// Rounds of all classes, and frames of a batch: a Unix socket holds 11 (`net.unix.max_dgram_qlen`).
const ROUNDS: usize = 301;
const BATCH: usize = 10;
/// Fabric time in which the switch forwards a batch, and after which both lines are idle.
const FORWARDING: Duration = Duration::from_us(20);
const PAUSE: Duration = Duration::from_us(200);

/// The median costs of all classes over that of a good frame of the same round, in percent, by falling cost.
///
/// # Errors
/// Where the test may not make namespaces.
pub fn ratios(carrier: Carrier) -> io::Result<Vec<(&'static str, u64)>> {
    let lab = bed::lab(carrier, "100 Gbps");
    let mut cables = Cables::new(carrier, 1, &lab.fabric.wiring)?;
    let clock = Clock::new(monotonic_ns(), NonZeroU64::MIN);
    let hosts = bed::hosts(&lab.fabric.wiring);
    let lines = Lines::new(&lab.fabric.wiring, &hosts, SWITCH, false).expect("a good wiring");
    let exchange = cables.exchange(SWITCH, carrier, &clock, &lines);
    let mut devices = launch::virtual_clock::devices(&lab).expect("good configurations");
    let mut rig = Rig {
        exchange,
        lines,
        switch: devices.pop().expect("the last node"),
        now: clock.now(),
        clock: clock.clone(),
        credits: (carrier.technology() == Technology::Infiniband)
            .then(|| [(); 2].map(|()| credits(clock.now()))),
    };
    rig.switch.begin(rig.now);
    let mut forge: Forge = bed::forge(carrier, 1, &lab.fabric.wiring);
    let classes = forge.classes();
    let mut costs = vec![Vec::with_capacity(ROUNDS); classes.len()];
    for _ in 0..ROUNDS {
        for (class, costs) in classes.iter().zip(&mut costs) {
            rig.rest();
            let batch: Vec<Forged> = (0..BATCH).map(|_| forge.of_class(class, rig.now)).collect();
            let sent = batch.iter().filter(|one| cables.enemy.send(&one.octets, one.foreign));
            let sent = sent.count();
            costs.push(rig.cost_of(sent));
        }
    }
    let before = rig.departures();
    assert!(before > (ROUNDS * BATCH) as u64 / 2, "good frames are forwarded, not {before}");
    let mut all: Vec<_> = (classes.iter().zip(&costs).skip(1))
        .map(|(class, own)| {
            let ratios = own.iter().zip(&costs[0]).filter(|(own, good)| **own > 0 && **good > 0);
            let mut ratios: Vec<u64> = ratios.map(|(own, good)| own * 100 / good).collect();
            ratios.sort_unstable();
            (*class, ratios.get(ratios.len() / 2).copied().unwrap_or(0))
        })
        .collect();
    all.sort_by_key(|(_, ratio)| std::cmp::Reverse(*ratio));
    assert_eq!(classes[0], GOOD);
    Ok(all)
}

/// The credits of a line's far end, which has all the buffer that can be announced.
fn credits(now: Instant) -> CreditFlow {
    let (buffer, frame) = (Bytes::new(64 * 2_048), Bytes::new(2_200));
    CreditFlow::new(1, buffer, frame, BitRate::gbps(100), bed::LANES, now)
}

/// A switch and its sockets without a worker.
struct Rig {
    exchange: Exchange,
    lines: Lines,
    switch: Box<dyn Device>,
    clock: Clock,
    now: Instant,
    /// Of the receiver at the second port and of the hostile end at the third.
    credits: Option<[CreditFlow; 2]>,
}

impl Rig {
    /// Receives and handles the frames of a batch. Returns the time of the processor per frame, in nanoseconds.
    fn cost_of(&mut self, frames: usize) -> u64 {
        let mut arrived = Vec::with_capacity(2 * BATCH);
        let begin_ns = process_cpu_ns();
        let (mut seen, mut empty) = (0, 0);
        while seen < frames && empty < 1_000 {
            let count = self.exchange.receive(&self.lines, |accepted| arrived.push(accepted));
            seen += count;
            empty += usize::from(count == 0);
        }
        for accepted in arrived.drain(..) {
            self.handle(accepted);
        }
        self.forward();
        let spent_ns = process_cpu_ns() - begin_ns;
        assert_eq!(seen, frames, "a frame of the batch did not arrive");
        spent_ns.checked_div(frames as u64).unwrap_or(0)
    }

    fn handle(&mut self, Accepted { line, frame, arrived }: Accepted) {
        // A worker keeps frames until they arrive.
        if arrived > self.now + FORWARDING {
            return self.exchange.recycle(frame);
        }
        self.now = self.now.max(arrived);
        self.switch.handle_frame(line.port, frame, arrived, self.now);
        self.drain();
    }

    /// Lets the switch send all that it has.
    fn forward(&mut self) {
        let until = self.now + FORWARDING;
        while let Some(due) = self.switch.poll_timeout().filter(|due| *due <= until) {
            self.now = self.now.max(due);
            self.switch.handle_timeout(self.now);
            self.drain();
        }
    }

    fn drain(&mut self) {
        while let Some(departure) = self.switch.poll_transmit(self.now) {
            let Frame { kind, octets, .. } = &departure.frame;
            let far = self.credits.as_mut().zip(departure.port.index().checked_sub(1));
            if let Some((credits, end)) = far {
                let credits = &mut credits[end];
                if let Ok(packet) = FlowControlPacket::parse(octets)
                    && *kind == FrameKind::InfinibandLink
                {
                    credits.on_control(&packet, self.now);
                } else {
                    let size = departure.frame.line_size();
                    assert!(credits.admit(VirtualLane::ZERO, size, self.now), "beyond its credits");
                    credits.release(VirtualLane::ZERO, size, self.now);
                }
            }
            self.exchange.recycle(departure.frame);
        }
        while self.switch.poll_event().is_some() {}
    }

    /// Time passes, and the far ends send their credits.
    fn rest(&mut self) {
        // Frames without stamps arrive by the clock.
        self.now = (self.now + PAUSE).max(self.clock.now());
        self.exchange.pass_time(self.now);
        self.switch.handle_timeout(self.now);
        self.drain();
        for end in 0..2 {
            let now = self.now;
            let Some(credits) = &mut self.credits else { return };
            credits[end].handle_timeout(now);
            while let Some(word) = self.credits.as_mut().and_then(|all| all[end].poll_control(now))
            {
                let octets = word.to_octets()[..].into();
                let frame = Frame::unchecked(FrameKind::InfinibandLink, octets);
                self.switch.handle_frame(PortNumber::from_index(end + 1), frame, now, now);
                self.drain();
            }
        }
        self.forward();
    }

    /// Data frames that left by the second port.
    fn departures(&mut self) -> u64 {
        let mut reading = proto::counters::DeviceReading::default();
        self.switch.read_to(proto::device::Depth::Ports, self.now, &mut reading);
        reading.ports[1].lanes.iter().map(|lane| lane.counters.tx_frames).sum()
    }
}
