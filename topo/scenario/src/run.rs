//! `[run]`: how long, how fast, on what, and what is recorded.

use crate::keyfile::fields::Fields;
use crate::keyfile::keys::{Key, KeyTable, Kind, Need, real, words};
use crate::keyfile::problem::Problems;
use crate::names;
use crate::topology::Topology;
use emulation::cable::Carrier;
use emulation::wiring::End;
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
pub static KEYS: KeyTable = KeyTable {
    about: "how a scenario is run",
    keys: &[
        Key {
            name: "seed",
            kind: Kind::Whole(0, i64::MAX),
            need: Need::Default("1"),
            about: "where all randomness comes from",
        },
        Key {
            name: "duration",
            kind: Kind::Span,
            need: Need::Required,
            about: "length in fabric time",
        },
        Key {
            name: "dilate",
            kind: Kind::Either(&[Kind::Word(|| vec!["auto"]), Kind::Real(0.0, 1e9)]),
            need: Need::Default("\"auto\""),
            about: "wall time per fabric time; the virtual clock has none",
        },
        Key {
            name: "backend",
            kind: Kind::Word(|| words(&BACKENDS)),
            need: Need::Default("\"virtual\""),
            about: "what carries frames",
        },
        Key {
            name: "placement",
            kind: Kind::Word(|| words(&PLACEMENTS)),
            need: Need::Default("\"worker\""),
            about: "many devices a process, or one",
        },
        Key {
            name: "cables",
            kind: Kind::Word(|| words(&CABLES)),
            need: Need::Default("\"socket\""),
            about: "every link a socket, or only those between processes",
        },
        Key {
            name: "carrier",
            kind: Kind::Word(|| words(&CARRIERS)),
            need: Need::Default("\"udp\""),
            about: "what kind of sockets",
        },
        Key {
            name: "realtime",
            kind: Kind::Flag,
            need: Need::Default("true"),
            about: "ask for real-time priority where the host allows it",
        },
        Key {
            name: "awake",
            kind: Kind::Flag,
            need: Need::Default("true"),
            about: "keep this host's cores from falling asleep during a live run, unless processes crowd them",
        },
        Key {
            name: "capture",
            kind: Kind::Either(&[Kind::List(&Kind::Text), Kind::Text]),
            need: Need::Default("[]"),
            about: "ports to capture, as node:port",
        },
        Key {
            name: "snaplen",
            kind: Kind::Octets,
            need: Need::Optional,
            about: "octets kept of each captured frame; all if left out",
        },
        Key {
            name: "sample",
            kind: Kind::Span,
            need: Need::Optional,
            about: "width of a recorded bin; the longer of 50 mtu and 1/280 of the run if left out",
        },
        Key {
            name: "events",
            kind: Kind::Word(|| vec!["bounded", "all"]),
            need: Need::Default("\"bounded\""),
            about: "fold events past the bounds, or keep all",
        },
    ],
    variants: None,
    open: false,
};

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
    let dilation = fields.datum("dilate").and_then(|datum| real(&datum.data));
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
