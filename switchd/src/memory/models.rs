//! The registry of memory models: one row each.

use super::Memory;
use super::per_input::PerInput;
use crate::config::Read;
use proto::units::Bytes;

/// What a model is built for.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Ports of the switch.
    pub ports: usize,
    /// Data lanes of the switch.
    pub lanes: usize,
    /// How inputs are read.
    pub read: Read,
    /// Octets of one full data frame.
    pub full_frame: Bytes,
}

/// A row: the model's name in scenario files, and how it is made.
pub struct Model {
    /// As in `memory = "…"`.
    pub name: &'static str,
    /// Makes an empty memory.
    pub make: fn(Shape) -> Box<dyn Memory>,
}

/// Every memory model.
pub const MODELS: &[Model] =
    &[Model { name: "per-input", make: |shape| Box::new(PerInput::new(shape)) }];

/// The model called `name`.
pub fn find(name: &str) -> Option<&'static Model> {
    MODELS.iter().find(|model| model.name == name)
}
