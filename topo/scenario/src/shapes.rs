//! The registry of shapes: how a few numbers become a fabric. One file and one row a shape.

use crate::keyfile::fields::Fields;
use crate::topology::Topology;
use proto::params::{Key, Variant};

pub mod detours;
pub mod leaf_spine;
pub mod listed;
pub mod star;
pub mod xgft;

/// A way to describe a fabric.
#[derive(Debug)]
pub struct Shape {
    /// Its name in `[fabric] shape`.
    pub name: &'static str,
    /// The keys it brings to `[fabric]`.
    pub keys: &'static [Key],
    /// Builds the graph from `[fabric]`; `None` once a fault has been reported that leaves none.
    pub build: fn(&Fields<'_>) -> Option<Topology>,
}

/// Every shape.
pub static SHAPES: [Shape; 6] =
    [star::SHAPE, xgft::SHAPE, leaf_spine::SHAPE, detours::T1, detours::T3, listed::SHAPE];

/// The shape of that name.
pub fn find(name: &str) -> Option<&'static Shape> {
    SHAPES.iter().find(|shape| shape.name == name)
}

/// Every name.
pub fn names() -> Vec<&'static str> {
    SHAPES.iter().map(|shape| shape.name).collect()
}

/// Every name with the keys it brings.
pub fn rows() -> Vec<Variant> {
    SHAPES.iter().map(|shape| (shape.name, shape.keys.iter().collect())).collect()
}
