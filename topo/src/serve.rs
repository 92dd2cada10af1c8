//! A run in a browser while it lasts (seeing.md 7): the page, its history, and what is new.
//!
//! ```text
//!  recorders ─ bins ─▶ launcher ─▶ Board ◀─ what is new? ─ a stream a client, at its own pace
//! ```
//!
//! Devices tell of finished bins and never wait. The board keeps the last of them; a client is told how
//! far the board is and takes what it lacks, so nothing is queued for a slow one.

mod board;
pub mod page;
mod routes;
mod stream;
#[cfg(test)]
mod tests;

pub use board::Board;
pub use routes::{Access, Server};
