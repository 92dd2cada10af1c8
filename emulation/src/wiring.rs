//! Which port is cabled to which, who hosts whom, and what happens to frames on the way.

use proto::frame::FrameKind;
use proto::ids::PortNumber;
use proto::units::Duration;
use serde::{Deserialize, Serialize};

/// A whole fabric's cabling. A node is its index in `nodes` everywhere.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wiring {
    /// Every device, adapters first.
    pub nodes: Vec<NodeWiring>,
    /// Every cable; a link's id is its index.
    pub links: Vec<LinkWiring>,
    /// Faults that the scenario asks for.
    #[serde(default)]
    pub impairments: Vec<Impairment>,
    /// Ports that are cabled to an interface of the host.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attached: Vec<Attached>,
}

/// One device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeWiring {
    /// Its name.
    pub name: String,
    /// Switch or NIC.
    pub kind: NodeKind,
    /// How many ports it has, cabled or not.
    pub ports: u8,
    /// Level in the picture: 0 for adapters, then switches upwards.
    pub level: u8,
}

/// What a device is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NodeKind {
    /// A NIC.
    Nic,
    /// A switch.
    Switch,
}

/// One full-duplex cable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkWiring {
    /// One end.
    pub a: End,
    /// The other end.
    pub b: End,
    /// Time of flight each way.
    pub delay: Duration,
    /// Wire time of one full data frame, the unit of lateness at both ends.
    pub frame_time: Duration,
}

/// A port with an interface of the host at it, and behind that whatever is there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Attached {
    /// The port.
    pub at: End,
    /// The interface's name, in the namespace of the process that hosts the port.
    pub interface: String,
    /// Wire time of one full data frame, the unit of lateness.
    pub frame_time: Duration,
    /// How frames leave by it.
    #[serde(default)]
    pub send: Sending,
}

/// How frames leave by an interface of the host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sending {
    /// Through a ring that the kernel empties, where the interface has a free one.
    #[default]
    Ring,
    /// By the packet socket that receives.
    Socket,
}

/// One end of a cable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct End {
    /// Index into [`Wiring::nodes`].
    pub node: usize,
    /// The port there.
    pub port: PortNumber,
}

/// What a cable does to some of the frames that one end sends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Impairment {
    /// The sending end.
    pub from: End,
    /// Which frames.
    pub frames: FrameFilter,
    /// What happens to a frame that is hit.
    pub action: Action,
    /// One frame in so many is hit, at random: `chance.0 / chance.1`.
    pub chance: (u64, u64),
}

/// Which frames an impairment looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FrameFilter {
    /// All.
    All,
    /// Those of one kind.
    Kind(FrameKind),
    /// Those of one link alone: credits, PAUSE, PFC.
    LinkLocal,
    /// Those with a mark of congestion: FECN, or CE.
    Marked,
    /// Those that tell a sender of congestion: with BECN, CNPs, CNMs, BCN messages.
    Notice,
}

/// What happens to a frame that is hit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    /// It vanishes (counted under `injected`).
    Lose,
    /// One random bit flips.
    Corrupt,
    /// It arrives twice.
    Duplicate,
    /// It, and with it what follows on the link, arrives later.
    Delay(Duration),
}

impl Wiring {
    /// The far end of the cable at `end`, with the link's id; `None` where no cable is.
    pub fn peer(&self, end: End) -> Option<(usize, End)> {
        self.links.iter().enumerate().find_map(|(id, link)| {
            if link.a == end {
                Some((id, link.b))
            } else if link.b == end {
                Some((id, link.a))
            } else {
                None
            }
        })
    }

    /// `node:port`, the name users see.
    pub fn end_name(&self, end: End) -> String {
        format!("{}:{}", self.nodes[end.node].name, end.port)
    }
}
