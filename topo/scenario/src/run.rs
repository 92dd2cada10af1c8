//! `[run]`: how long, how fast, on what, and what is recorded.

use crate::keyfile::fields::{Fields, Texts};
use emulation::cable::Carrier;
use proto::params::{FromValue, KeyTable, Params, Value};
use proto::units::{Bytes, Duration, Instant};

/// The keys of `[run]`.
pub static KEYS: KeyTable = KeyTable::new("how a scenario is run", Run::KEYS);

proto::params! {
    /// How a scenario is run.
    pub struct Run {
        /// Seed of all randomness.
        seed: u64 = Whole(0, i64::MAX), Default("1");
        /// Length in fabric time.
        duration: Duration = Span, Required;
        /// Wall time over fabric time; the virtual clock has none. With auto a run that falls behind stretches its clock.
        dilate: Dilate = Either(&[Word(|| vec!["auto"]), Real(0.0, 1e9)]), Default("auto");
        /// What carries frames.
        backend: Backend = Backend::KIND, Default("virtual");
        /// What live runs follow: the wall clock, or promises of the other processes. With exact pace a run equals that of
        /// the virtual clock, and needs no quiet host.
        pace: Pace = Pace::KIND, Default("wall");
        /// Many devices in a process, or one.
        placement: Placement = Placement::KIND, Default("worker");
        /// Every link a socket, or only those between processes.
        cables: Cables = Cables::KIND, Default("socket");
        /// The kind of sockets.
        carrier: Carrier = Word(|| vec!["udp", "unix"]), Default("udp");
        /// Ask for real-time priority where the host allows it.
        realtime: bool = Flag, Default("true");
        /// Keep this host's cores out of sleep states during a live run, unless there are more than eight processes per core.
        awake: Option<bool> = Flag, Else("true; false with [lab] attach, where hosts need the cores");
        /// Ports to capture, as node:port.
        capture: Texts = Either(&[List(&Text), Text]), Default("[]");
        /// Octets kept of each captured frame; all if left out.
        snaplen: Option<Bytes> = Octets, Optional;
        /// Width of a recorded bin; the longer of 50 mtu and 1/280 of the run if left out.
        sample: Option<Duration> = Span, Optional;
        /// Fold events past the bounds, or keep all.
        events: Events = Events::KIND, Default("bounded");
        /// Lossless frames that are lost to congestion fail the run, or the scenario expects them and states why.
        lossless_drops: OnDrops = OnDrops::KIND, Default("fail");
        /// Why the scenario loses lossless frames, with its source.
        lossless_drops_why: Option<String> = Text, Optional => Is("lossless_drops", &["expected"]);
    }
}

/// Reads `[run]`.
pub fn read(fields: &Fields<'_>) -> Option<Run> {
    let run: Run = fields.params()?;
    if run.lossless_drops == OnDrops::Expected && run.expected_drops().is_none() {
        let message = "lossless drops are expected without a reason";
        fields.error("lossless_drops", message, "lossless_drops_why = \"the reason\"");
    }
    Some(run)
}

impl Run {
    /// The scenario's reason to expect lost lossless frames, if it does.
    pub fn expected_drops(&self) -> Option<&str> {
        let why = self.lossless_drops_why.as_deref().filter(|why| !why.trim().is_empty());
        why.filter(|_| self.lossless_drops == OnDrops::Expected)
    }

    /// When the run ends.
    pub fn end(&self) -> Instant {
        Instant::ZERO + self.duration
    }
}

/// Wall time over fabric time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Dilate {
    /// The smallest with which this host should keep up.
    Auto,
    /// This value.
    By(f64),
}

impl FromValue for Dilate {
    fn from_value(value: &Value) -> Option<Dilate> {
        Some(f64::from_value(value).map_or(Dilate::Auto, Dilate::By))
    }
}

proto::words! {
    /// What carries frames.
    pub enum Backend {
        /// Memory, on a virtual clock.
        Virtual = "virtual",
        /// Sockets on loopback, on the wall clock.
        Udp = "udp",
        /// Pairs of interfaces between network namespaces, on the wall clock.
        Netns = "netns",
        /// Containers on this host.
        Compose = "compose",
        /// Daemons that join by themselves.
        Remote = "remote",
    }
}

proto::words! {
    /// What live runs follow.
    pub enum Pace {
        /// The wall clock.
        Wall = "wall",
        /// The promises of the other processes.
        Exact = "exact",
    }
}

proto::words! {
    /// How devices are spread over processes.
    pub enum Placement {
        /// Many devices in a process, few processes.
        Worker = "worker",
        /// One process for each device.
        Device = "device",
    }
}

proto::words! {
    /// Which links are sockets.
    pub enum Cables {
        /// All.
        Socket = "socket",
        /// Only those between processes.
        Local = "local",
    }
}

proto::words! {
    /// What lost lossless frames mean.
    pub enum OnDrops {
        /// The run fails.
        Fail = "fail",
        /// The scenario shows them on purpose.
        Expected = "expected",
    }
}

proto::words! {
    /// How many events a run keeps.
    pub enum Events {
        /// As many as fit the bounds; the others are folded into counts.
        Bounded = "bounded",
        /// All.
        All = "all",
    }
}
