//! QCN: 802.1Qau: QCN.
//!
//! What congestion points find is judged in [`feedback`], how senders are slowed and recover in
//! [`recovery`] (beside a second writing-down of the rules): there roles are asked as a device asks them.
//! What a switch sends of its queues is in [`messages`], what it does to tags at the edge of a domain in
//! [`border`], what a NIC takes of messages in [`receiver`], and what comes of it all in [`stability`].

use crate::case::cases;
use crate::ethernet;
use crate::prelude::*;
use proto::congestion::schemes::qcn::SCHEME;
use proto::congestion::{CongestionPoint, Place, ReactionPoint, Roles};
use proto::frame::{FrameClass, FrameHeaders};
use proto::ids::CongestionPointId;
use proto::random::Random;
use std::sync::Arc;

mod border;
mod feedback;
mod messages;
mod receiver;
mod recovery;
mod stability;

cases! { "QCN", "802.1Qau: QCN";
    "QCN-01" engine(feedback::value), "Feedback value",
        "802.1Qau cl.32.8–32.9; UNH-IOL 33.1.3; seed 002",
        "Fb is clipped to −(2W + 1)·cpQSp; a feedback below half of a 63rd of that is quantised to 0, and no CNM is sent.";
    "QCN-02" engine(feedback::interval), "Sampling interval",
        "802.1Qau cl.32.8; UNH-IOL 32.3.3 random initialisation",
        "Told by frames of 64 octets, so an interval is seen up to one frame longer than it is. The queue stands still, so one QntzFb follows another.";
    "QCN-03" both(messages::only_controlled), "CNM only for congestion-controlled frames",
        "802.1Qau cl.31, 33; UNH-IOL group 3",
        "Each port is a congestion point for each priority of its domain; a message that comes back to the same queue is not sampled.";
    "QCN-04" engine(feedback::fields), "QOffset and QDelta fields",
        "UNH-IOL 33.1.5, 33.1.6",
        "Whole units of 64 octets: what is less is cut off.";
    "QCN-05" both(messages::cpid), "CPID",
        "UNH-IOL 33.1.4",
        "The address of the port and, in the last two octets, the priority. On L a restart is a second daemon.";
    "QCN-06" both(receiver::version), "Version / reserved bits",
        "UNH-IOL 33.1.1, 33.1.2, 33.1.13",
        "Discarded is: counted as malformed, and no rate changed.";
    "QCN-07" both(border::tag_removal), "CN-TAG removal at the edge",
        "UNH-IOL 31.2.3, 33.2.4, 32.2.6",
        "A port outside the domain (disabled) touches no tag. On another priority a CN-TAG is not interpreted anywhere.";
    "QCN-08" engine(border::defence_modes), "Defence modes",
        "802.1Qau cl.32.1; UNH-IOL 32.3.4, 32.3.5, 32.3.7",
        "The alternate of priority 3 alone is 2. CN-TAGs on the way out: QCN-07.";
    "QCN-09" engine(recovery::decrease), "RP decrease",
        "802.1Qau cl.32.10–32.12 (Gd = 1/128, MinDecFac 0.5)",
        "The target is seen by the first average after the cut. A stage of the timer alone does not make it follow: rpByteStage decides.";
    "QCN-10" engine(recovery::recovery), "RP recovery",
        "802.1Qau cl.32.10–32.15 defaults",
        "Stages are counted before they are compared with 5: four pure averages a counter. Rates are whole bit/s, averages rounded up: a trace may be 2 bit/s off a reference that does not round.";
    "QCN-11" both(stability::stability), "Stability at the set point",
        "seed 003 (BCN sensitivity), 802.1Qau goals",
        "A switch with three outputs of 10 Gb/s, one of which serves 5 for a single source; frames of 1500 octets. On E cpQSp = 150 KB, 0.2 to 0.3 s. On L cpQSp = 26 KB, samples and byte stages each 26 KB, steps ten times the default's: the queue settles within 4 ms, the next 4 ms are judged.";
    "QCN-12" both(messages::priority_of_messages), "CNM priority",
        "802.1Qau cl.32.1",
        "The way back is paused on the congested priority; messages are not data of it. On L it is opened too, with the queue still standing.";
}

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
fn roles(params: &str) -> Result<Arc<dyn Roles>, Failure> {
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

fn congestion_point(params: &str) -> Result<Box<dyn CongestionPoint>, Failure> {
    Ok(roles(params)?.congestion_point(place("congestion point")))
}

fn reaction_point(params: &str) -> Result<Box<dyn ReactionPoint>, Failure> {
    Ok(roles(params)?.reaction_point(place("reaction point")))
}

/// The headers of a data frame of so many octets.
fn frame(size: Bytes) -> FrameHeaders {
    FrameHeaders {
        size,
        source: proto::ids::MacAddress::from_number(1).into(),
        destination: proto::ids::MacAddress::from_number(2).into(),
        multicast: false,
        lane: VirtualLane::truncate(3),
        level: proto::ids::ServiceLevel::truncate(3),
        class: FrameClass::Data,
        queue_pair: 0,
        psn: 0,
        fecn: false,
        becn: false,
        ecn: Ecn::NotCapable,
        regulated_by: None,
        payload: size,
    }
}
