//! QCN: 802.1Qau: QCN.
//!
//! What congestion points find is judged in [`feedback`], how senders are slowed and recover in
//! [`recovery`] (beside a second writing-down of the rules): there roles are asked as a device asks them.
//! What a switch sends of its queues is in [`messages`], what it does to tags at the edge of a domain in
//! [`border`], what a NIC takes of messages in [`receiver`], and what comes of it all in [`stability`].

use crate::ethernet;
use crate::prelude::*;
use proto::congestion::schemes::qcn::SCHEME;
use proto::congestion::{CongestionPoint, Place, ReactionPoint, Roles};
use proto::frame::FrameHeaders;
use proto::ids::{CongestionPointId, MacAddress, ServiceLevel};
use proto::random::Random;

mod border;
mod feedback;
mod messages;
mod receiver;
mod recovery;
mod stability;

/// The scripts of the group, by case.
pub const SCRIPTS: Scripts = &[
    ("QCN-01", feedback::value),
    ("QCN-02", feedback::interval),
    ("QCN-03", messages::only_controlled),
    ("QCN-04", feedback::fields),
    ("QCN-05", messages::cpid),
    ("QCN-06", receiver::version),
    ("QCN-07", border::tag_removal),
    ("QCN-08", border::defence_modes),
    ("QCN-09", recovery::decrease),
    ("QCN-10", recovery::recovery),
    ("QCN-11", stability::stability),
    ("QCN-12", messages::priority_of_messages),
];

/// The table `[scheme]` of QCN with these parameters, a line each.
fn qcn(params: &str) -> String {
    format!("[scheme]\nkind = \"qcn\"\n{params}\n")
}

/// A star that goes by VLAN priorities, whose switch has room for everything and this domain; with
/// further tables.
fn star(nics: u8, duration: &str, domain: &str, rest: &str) -> String {
    let room = ethernet::roomy(&format!(", cn = {{ {domain} }}"));
    ethernet::star(nics, duration, "priorities = \"pcp\"", &format!("{room}{rest}"))
}

const LINE: BitRate = BitRate::gbps(10);
const FRAME: Bytes = Bytes::new(1500);

/// The scheme with these parameters.
fn roles(params: &str) -> Result<Arc<dyn Roles>> {
    let params: toml::Table = params.parse().map_err(|error| format!("{params}: {error}"))?;
    SCHEME.configure(&params).map_err(|errors| errors[0].to_string().into())
}

/// A place on a line of 10 Gb/s.
fn place(purpose: &str) -> Place {
    Place {
        line_rate: LINE,
        full_frame: FRAME,
        buffer: Bytes::new(600_000),
        port: PortNumber::from_index(0),
        faces_adapter: true,
        congestion_point: CongestionPointId::new(0x0200_0100_0001_0003),
        random: Random::stream(1, "conformance", purpose),
    }
}

fn congestion_point(params: &str) -> Result<Box<dyn CongestionPoint>> {
    Ok(roles(params)?.congestion_point(place("congestion point")))
}

fn reaction_point(params: &str) -> Result<Box<dyn ReactionPoint>> {
    Ok(roles(params)?.reaction_point(place("reaction point")))
}

/// The headers of a data frame of so many octets.
fn frame(size: Bytes) -> FrameHeaders {
    FrameHeaders {
        size,
        source: MacAddress::from_number(1).into(),
        destination: MacAddress::from_number(2).into(),
        lane: VirtualLane::truncate(3),
        level: ServiceLevel::truncate(3),
        payload: size,
        ..FrameHeaders::default()
    }
}
