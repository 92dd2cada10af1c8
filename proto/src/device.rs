//! The contract between a device and whatever drives it: frames and time in, frames and a next
//! wake-up out.
//!
//! A device is a value with one owner. It takes no lock, reads no clock and waits for nothing. A
//! driver, on a wall clock or a virtual one, keeps these rules:
//!
//! * `now` never runs back. `arrived` is the instant the frame's last bit reached the port (the
//!   sender's stamp plus the link's delay), `arrived ≤ now`; it serves only the serializer and the
//!   account of latency. Queues, marks and credits change in the order of the calls.
//! * After every `handle_*` call the driver drains `poll_transmit` until it answers `None`, and
//!   asks `poll_timeout` when to come back.
//! * A [`Departure`] names the instant its last bit leaves. The driver delivers it then; one that
//!   lies in the past is delivered at once, under its own stamp, and counted as late.

use crate::counters::{BinReading, DeviceReading};
use crate::events::DeviceEvent;
use crate::frame::Frame;
use crate::ids::PortNumber;
use crate::units::{BitRate, Instant};
use serde::{Deserialize, Serialize};

/// A frame that a device has put on a line.
#[derive(Clone, Debug)]
pub struct Departure {
    /// By which port it leaves.
    pub port: PortNumber,
    /// The frame.
    pub frame: Frame,
    /// When its last bit leaves.
    pub at: Instant,
}

/// How much of a device is read: who drives it has better to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Depth {
    /// What ports count, and the balance: [`Device::read_ports`].
    Ports,
    /// Everything but flows sent.
    Received,
    /// Everything but flows of which no frame has left.
    Begun,
    /// Everything: [`Device::read`].
    All,
}

/// A switch or a NIC.
pub trait Device: Send {
    /// A frame's last bit reached `port` at `arrived`.
    fn handle_frame(&mut self, port: PortNumber, frame: Frame, arrived: Instant, now: Instant);

    /// The instant named by [`Device::poll_timeout`] has come, or passed.
    fn handle_timeout(&mut self, now: Instant);

    /// The next frame that starts to leave by any port, if one may at `now`.
    fn poll_transmit(&mut self, now: Instant) -> Option<Departure>;

    /// When [`Device::handle_timeout`] must be called, if nothing arrives before.
    fn poll_timeout(&self) -> Option<Instant>;

    /// The next event not yet taken.
    fn poll_event(&mut self) -> Option<DeviceEvent>;

    /// Fills `reading` with every counter, integrals closed at `now`. Buffers are reused.
    fn read(&mut self, now: Instant, reading: &mut DeviceReading);

    /// Fills the ports, but for `named` counters, and the balance; the rest of `reading` is left as it is.
    fn read_ports(&mut self, now: Instant, reading: &mut DeviceReading) {
        self.read(now, reading);
    }

    /// Fills so much of `reading`, or more.
    fn read_to(&mut self, depth: Depth, now: Instant, reading: &mut DeviceReading) {
        match depth {
            Depth::Ports => self.read_ports(now, reading),
            Depth::Received | Depth::Begun | Depth::All => self.read(now, reading),
        }
    }

    /// Fills `reading` with what is kept of the bin that ends at `now`; the ports as
    /// [`Device::read_ports`] does. A device that sends no flows need not have its own.
    fn read_bin(&mut self, now: Instant, reading: &mut BinReading) {
        let mut whole = DeviceReading::default();
        self.read_ports(now, &mut whole);
        let ports = whole.ports.into_iter().map(Into::into).collect();
        *reading = BinReading { ports, ..BinReading::default() };
    }

    /// A bin begins at `now`: the extremes of every gauge start anew.
    fn begin_bin(&mut self, now: Instant);

    /// Lets the traffic items called `item`, or all, post messages from now on, or be silent: what they
    /// have posted and nothing of which has left is taken back. False if the device has none of them.
    /// The driver then asks for departures and for the next wake-up as after a `handle_*` call.
    fn let_post(&mut self, _item: Option<&str>, _on: bool, _now: Instant) -> bool {
        false
    }

    /// From the next frame on `port` sends no faster than `rate`; false if it has no such port or its line
    /// is slower than that.
    fn slow_down(&mut self, _port: PortNumber, _rate: BitRate) -> bool {
        false
    }

    /// How many ports the device has.
    fn ports(&self) -> usize;
}
