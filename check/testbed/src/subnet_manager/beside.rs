//! A device with a manager beside it, as one device.

use super::Manager;
use proto::counters::{BinReading, DeviceReading};
use proto::device::{Control, Departure, Depth, Device, Instrumented};
use proto::events::DeviceEvent;
use proto::frame::Frame;
use proto::ids::PortNumber;
use proto::units::Instant;
use std::sync::{Arc, Mutex, MutexGuard};

/// What the test does at an instant.
pub type Deed = Box<dyn FnOnce(&mut Manager) + Send>;

/// A device with a manager.
pub struct Beside<D> {
    device: D,
    /// Shared with the test, which reads it after the run.
    manager: Arc<Mutex<Manager>>,
    /// Deeds to do, in order.
    script: Vec<(Instant, Deed)>,
    now: Instant,
}

impl<D: Device> Beside<D> {
    /// `device` with `manager` beside it.
    ///
    /// # Panics
    /// If the device has no management, or another manager.
    pub fn new(mut device: D, manager: Manager) -> Beside<D> {
        assert!(device.claim_manager(true, Instant::ZERO), "the device has no other manager");
        let manager = Arc::new(Mutex::new(manager));
        Beside { device, manager, script: Vec::new(), now: Instant::ZERO }
    }

    /// The manager, to read after the run.
    pub fn manager(&self) -> Arc<Mutex<Manager>> {
        Arc::clone(&self.manager)
    }

    fn lock(&self) -> MutexGuard<'_, Manager> {
        self.manager.lock().expect("no other thread uses the manager")
    }

    /// Does `deed` at `at`, which is not before the deeds added earlier.
    pub fn at(mut self, at: Instant, deed: impl FnOnce(&mut Manager) + Send + 'static) -> Self {
        self.script.push((at, Box::new(deed)));
        self
    }

    fn next_deed(&self) -> Instant {
        self.script.first().map_or(Instant::NEVER, |(at, _)| *at)
    }

    /// Carries datagrams both ways until there are none.
    fn exchange(&mut self, now: Instant) {
        self.now = now;
        loop {
            while let Some(message) = self.device.poll_management() {
                self.lock().receive(&message);
            }
            let next = self.lock().poll_outgoing(now);
            match next {
                Some(message) => assert!(self.device.send_management(message, now)),
                None => return,
            }
        }
    }
}

impl<D: Device> Device for Beside<D> {
    fn handle_frame(&mut self, port: PortNumber, frame: Frame, arrived: Instant, now: Instant) {
        self.device.handle_frame(port, frame, arrived, now);
        self.exchange(now);
    }

    fn handle_timeout(&mut self, now: Instant) {
        if self.device.poll_timeout().is_some_and(|due| due <= now) {
            self.device.handle_timeout(now);
        }
        while self.next_deed() <= now {
            let (_, deed) = self.script.remove(0);
            deed(&mut self.lock());
        }
        let is_due = self.lock().poll_timeout() <= now;
        if is_due {
            self.lock().handle_timeout(now);
        }
        self.exchange(now);
    }

    fn poll_transmit(&mut self, now: Instant) -> Option<Departure> {
        self.device.poll_transmit(now)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let device = self.device.poll_timeout().unwrap_or(Instant::NEVER);
        let next = device.min(self.lock().poll_timeout()).min(self.next_deed());
        (next < Instant::NEVER).then_some(next.max(self.now))
    }

    fn poll_event(&mut self) -> Option<DeviceEvent> {
        self.device.poll_event()
    }

    fn ports(&self) -> usize {
        self.device.ports()
    }
}

impl<D: Device> Instrumented for Beside<D> {
    fn read(&mut self, now: Instant, reading: &mut DeviceReading) {
        self.device.read(now, reading);
    }

    fn read_ports(&mut self, now: Instant, reading: &mut DeviceReading) {
        self.device.read_ports(now, reading);
    }

    fn read_to(&mut self, depth: Depth, now: Instant, reading: &mut DeviceReading) {
        self.device.read_to(depth, now, reading);
    }

    fn read_bin(&mut self, now: Instant, reading: &mut BinReading) {
        self.device.read_bin(now, reading);
    }

    fn begin_bin(&mut self, now: Instant) {
        self.device.begin_bin(now);
    }
}

impl<D: Device> Control for Beside<D> {}
