//! Conformance: what switches and NICs must do, as cases with ids that never change.
//!
//! A case is data ([`case`]); what it does is one small program for each level it has: on octets, on
//! the virtual clock, live. [`groups`] is the register, one file a group. [`suite`] chooses and runs
//! them, [`report`] says what came out, [`statement`] writes the statement of conformance.

pub mod bench;
pub mod case;
pub mod groups;
pub mod live;
pub mod report;
pub mod statement;
pub mod suite;
pub mod watched;
