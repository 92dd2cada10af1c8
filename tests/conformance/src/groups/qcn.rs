//! QCN: 802.1Qau: QCN.
//!
//! What congestion points find and say is tested in [`feedback`], how senders are slowed and recover in
//! [`recovery`] (beside a second writing-down of the rules), what comes of both in [`stability`]: there roles
//! are asked as a device asks them. What a switch makes of them is in [`devices`], what a NIC
//! takes of messages in [`receiver`].

use crate::case::{Case, Failure, Group, Run};
use crate::live::qcn as live;
use proto::congestion::schemes::qcn::SCHEME;
use proto::congestion::{CongestionPoint, Place, ReactionPoint};
use proto::frame::{FrameClass, FrameHeaders};
use proto::ids::{CongestionPointId, Ecn, PortNumber};
use proto::random::Random;
use proto::units::{BitRate, Bytes};

pub mod devices;
mod feedback;
pub mod receiver;
mod recovery;
mod stability;

/// The group.
pub const GROUP: Group = Group { name: "QCN", subject: "802.1Qau: QCN", cases: CASES };

const CASES: &[Case] = &[
    Case {
        id: "QCN-01",
        title: "Feedback value",
        source: "802.1Qau cl.32.8–32.9; UNH-IOL 33.1.3; seed 002",
        note: "Fb is clipped to −(2W + 1)·cpQSp; a feedback below half of a 63rd of that is quantised to 0, and no CNM is sent.",
        runs: &[Run::engine(feedback::value)],
    },
    Case {
        id: "QCN-02",
        title: "Sampling interval",
        source: "802.1Qau cl.32.8; UNH-IOL 32.3.3 random initialisation",
        note: "Told by frames of 64 octets, so an interval is seen up to one frame longer than it is. The queue stands still, so one QntzFb follows another.",
        runs: &[Run::engine(feedback::interval)],
    },
    Case {
        id: "QCN-03",
        title: "CNM only for congestion-controlled frames",
        source: "802.1Qau cl.31, 33; UNH-IOL group 3",
        note: "Each port is a congestion point for each priority of its domain; a message that comes back to the same queue is not sampled.",
        runs: &[Run::engine(devices::only_controlled), Run::live(live::messages::only_controlled)],
    },
    Case {
        id: "QCN-04",
        title: "QOffset and QDelta fields",
        source: "UNH-IOL 33.1.5, 33.1.6",
        note: "Whole units of 64 octets: what is less is cut off.",
        runs: &[Run::engine(feedback::fields)],
    },
    Case {
        id: "QCN-05",
        title: "CPID",
        source: "UNH-IOL 33.1.4",
        note: "The address of the port and, in the last two octets, the priority. On L a restart is a second daemon.",
        runs: &[Run::engine(devices::cpid), Run::live(live::messages::cpid)],
    },
    Case {
        id: "QCN-06",
        title: "Version / reserved bits",
        source: "UNH-IOL 33.1.1, 33.1.2, 33.1.13",
        note: "Discarded is: counted as malformed, and no rate changed.",
        runs: &[Run::engine(receiver::version), Run::live(live::receiver::version)],
    },
    Case {
        id: "QCN-07",
        title: "CN-TAG removal at the edge",
        source: "UNH-IOL 31.2.3, 33.2.4, 32.2.6",
        note: "A port outside the domain (disabled) touches no tag. On another priority a CN-TAG is not interpreted anywhere.",
        runs: &[Run::engine(devices::tag_removal), Run::live(live::border::tag_removal)],
    },
    Case {
        id: "QCN-08",
        title: "Defence modes",
        source: "802.1Qau cl.32.1; UNH-IOL 32.3.4, 32.3.5, 32.3.7",
        note: "The alternate of priority 3 alone is 2. CN-TAGs on the way out: QCN-07.",
        runs: &[Run::engine(devices::defence_modes)],
    },
    Case {
        id: "QCN-09",
        title: "RP decrease",
        source: "802.1Qau cl.32.10–32.12 (Gd = 1/128, MinDecFac 0.5)",
        note: "The target is seen by the first average after the cut. A stage of the timer alone does not make it follow: rpByteStage decides.",
        runs: &[Run::engine(recovery::decrease)],
    },
    Case {
        id: "QCN-10",
        title: "RP recovery",
        source: "802.1Qau cl.32.10–32.15 defaults",
        note: "Stages are counted before they are compared with 5: four pure averages a counter. Rates are whole bit/s, averages rounded up: a trace may be 2 bit/s off a reference that does not round.",
        runs: &[Run::engine(recovery::recovery)],
    },
    Case {
        id: "QCN-11",
        title: "Stability at the set point",
        source: "seed 003 (BCN sensitivity), 802.1Qau goals",
        note: "On E one output of 10 Gb/s, or of 5 for a single source, cpQSp = 150 KB, frames of 1500 octets; 0.2 to 0.3 s. The output drops nothing: 0 loss needs a switch. On L a switch with three such outputs, cpQSp = 26 KB, samples and byte stages each 26 KB, steps ten times the default's: the queue settles within 4 ms, the next 4 ms are judged.",
        runs: &[Run::engine(stability::stability), Run::live(live::stability::stability)],
    },
    Case {
        id: "QCN-12",
        title: "CNM priority",
        source: "802.1Qau cl.32.1",
        note: "The way back is paused on the congested priority; messages are not data of it. On L it is opened too, with the queue still standing.",
        runs: &[
            Run::engine(devices::priority_of_messages),
            Run::live(live::messages::priority_of_messages),
        ],
    },
];

const LINE: BitRate = BitRate::gbps(10);
const FRAME: Bytes = Bytes::new(1500);

/// Calls `make` with a place on a line of 10 Gb/s under these parameters.
fn at_place<R>(
    params: &str,
    purpose: &str,
    make: impl FnOnce(Place<'_>) -> R,
) -> Result<R, Failure> {
    let params: toml::Table = params.parse().map_err(|error| format!("{params}: {error}"))?;
    if let Some(fault) = (SCHEME.check)(&params).first() {
        return Err(fault.to_string().into());
    }
    Ok(make(Place {
        params: &params,
        line_rate: LINE,
        full_frame: FRAME,
        buffer: Bytes::new(600_000),
        port: PortNumber::from_index(0),
        faces_adapter: true,
        congestion_point: CongestionPointId::new(0x0200_0100_0001_0003),
        random: Random::stream(1, "conformance", purpose),
    }))
}

fn congestion_point(params: &str) -> Result<Box<dyn CongestionPoint>, Failure> {
    at_place(params, "congestion point", SCHEME.congestion_point)
}

fn reaction_point(params: &str) -> Result<Box<dyn ReactionPoint>, Failure> {
    at_place(params, "reaction point", SCHEME.reaction_point)
}

/// The headers of a data frame of so many octets.
fn frame(size: Bytes) -> FrameHeaders {
    FrameHeaders {
        size,
        source: 1,
        destination: 2,
        multicast: false,
        lane: 3,
        level: 3,
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
