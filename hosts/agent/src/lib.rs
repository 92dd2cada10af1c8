//! The agent for NICs of Linux: it executes verbs with libibverbs, loaded at run time.
//!
//! [`ibverbs::Ibverbs`] is the agent. `library` loads the functions, `layouts` has those of libibverbs' header,
//! `objects` the table of what a client has made, `memory` its registered memory, `posting` work requests and
//! completions, `system` what only the kernel's files tell. The crate builds and its tests run without libibverbs.

mod codes;
pub mod ibverbs;
mod layouts;
mod library;
mod memory;
mod objects;
mod posting;
mod system;
