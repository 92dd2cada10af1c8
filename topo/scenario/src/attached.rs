//! Attached ports: switch ports that are cabled to interfaces of this host or to other programs.

use emulation::wiring::{End, Sending, SocketPair};
use proto::link::PauseMode;
use proto::params::{FromValue, Value};
use proto::units::{BitRate, Bytes};
use proto::wire::classify::PriorityMap;

/// A port of a switch with an interface of this host at it, another program, or a host of the lab.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttachedPort {
    /// The port.
    pub at: End,
    /// The name of the interface or of the host, or a name for people of the cable to another program.
    pub interface: String,
    /// The cable to another program. Relative paths are in the folder of the run.
    pub socket: Option<SocketPair>,
    /// Whether the lab makes what is attached: a host.
    pub is_host: bool,
    /// The port's rate.
    pub rate: BitRate,
    /// The largest payload of a frame there.
    pub mtu: Bytes,
    /// How frames leave by the interface.
    pub send: Sending,
    /// The rate whose bit times pause quanta count.
    pub pause_rate: BitRate,
    /// The MAC control frames that both ends use.
    pub pause: PauseMode,
    /// What gives a frame its priority.
    pub priorities: PriorityMap,
}

/// The rate of an attached port as written: a rate, or "none" for [`WORK_CONSERVING`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortRate(pub BitRate);

impl FromValue for PortRate {
    fn from_value(value: &Value) -> Option<PortRate> {
        Some(PortRate(BitRate::from_value(value).unwrap_or(WORK_CONSERVING)))
    }
}

/// A port that serves as fast as it can: no interface of a host is as fast as this.
pub const WORK_CONSERVING: BitRate = BitRate::gbps(10_000);

/// The rate whose bit times pause quanta count at a port without a rate: what Linux reports as the speed of a veth pair.
pub const PAUSE_RATE: BitRate = BitRate::gbps(10);

impl AttachedPort {
    /// The rate that captures and pictures state: the port's, or the nominal one of its pauses.
    pub fn nominal_rate(&self) -> BitRate {
        self.line_rate().unwrap_or(self.pause_rate)
    }

    /// The port's rate, if it has one.
    pub fn line_rate(&self) -> Option<BitRate> {
        (self.rate != WORK_CONSERVING).then_some(self.rate)
    }
}
