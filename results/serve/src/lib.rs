//! The live page: a run or a lab in a browser while it lasts, and ports of labs as interfaces of Wireshark.
//!
//! ```text
//!  recorders ─ bins ─▶ launcher ─▶ LiveState ◀─ poll ─ one stream for each client, at its own pace
//! ```
//!
//! Devices send finished bins and never wait. The live state keeps the last of them. A client polls it and gets
//! what it lacks, so nothing is queued for a slow client. A lab sends no bins: its counters are polled, and
//! become bins ([`lab_poller`]).

mod exposition;
mod lab_action;
pub mod lab_poller;
mod live_state;
pub mod page;
mod routes;
mod stream;
#[cfg(test)]
pub(crate) mod tests;
pub mod wireshark;

pub use live_state::LiveState;
pub use routes::{Access, Content, Server};
