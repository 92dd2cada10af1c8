//! The wiring of a fabric: nodes, cables, impairments and attached interfaces.

use proto::frame::FrameKind;
use proto::ids::PortNumber;
use proto::units::{Bytes, Duration};
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use std::path::PathBuf;

/// The cabling of a whole fabric. A node is named by its index in `nodes` everywhere.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wiring {
    /// Every device, adapters first.
    pub nodes: Vec<NodeWiring>,
    /// Every cable; a link's id is its index.
    pub links: Vec<LinkWiring>,
    /// Impairments that the scenario asks for.
    #[serde(default)]
    pub impairments: Vec<Impairment>,
    /// Ports that are attached to an interface of the host.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attached: Vec<Attached>,
}

/// One device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeWiring {
    /// The name of the node.
    pub name: String,
    /// Its kind.
    pub kind: NodeKind,
    /// Number of ports, cabled or not.
    pub ports: u8,
    /// Level in pictures: 0 for adapters, then switches upwards.
    pub level: u8,
}

/// The kind of a device.
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
    /// Propagation delay of each direction.
    pub delay: Duration,
    /// Wire time of one full data frame, the unit of lateness at both ends.
    pub frame_time: Duration,
}

/// The addresses of a cable to another program: this end is bound to `local` and sends to `remote`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SocketPair {
    /// Files of Unix datagram sockets.
    Unix {
        /// The file that this end makes.
        local: PathBuf,
        /// The file that the other program makes.
        remote: PathBuf,
    },
    /// UDP, on loopback.
    Udp {
        /// This end.
        local: SocketAddr,
        /// The other program.
        remote: SocketAddr,
    },
}

/// A port attached to an interface of the host, or to another program, instead of a cable of the fabric.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Attached {
    /// The port.
    pub at: End,
    /// The interface's name, in the namespace of the process that hosts the port; a name for people if there is a
    /// socket instead.
    pub interface: String,
    /// The cable to another program that the port has instead of an interface.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub socket: Option<SocketPair>,
    /// Whether the lab makes what is at the port, under the name `interface`: a host.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_host: bool,
    /// Wire time of one full data frame, the unit of lateness; zero at a port without a rate, where lateness has
    /// no unit.
    pub frame_time: Duration,
    /// Octets of the largest payload of a frame that the port takes.
    #[serde(default)]
    pub mtu: Bytes,
    /// How frames are sent by it.
    #[serde(default)]
    pub send: Sending,
}

proto::words! {
    /// How frames are sent by an interface of the host.
    #[derive(Default)]
    pub enum Sending {
        /// Through a send ring (PACKET_TX_RING), if the interface has a free one.
        #[default]
        Ring = "ring",
        /// By the packet socket that also receives.
        Socket = "socket",
    }
}

/// One end of a cable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct End {
    /// Index into [`Wiring::nodes`].
    pub node: usize,
    /// The port there.
    pub port: PortNumber,
}

/// An impairment of the frames that one end of a cable sends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Impairment {
    /// The sending end.
    pub from: End,
    /// The frames it applies to.
    pub frames: FrameFilter,
    /// What happens to a frame that is hit.
    pub action: Action,
    /// Probability that a frame is hit: `chance.0 / chance.1`.
    pub chance: (u64, u64),
}

/// A class of frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FrameFilter {
    /// Every frame.
    All,
    /// Frames of one kind.
    Kind(FrameKind),
    /// Frames that govern one link: credits, PAUSE, PFC.
    LinkLocal,
    /// Frames with a congestion mark: FECN or CE.
    Marked,
    /// Congestion notifications: BECN, CNPs, CNMs, BCN messages.
    Notice,
}

/// What happens to a frame that is hit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    /// The frame is lost (counted under `injected`).
    Lose,
    /// One random bit flips, of the whole frame, and the FCS shows it. A frame to an attached interface gets its
    /// FCS from the kernel or the NIC, so there a bit of [`FramePart::Payload`] flips.
    Corrupt,
    /// One random bit of a part flips, and the FCS is right: the error of a device, not of a cable. On InfiniBand the same as
    /// [`Action::Corrupt`].
    Alter(FramePart),
    /// The frame arrives twice.
    Duplicate,
    /// The frame arrives later by that much, and frames behind it on the link not before it.
    Delay(Duration),
}

proto::words! {
    /// A part of an Ethernet frame.
    pub enum FramePart {
        /// The octets behind all headers, without the ICRC. A frame without payload has its last header there.
        Payload = "payload",
        /// The invariant CRC of RoCE, four octets; the payload in other frames.
        Icrc = "icrc",
        /// The headers behind the EtherType: IP and UDP or TCP, and the BTH.
        Header = "header",
    }
}

impl Wiring {
    /// The index of the link at `end` and its far end; `None` without a cable.
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

    /// The interface of the host that is attached at `end`, if one is.
    pub fn attached_at(&self, end: End) -> Option<&Attached> {
        self.attached.iter().find(|attached| attached.at == end)
    }

    /// `node:port`, for example `leaf1:4`.
    pub fn end_name(&self, end: End) -> String {
        format!("{}:{}", self.nodes[end.node].name, end.port)
    }
}
