//! Third-party programs check octets of this project: tshark, crcmod, zlib, scapy.
//!
//! `docs/reference/witnesses.md` states what each of them can check. `test.sh` installs them. Tests of a missing
//! program are skipped.

// The tests start third-party programs.
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
