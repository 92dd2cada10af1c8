//! Devices under test that others have made: any switch with interfaces, any NIC with an agent.
//!
//! ```text
//!   DUT file ─▶ device (started, or found) ─▶ line: frames in and out of its ports, each kept for the capture
//!                                        └─▶ agent: verbs, for a NIC
//!   register (cases.toml) ─▶ suite: one case after the other ─▶ outcome: verdict, observed, capture
//! ```
//!
//! [`mod@file`] reads a DUT file, [`device`] starts what it describes and ends it. [`mod@line`] is the third driver of scripts,
//! beside the virtual clock and live daemons: it is a [`testbed::Bed`] on the wall clock. [`switch`] and [`nic`] hold the
//! cases, [`change`] alters settings of a device while one runs. [`suite`] runs them, and [`statement`] writes and compares
//! what came out.
//!
//! A case judges frames and completions alone. It reads no counter of the device, so it asks the same of any make. A fault
//! stands only where tester and device kept time ([`pace`]).

pub mod agent;
pub mod change;
pub mod device;
pub mod file;
pub mod hooks;
pub mod line;
pub mod nic;
pub mod pace;
pub mod rate;
pub mod register;
pub mod statement;
pub mod suite;
pub mod switch;
pub mod verdict;
