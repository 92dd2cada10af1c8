//! A run in a browser while it lasts (seeing.md 7): the page, its history, and what is new.
//!
//! ```text
//!  recorders ─ bins ─▶ launcher ─▶ Board ◀─ what is new? ─ a stream a client, at its own pace
//! ```
//!
//! Devices tell of finished bins and never wait. The board keeps the last of them; a client is told how
//! far the board is and takes what it lacks, so nothing is queued for a slow one. A lab that is up tells
//! nothing by itself: what its devices count is asked for, and becomes bins ([`standing`]).

pub mod act;
mod board;
mod exposition;
pub mod page;
mod routes;
pub mod standing;
mod stream;
#[cfg(test)]
pub(crate) mod tests;
pub mod wireshark;

pub use board::Board;
pub use routes::{Access, Content, Server};
