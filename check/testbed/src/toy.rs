//! Test devices whose results can be computed by hand: a source, a relay and a sink.

use bytes::BytesMut;
use proto::counters::DeviceReading;
use proto::device::{Control, Departure, Device, Instrumented};
use proto::events::DeviceEvent;
use proto::frame::{Frame, FrameKind};
use proto::ids::PortNumber;
use proto::units::{Duration, Instant};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

/// Wire time of a toy's frame, whatever its octets.
pub const FRAME_TIME: Duration = Duration::from_ns(2_000);
/// Delay of each cable of [`CHAIN`].
pub const DELAY: Duration = Duration::from_ns(500);

/// Number, arrival and time of handling of each frame that a sink received.
pub type Log = Arc<Mutex<Vec<(u32, Instant, Instant)>>>;

/// Sends `to_send` frames back to back, relays between two ports, or logs what comes to its one.
pub struct Toy {
    ports: usize,
    to_send: u32,
    sent: u32,
    free: Vec<Instant>,
    queue: VecDeque<Departure>,
    log: Log,
    last: Instant,
    fragile: bool,
}

impl Toy {
    /// A toy of one or two ports that logs to `log`.
    pub fn boxed(ports: usize, to_send: u32, log: &Log) -> Box<dyn Device> {
        Box::new(Toy::new(ports, to_send, log))
    }

    /// Panics when it gets a frame.
    pub fn fragile(log: &Log) -> Box<dyn Device> {
        Box::new(Toy { fragile: true, ..Toy::new(2, 0, log) })
    }

    fn new(ports: usize, to_send: u32, log: &Log) -> Toy {
        Toy {
            ports,
            to_send,
            sent: 0,
            free: vec![Instant::ZERO; ports],
            queue: VecDeque::new(),
            log: Arc::clone(log),
            last: Instant::ZERO,
            fragile: false,
        }
    }

    fn transmit(&mut self, port: PortNumber, frame: Frame, earliest: Instant) {
        let free = &mut self.free[port.index()];
        *free = earliest.max(*free) + FRAME_TIME;
        self.queue.push_back(Departure { port, frame, at: *free });
    }

    fn tick(&mut self, now: Instant) {
        assert!(now >= self.last, "time ran back");
        self.last = now;
    }
}

impl Device for Toy {
    fn handle_frame(&mut self, port: PortNumber, frame: Frame, arrived: Instant, now: Instant) {
        assert!(arrived <= now, "a frame before its time");
        self.tick(now);
        assert!(!self.fragile, "a fragile toy broke");
        if self.ports == 2 {
            let other = PortNumber::from_index(1 - port.index());
            return self.transmit(other, frame, arrived);
        }
        let number =
            frame.octets.first_chunk().map_or(u32::MAX, |octets| u32::from_be_bytes(*octets));
        self.log.lock().expect("no test thread panicked").push((number, arrived, now));
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.tick(now);
        if now > Instant::ZERO {
            assert!(self.poll_timeout().is_some_and(|at| at <= now), "called before its time");
        } else if self.to_send == 0 {
            return;
        }
        let mut octets = BytesMut::zeroed(256);
        octets[..4].copy_from_slice(&self.sent.to_be_bytes());
        self.sent += 1;
        let frame = Frame::intact(FrameKind::Infiniband, octets);
        self.transmit(PortNumber::from_index(0), frame, now);
    }

    fn poll_transmit(&mut self, _: Instant) -> Option<Departure> {
        self.queue.pop_front()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        (self.sent < self.to_send).then_some(self.free[0])
    }

    fn poll_event(&mut self) -> Option<DeviceEvent> {
        None
    }

    fn ports(&self) -> usize {
        self.ports
    }
}

impl Instrumented for Toy {
    fn read(&mut self, _: Instant, _: &mut DeviceReading) {}

    fn begin_bin(&mut self, _: Instant) {}
}

impl Control for Toy {}

/// The wiring source – relay – sink, as JSON: nodes 0, 2 and 1.
pub const CHAIN: &str = r#"{
    "nodes": [
        { "name": "source", "kind": "nic", "ports": 1, "level": 0 },
        { "name": "sink", "kind": "nic", "ports": 1, "level": 0 },
        { "name": "relay", "kind": "switch", "ports": 2, "level": 0 }
    ],
    "links": [
        {
            "a": { "node": 0, "port": 1 }, "b": { "node": 2, "port": 1 },
            "delay": "500 ns", "frame_time": "2 us"
        },
        {
            "a": { "node": 2, "port": 2 }, "b": { "node": 1, "port": 1 },
            "delay": "500 ns", "frame_time": "2 us"
        }
    ]
}"#;

/// When frame `number` of a chain reaches the sink, to the picosecond.
pub fn arrival(number: u32) -> Instant {
    Instant::ZERO + FRAME_TIME * (u64::from(number) + 2) + DELAY * 2
}
