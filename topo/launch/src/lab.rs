//! Labs that stay: a folder for each, a keeper that holds its daemons, and clients that speak to them.
//!
//! ```text
//!   up ─▶ folder, journal ─▶ keeper ─▶ namespaces, daemons ─▶ "up" in the journal ─▶ up ends
//!   status, show, set … ── HTTP on the daemons' Unix sockets ──▶ daemons
//!   down ─▶ keeper ends, and with it all it holds ─▶ folder is removed
//! ```
//!
//! Everything but files lives as long as its keeper: daemons end when it does, however it did, and the
//! kernel takes namespaces and interfaces away. Files are in the lab's folder ([`folder`]), whose journal
//! names the process that they belong to; what belongs to a process that is no more is removed by
//! whoever comes next.

pub mod client;
pub mod folder;
pub mod keeper;
pub mod start;

pub use folder::{Labs, Record, Stage};
