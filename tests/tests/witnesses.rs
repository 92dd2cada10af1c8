//! Programs nobody here wrote, asked about octets that we wrote: tshark, crcmod, zlib, scapy.
//!
//! What each can vouch for, and what not, is `docs/witnesses.md`. `test.sh` installs them; where one is
//! missing its tests say that they skip.

// They play the user, who has tshark and Python.
#![expect(clippy::disallowed_methods, reason = "tests here start tshark and Python")]

#[path = "witnesses/crcs.rs"]
mod crcs;
#[path = "witnesses/dissection.rs"]
mod dissection;
#[path = "witnesses/dissector.rs"]
mod dissector;
#[path = "witnesses/limits.rs"]
mod limits;
#[path = "witnesses/python.rs"]
mod python;
#[path = "witnesses/roce.rs"]
mod roce;
#[path = "witnesses/tshark.rs"]
mod tshark;
