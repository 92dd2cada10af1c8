//! The registry of memory models: one row each.

use super::Memory;
use super::global_watermark::GlobalWatermark;
use super::headroom::{self, MemoryError, Needed};
use super::per_input::PerInput;
use super::shared_pool::SharedPool;
use crate::config::MemoryConfig;
use proto::units::{BitRate, Bytes, Duration};

/// An input, as far as memory is concerned.
#[derive(Clone, Copy, Debug)]
pub struct Inlet {
    /// The buffer its port is told it has.
    pub buffer: Bytes,
    /// How fast it fills.
    pub rate: BitRate,
    /// What the cable takes, one way.
    pub delay: Duration,
    /// Octets of the largest frame.
    pub full_frame: Bytes,
    /// Priorities whose senders can be silenced, and which therefore must lose nothing, bit n for
    /// priority n.
    pub lossless: u8,
}

/// What a model is built for.
#[derive(Clone, Copy, Debug)]
pub struct Room<'a> {
    /// By port.
    pub inlets: &'a [Inlet],
    /// The configuration.
    pub numbers: &'a MemoryConfig,
}

/// Makes an empty memory.
type Make = fn(Room<'_>) -> Result<Box<dyn Memory>, MemoryError>;

/// A row: the model's name in scenario files, and how it is made.
pub struct Model {
    /// As in `memory = "…"`.
    pub name: &'static str,
    /// It has a meaning where credits settle what may come in: there, ports keep the account themselves,
    /// and none is made.
    pub with_credits: bool,
    /// What its headroom must hold on Ethernet.
    pub needed: Needed,
    /// Makes an empty memory, or says why its numbers do not hold.
    pub make: Make,
}

/// Every memory model.
pub const MODELS: &[Model] = &[
    Model {
        name: "per-input",
        with_credits: true,
        needed: headroom::behind_a_mark,
        make: |room| Ok(Box::new(PerInput::new(room)?)),
    },
    Model {
        name: "shared-pool",
        with_credits: false,
        needed: headroom::behind_xoff,
        make: |room| Ok(Box::new(SharedPool::new(room)?)),
    },
    Model {
        name: "global-watermark",
        with_credits: false,
        needed: headroom::behind_a_mark,
        make: |room| Ok(Box::new(GlobalWatermark::new(room)?)),
    },
];

/// The model called `name`.
pub fn find(name: &str) -> Option<&'static Model> {
    MODELS.iter().find(|model| model.name == name)
}

/// Inlets for tests: so many of 10 Gb/s with buffers of 150 KB, priority 3 lossless.
#[cfg(test)]
pub(crate) fn inlets(count: usize) -> Vec<Inlet> {
    let inlet = Inlet {
        buffer: Bytes::new(150_000),
        rate: BitRate::gbps(10),
        delay: Duration::from_ns(500),
        full_frame: Bytes::new(1518),
        lossless: 1 << 3,
    };
    vec![inlet; count]
}
