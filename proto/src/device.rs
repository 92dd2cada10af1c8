//! The contract between a device and its driver: frames and time in, frames and a next wake-up out.
//!
//! A device is a value with one owner. It takes no lock, reads no clock and never blocks. A driver, on a
//! wall clock or a virtual one, follows these rules:
//!
//! * `now` never runs back. `arrived` is the instant at which the frame's last bit reached the port (the
//!   sender's stamp plus the link's delay), `arrived ≤ now`. It only affects the serializer and latency
//!   figures; queues, marks and credits change in the order of the calls.
//! * After each `handle_*` call the driver calls `poll_transmit` until it returns `None`, and then
//!   `poll_timeout` for the next wake-up.
//! * A [`Departure`] is final: its frame does not change any more. It names the instant at which its last
//!   bit leaves, and the driver delivers it then. The frame starts not before the input that caused it
//!   ([`Step::since`]). If the departure has passed all the same, because that input was late, the driver
//!   delivers it at once under its own stamp and counts it as late.
//!
//! [`Device`] is that contract. [`Instrumented`] reads counters, [`Control`] changes a running device.

pub use crate::departure::{Departure, Step};

use crate::counters::{BinReading, DeviceReading};
use crate::events::DeviceEvent;
use crate::frame::Frame;
use crate::ids::{Lid, PortNumber, QueuePairNumber};
use crate::link::LinkConfig;
use crate::units::{BitRate, Instant};
use serde::{Deserialize, Serialize};

/// How much of a device's state a reading covers. A smaller depth costs less time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Depth {
    /// Port counters and the balance: [`Instrumented::read_ports`].
    Ports,
    /// Everything but sent flows.
    Received,
    /// Everything but sent flows without a departed frame.
    Begun,
    /// Everything: [`Instrumented::read`].
    All,
}

/// A switch or a NIC, as its driver runs it.
pub trait Device: Instrumented + Control + Send {
    /// Processes a frame whose last bit reached `port` at `arrived`.
    fn handle_frame(&mut self, port: PortNumber, frame: Frame, arrived: Instant, now: Instant);

    /// Processes the timers that expired by `now`. Call it at [`Device::poll_timeout`] or later.
    fn handle_timeout(&mut self, now: Instant);

    /// The next frame that starts to leave by any port, if one may at `now`.
    fn poll_transmit(&mut self, now: Instant) -> Option<Departure>;

    /// When the driver must call [`Device::handle_timeout`] if no frame arrives before.
    fn poll_timeout(&self) -> Option<Instant>;

    /// Removes the oldest event from the device's log.
    fn poll_event(&mut self) -> Option<DeviceEvent>;

    /// The number of ports.
    fn ports(&self) -> usize;

    /// The configuration of the link at `port`, by which its cable checks what the port sends; `None` for a device
    /// whose departures are not checked.
    fn link(&self, _port: PortNumber) -> Option<&LinkConfig> {
        None
    }

    /// Whether the device may send in a pause: its watchdog ignores pauses while a storm lasts.
    fn ignores_pauses(&self) -> bool {
        false
    }
}

/// The counters of a device.
pub trait Instrumented {
    /// Fills `reading` with all counters, integrals closed at `now`. Buffers of `reading` are reused.
    fn read(&mut self, now: Instant, reading: &mut DeviceReading);

    /// Fills the ports, except for their `named` counters, and the balance; the rest of `reading` stays.
    fn read_ports(&mut self, now: Instant, reading: &mut DeviceReading) {
        self.read(now, reading);
    }

    /// Fills at least the part of `reading` that `depth` covers.
    fn read_to(&mut self, depth: Depth, now: Instant, reading: &mut DeviceReading) {
        match depth {
            Depth::Ports => self.read_ports(now, reading),
            Depth::Received | Depth::Begun | Depth::All => self.read(now, reading),
        }
    }

    /// Fills `reading` with the bin that ends at `now`, the ports as [`Instrumented::read_ports`] does. The
    /// default serves devices that send no flows.
    fn read_bin(&mut self, now: Instant, reading: &mut BinReading) {
        let mut whole = DeviceReading::default();
        self.read_ports(now, &mut whole);
        let ports = whole.ports.into_iter().map(Into::into).collect();
        *reading = BinReading { ports, ..BinReading::default() };
    }

    /// Begins a bin at `now`: minimum and maximum of every gauge restart at the present level.
    fn begin_bin(&mut self, now: Instant);
}

/// A management datagram between a device and a program beside it, which manages the fabric.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManagementDatagram {
    /// The LID at the far end: that of the receiver of a datagram to send, of the sender of a received one.
    pub peer: Lid,
    /// The queue pair at the far end.
    pub queue_pair: QueuePairNumber,
    /// The datagram.
    pub octets: Box<[u8; 256]>,
}

/// Changes to a running device.
pub trait Control {
    /// Starts or stops the traffic items with the name `item`, or all items. Stopping withdraws posted
    /// messages of which no frame has left. Returns false if the device has no such item. Afterwards the
    /// driver polls the device as after a `handle_*` call.
    fn let_post(&mut self, _item: Option<&str>, _on: bool, _now: Instant) -> bool {
        false
    }

    /// Executes the call in `line` for a client of the device's agent, and returns the line of the answer; `None` if
    /// the device has no agent. The protocol is that of docs/reference/agent.md. Afterwards the driver polls the
    /// device as after a `handle_*` call.
    fn answer(&mut self, _line: &str, _now: Instant) -> Option<String> {
        None
    }

    /// Sends a management datagram for a program beside the device. Returns false if the device has no management
    /// agents. Afterwards the driver polls the device as after a `handle_*` call.
    fn send_management(&mut self, _datagram: ManagementDatagram, _now: Instant) -> bool {
        false
    }

    /// The next management datagram for the program beside the device.
    fn poll_management(&mut self) -> Option<ManagementDatagram> {
        None
    }

    /// A subnet manager runs beside the device, or no longer does. Returns false if another one does, or if the
    /// device has no management agents.
    fn claim_manager(&mut self, _on: bool, _now: Instant) -> bool {
        false
    }

    /// Changes settings from the next frame on: tables and keys as in a scenario, docs/tasks/labs.md. `port` limits those
    /// of a link to one port. Keys that are left out stay, and frames that wait keep their place.
    ///
    /// # Errors
    /// Why nothing was changed.
    fn change(&mut self, _settings: &toml::Table, _port: Option<PortNumber>) -> Result<(), String> {
        Err("it has no settings that can change while it runs".to_owned())
    }

    /// The device begins at `now`, not at fabric zero: what would have happened before does not happen. The driver calls it
    /// before anything else.
    fn begin(&mut self, _now: Instant) {}

    /// The adapter with this LID of the plan has started again, with queue pairs that know nothing. Afterwards the driver
    /// polls the device as after a `handle_*` call.
    fn reset_peer(&mut self, _adapter: Lid, _now: Instant) {}

    /// The other end of the link at `port` is gone, or back. Afterwards the driver polls the device as after a `handle_*`
    /// call.
    fn set_link(&mut self, _port: PortNumber, _is_up: bool, _now: Instant) {}

    /// Limits `port` to `rate`, from the next frame on. Returns false if the device has no such port or its
    /// line is slower than `rate`.
    fn slow_down(&mut self, _port: PortNumber, _rate: BitRate) -> bool {
        false
    }
}
