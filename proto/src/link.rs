//! One end of a link: what keeps it lossless, who goes first on it, and the line itself.
//!
//! Both devices own one [`port::LinkPort`] a port. It asks its owner what could leave
//! ([`port::LaneSource`]) and answers with what does; it never looks into queues itself. Losslessness
//! is a pair of halves: the transmit gate (may this frame leave on this lane now?) and the receive
//! half (what shall the peer do?), which speak through control frames of their own. There are two
//! such pairs, [`credit`] and [`pause`], each with an arbiter of its own; [`flow`] is whichever of
//! them a port has.

pub mod config;
pub mod credit;
pub mod ets;
pub mod flow;
pub mod outage;
pub mod pause;
pub mod port;
pub mod serializer;
pub mod vl_arbiter;

pub use config::{
    ArbitrationConfig, CreditConfig, EtsConfig, LinkConfig, LinkControl, PauseConfig, PauseMode,
    Selection, full_frame,
};
