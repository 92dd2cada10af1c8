//! `[run]`: how long, how fast, on what, and what is recorded.

use crate::keyfile::fields::Fields;
use crate::keyfile::fields::words;
use crate::keyfile::problem::Problems;
use crate::names;
use crate::topology::Topology;
use emulation::cable::Carrier;
use emulation::wiring::End;
use proto::params::{Key, KeyTable, Kind};
use proto::units::{Bytes, Duration, Instant};

/// How a scenario is run.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// Where all randomness comes from.
    pub seed: u64,
    /// Length in fabric time.
    pub duration: Duration,
    /// Wall time per fabric time.
    pub dilate: Dilate,
    /// On what.
    pub backend: Backend,
    /// How devices are spread over processes.
    pub placement: Placement,
    /// Which links are sockets.
    pub cables: Cables,
    /// What kind of sockets.
    pub carrier: Carrier,
    /// Ask for real-time priority where the host allows it.
    pub realtime: bool,
    /// Keep this host's cores from falling asleep while the wall clock runs.
    pub awake: bool,
    /// Ports to capture.
    pub capture: Vec<End>,
    /// Octets kept of each captured frame; `None` keeps all.
    pub snaplen: Option<Bytes>,
    /// Width of a recorded bin, if it is not left to the recorder.
    pub sample: Option<Duration>,
    /// Keep every event, however many.
    pub all_events: bool,
    /// Somebody looks on while it lasts; no key of the file.
    pub watched: bool,
}

/// Wall time per fabric time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Dilate {
    /// The smallest that this host should hold.
    Auto,
    /// So much.
    By(f64),
}

/// What carries frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    /// Memory, on a virtual clock.
    Virtual,
    /// Sockets on loopback, on the wall clock.
    Udp,
    /// Pairs of interfaces between network namespaces, on the wall clock.
    Netns,
    /// Containers on this host.
    Compose,
    /// Daemons that join by themselves.
    Remote,
}

/// How devices are spread over processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// Many devices a process, few processes.
    Worker,
    /// One process a device.
    Device,
}

/// Which links are sockets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cables {
    /// All.
    Socket,
    /// Only those between processes.
    Local,
}

/// The words for [`Backend`].
pub const BACKENDS: [(&str, Backend); 5] = [
    ("virtual", Backend::Virtual),
    ("udp", Backend::Udp),
    ("netns", Backend::Netns),
    ("compose", Backend::Compose),
    ("remote", Backend::Remote),
];
const PLACEMENTS: [(&str, Placement); 2] =
    [("worker", Placement::Worker), ("device", Placement::Device)];
const CABLES: [(&str, Cables); 2] = [("socket", Cables::Socket), ("local", Cables::Local)];
const CARRIERS: [(&str, Carrier); 2] = [("udp", Carrier::Udp), ("unix", Carrier::Unix)];

/// The keys of `[run]`.
pub static KEYS: KeyTable = KeyTable::new(
    "how a scenario is run",
    &[
        Key::new("seed", Kind::Whole(0, i64::MAX), "1", "where all randomness comes from"),
        Key::required("duration", Kind::Span, "length in fabric time"),
        Key::new(
            "dilate",
            Kind::Either(&[Kind::Word(|| vec!["auto"]), Kind::Real(0.0, 1e9)]),
            "auto",
            "wall time per fabric time; the virtual clock has none",
        ),
        Key::new("backend", Kind::Word(|| words(&BACKENDS)), "virtual", "what carries frames"),
        Key::new(
            "placement",
            Kind::Word(|| words(&PLACEMENTS)),
            "worker",
            "many devices a process, or one",
        ),
        Key::new(
            "cables",
            Kind::Word(|| words(&CABLES)),
            "socket",
            "every link a socket, or only those between processes",
        ),
        Key::new("carrier", Kind::Word(|| words(&CARRIERS)), "udp", "what kind of sockets"),
        Key::new(
            "realtime",
            Kind::Flag,
            "true",
            "ask for real-time priority where the host allows it",
        ),
        Key::new(
            "awake",
            Kind::Flag,
            "true",
            "keep this host's cores from falling asleep during a live run, unless processes crowd them",
        ),
        Key::new(
            "capture",
            Kind::Either(&[Kind::List(&Kind::Text), Kind::Text]),
            "[]",
            "ports to capture, as node:port",
        ),
        Key::optional(
            "snaplen",
            Kind::Octets,
            "octets kept of each captured frame; all if left out",
        ),
        Key::optional(
            "sample",
            Kind::Span,
            "width of a recorded bin; the longer of 50 mtu and 1/280 of the run if left out",
        ),
        Key::new(
            "events",
            Kind::Word(|| vec!["bounded", "all"]),
            "bounded",
            "fold events past the bounds, or keep all",
        ),
    ],
);

impl Run {
    /// When the run ends.
    pub fn end(&self) -> Instant {
        Instant::ZERO + self.duration
    }
}

/// Reads `[run]`.
pub fn read(
    fields: &Fields<'_>,
    topology: Option<&Topology>,
    problems: &mut Problems,
) -> Option<Run> {
    let mut capture = Vec::new();
    for (text, place) in fields.texts("capture") {
        match topology.map(|topology| names::ends(topology, text)) {
            Some(Ok(ends)) => capture.extend(ends),
            Some(Err(complaint)) => problems.report(place, "run.capture", complaint),
            None => {}
        }
    }
    capture.sort();
    capture.dedup();
    let dilation: Option<f64> = fields.get("dilate");
    Some(Run {
        seed: fields.whole("seed")?,
        duration: fields.time("duration")?,
        dilate: dilation.map_or(Dilate::Auto, Dilate::By),
        backend: fields.word("backend", &BACKENDS)?,
        placement: fields.word("placement", &PLACEMENTS)?,
        cables: fields.word("cables", &CABLES)?,
        carrier: fields.word("carrier", &CARRIERS)?,
        realtime: fields.flag("realtime"),
        awake: fields.flag("awake"),
        capture,
        snaplen: fields.size("snaplen"),
        sample: fields.time("sample"),
        all_events: fields.text("events") == Some("all"),
        watched: false,
    })
}
