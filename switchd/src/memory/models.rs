//! The registry of memory models: one row each.
//!
//! To add one: write `memory/<name>.rs` with its parameters, declare the module in `memory.rs` and add the
//! row to [`MODELS`].

use super::Memory;
use super::headroom::{self, MemoryError, Needed};
use super::ingress::Room;
use super::shared_pool::{self, PoolParams, SharedPool};
use super::watermarks::Watermarks;
use proto::Technology;
use proto::params::Key;
use proto::units::Bytes;

/// Makes an empty memory.
type Make = fn(Room<'_>) -> Result<Box<dyn Memory>, MemoryError>;

/// One memory model.
pub struct Model {
    /// As in `memory = "…"`.
    pub name: &'static str,
    /// What it does, in one sentence.
    pub about: &'static str,
    /// Technologies that it works on. With credits, ports keep the account, and no memory is made.
    pub technologies: &'static [Technology],
    /// The key of `[fabric.switch]` whose table holds its parameters; `None` if it has none.
    pub section: Option<&'static Key>,
    /// The whole memory in octets, if a parameter says it; else the buffers of all ports.
    pub size: fn(&toml::Table) -> Option<Bytes>,
    /// All inputs pause together, whichever of them hold the frames.
    pub pauses_together: bool,
    /// The headroom that it needs on Ethernet.
    pub needed: Needed,
    /// The headroom of all ports together, if a parameter limits it.
    pub headroom_pool: fn(&toml::Table) -> Option<Bytes>,
    /// Makes an empty memory, or reports numbers that contradict each other.
    pub make: Make,
}

/// Every memory model.
pub const MODELS: &[Model] = &[
    Model {
        name: "per-input",
        about: "A buffer for each input.",
        technologies: &[Technology::Infiniband, Technology::Ethernet],
        section: None,
        size: |_| None,
        pauses_together: false,
        needed: headroom::behind_a_mark,
        headroom_pool: |_| None,
        make: |room| Ok(Box::new(Watermarks::per_input(room)?)),
    },
    Model {
        name: "shared-pool",
        about: "One memory with reserves, dynamic thresholds and headroom.",
        technologies: &[Technology::Ethernet],
        section: Some(&shared_pool::SECTION),
        size: |params| proto::params::read(params).ok().map(|pool: PoolParams| pool.size),
        pauses_together: false,
        needed: shared_pool::needed,
        headroom_pool: |params| proto::params::read::<PoolParams>(params).ok()?.headroom_pool,
        make: |room| Ok(Box::new(SharedPool::new(room)?)),
    },
    Model {
        name: "global-watermark",
        about: "One memory with one pair of marks for all inputs.",
        technologies: &[Technology::Ethernet],
        section: None,
        size: |_| None,
        pauses_together: true,
        needed: headroom::behind_a_mark,
        headroom_pool: |_| None,
        make: |room| Ok(Box::new(Watermarks::global(room)?)),
    },
];

/// The model called `name`.
pub fn find(name: &str) -> Option<&'static Model> {
    MODELS.iter().find(|model| model.name == name)
}
