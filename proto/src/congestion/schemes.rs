//! The registry of congestion-control schemes: one row each.
//!
//! To add one: write `schemes/<name>.rs` with its parameters, roles and `pub const SCHEME`, declare the
//! module here and add the row to [`SCHEMES`]. Nothing else changes: scenario files, their JSON Schema,
//! run.json, reports and docs/schemes.md read the row. A scheme can also stand in a program of its own, which
//! calls [`add`] (docs/book/scheme.md).

use super::{Roles, Scope};
use crate::params::{Key, ParamError, Reader};
use crate::technology::Technology;
use std::sync::{Arc, OnceLock};

pub mod bcn;
pub mod dcqcn;
mod fecn_marker;
pub mod ib_cca;
pub mod none;
pub mod pace;
pub mod qcn;
pub mod rr_cc;

/// One scheme: its name, its source, its parameters, and the properties that other parts read.
#[derive(Debug)]
pub struct Scheme {
    /// As in `[scheme] kind`.
    pub name: &'static str,
    /// What it does, in one sentence.
    pub about: &'static str,
    /// The document it comes from.
    pub source: &'static str,
    /// The technologies whose frames can carry its marks and notifications.
    pub technologies: &'static [Technology],
    /// Its parameters, in groups.
    pub keys: &'static [&'static [Key]],
    /// Parses the parameters; reports faults that need more than one key to detect.
    pub parse: fn(&mut Reader<'_>) -> Option<Arc<dyn Roles>>,
    /// What its marks and its notifications are called; `None` if they are those of the technology.
    pub signals: Option<Signals>,
    /// The quantity that shows best how much a reaction point throttles.
    pub shows: Throttling,
}

impl Scheme {
    /// Whether it slows senders down. A run whose scheme does not is the baseline of the others.
    pub fn controls_senders(&self) -> bool {
        self.name != none::SCHEME.name
    }
}

/// What a scheme's messages are called, in the plural.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signals {
    /// Marks that switches set on frames.
    pub marks: &'static str,
    /// Notifications that senders receive.
    pub notifications: &'static str,
}

impl Signals {
    /// Congestion notifications of the technology itself.
    pub const fn of(technology: Technology) -> Signals {
        match technology {
            Technology::Infiniband => Signals { marks: "FECN marks", notifications: "BECNs" },
            Technology::Ethernet => Signals { marks: "CE marks", notifications: "CNPs" },
        }
    }
}

/// A quantity of a reaction point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Throttling {
    /// The gap after a full frame.
    Gap,
    /// The allowed rate.
    Rate,
}

crate::words! {
    /// Whether an optional procedure of a scheme is in use.
    pub enum OnOff {
        /// It is not.
        Off = "off",
        /// It is.
        On = "on",
    }

    /// The flows that share one reaction point in the schemes of InfiniBand.
    pub enum SharedBy {
        /// Those of a queue pair.
        QueuePair = "queue-pair",
        /// Those of a service level.
        ServiceLevel = "service-level",
    }
}

impl From<SharedBy> for Scope {
    fn from(shared: SharedBy) -> Scope {
        match shared {
            SharedBy::QueuePair => Scope::QueuePair,
            SharedBy::ServiceLevel => Scope::ServiceLevel,
        }
    }
}

/// Both technologies.
pub const ANY: &[Technology] = &[Technology::Infiniband, Technology::Ethernet];

/// The schemes of this crate.
pub const SCHEMES: &[&Scheme] =
    &[&none::SCHEME, &ib_cca::SCHEME, &rr_cc::SCHEME, &dcqcn::SCHEME, &bcn::SCHEME, &qcn::SCHEME];

static ALL: OnceLock<Vec<&Scheme>> = OnceLock::new();

/// Every scheme of this program: those of this crate, then those that [`add`] got.
pub fn all() -> &'static [&'static Scheme] {
    ALL.get_or_init(|| SCHEMES.to_vec())
}

/// Adds the schemes of a program that is built on this crate; its `main` calls this first.
///
/// # Panics
/// If two schemes have one name, or the registry has been read or added to before.
pub fn add(schemes: &[&'static Scheme]) {
    let all = [SCHEMES, schemes].concat();
    let mut names: Vec<&str> = all.iter().map(|scheme| scheme.name).collect();
    names.sort_unstable();
    assert!(
        names.windows(2).all(|pair| pair[0] != pair[1]),
        "two schemes have one name: {names:?}"
    );
    assert!(ALL.set(all).is_ok(), "the registry of schemes is in use already");
}

/// The scheme called `name`.
pub fn find(name: &str) -> Option<&'static Scheme> {
    all().iter().copied().find(|scheme| scheme.name == name)
}

impl Scheme {
    /// Parses the parameters of `table`; missing ones have their defaults.
    ///
    /// # Errors
    /// Every parameter that is unknown or wrong.
    pub fn configure(&self, table: &toml::Table) -> Result<Arc<dyn Roles>, Vec<ParamError>> {
        let mut reader = Reader::new(table, self.keys);
        let roles = (self.parse)(&mut reader);
        reader.finish(roles)
    }

    /// What its marks and notifications are called on a fabric of `technology`.
    pub fn signals_on(&self, technology: Technology) -> Signals {
        self.signals.unwrap_or(Signals::of(technology))
    }
}
