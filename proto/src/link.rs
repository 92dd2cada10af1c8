//! One end of a link: flow control, arbitration, and the line.
//!
//! Each device owns one [`port::LinkPort`] for each of its ports. The port's owner keeps the frames and
//! offers them ([`port::LaneSource`]); the port decides which leaves next. Flow control has a transmit
//! half, which decides whether a frame may leave a lane now, and a receive half, which controls the peer
//! by flow-control frames. There are two kinds, [`credit`] and [`pause`], each with its own arbiter.

pub mod config;
pub mod credit;
mod ets;
mod flow_control;
pub mod outage;
pub mod pause;
pub mod port;
mod serializer;
mod vl_arbiter;

pub use config::{
    ArbitrationConfig, CreditConfig, EtsConfig, FlowControlConfig, LinkConfig, PauseConfig,
    PauseMode, Selection, full_frame,
};
