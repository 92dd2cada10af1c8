//! The registry of congestion-control schemes: one row each.
//!
//! To add one: write `schemes/<name>.rs` with its `pub const SCHEME`, declare it here and add it to
//! [`SCHEMES`]. Nothing else changes.

use super::{CongestionPoint, NotificationPoint, ParamError, Place, ReactionPoint, Scope};

pub mod bcn;
#[cfg(test)]
mod bottleneck;
pub mod dcqcn;
mod fecn_marker;
pub mod ib_cca;
pub mod none;
mod pace;
mod params;
pub mod qcn;
mod ratio;
pub mod rr_cc;

/// One scheme: its name, its source, and how its roles are made from its own parameters.
#[derive(Debug)]
pub struct Scheme {
    /// As in `[scheme] kind`.
    pub name: &'static str,
    /// The document it comes from.
    pub source: &'static str,
    /// Every fault of a parameter table; empty if it may be used.
    pub check: fn(&toml::Table) -> Vec<ParamError>,
    /// What one reaction point governs.
    pub scope: fn(&toml::Table) -> Scope,
    /// How many reaction points a sender may have in one priority. Flows that come when there are so
    /// many are governed by the latest. [`usize::MAX`]: as many as it needs.
    pub reaction_points: fn(&toml::Table) -> usize,
    /// The role in a switch's output port and lane.
    pub congestion_point: fn(Place<'_>) -> Box<dyn CongestionPoint>,
    /// The role of a receiver towards one flow.
    pub notification_point: fn(Place<'_>) -> Box<dyn NotificationPoint>,
    /// The role of a sender towards one flow or group of flows.
    pub reaction_point: fn(Place<'_>) -> Box<dyn ReactionPoint>,
}

/// Every scheme.
pub const SCHEMES: &[&Scheme] =
    &[&none::SCHEME, &ib_cca::SCHEME, &rr_cc::SCHEME, &dcqcn::SCHEME, &bcn::SCHEME, &qcn::SCHEME];

/// The scheme called `name`.
pub fn find(name: &str) -> Option<&'static Scheme> {
    SCHEMES.iter().copied().find(|scheme| scheme.name == name)
}
