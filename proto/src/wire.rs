//! Octets and their meaning; policy lives elsewhere.

pub mod error;
