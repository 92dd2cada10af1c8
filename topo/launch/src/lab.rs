//! Labs that run until they are stopped: a folder for each, a supervisor that holds its daemons, and clients.
//!
//! ```text
//!   up ─▶ folder, journal ─▶ supervisor ─▶ namespaces, daemons ─▶ "up" in the journal ─▶ up ends
//!   status, show, set … ── HTTP on the daemons' Unix sockets ──▶ daemons
//!   down ─▶ the supervisor ends with all that it holds ─▶ the folder is removed
//! ```
//!
//! Everything except files lives as long as the supervisor: its daemons end with it, and the kernel removes
//! namespaces and interfaces. Files are in the lab's folder ([`folder`]). Its journal names the process that owns
//! them. The next command removes the files of a process that has ended.

pub mod balance;
pub mod beside;
pub mod client;
pub mod folder;
pub mod lifecycle;
pub mod pipe;
pub mod rights;
pub mod routes;
pub mod supervisor;

pub use folder::{LabRecord, LabStore, Stage};
