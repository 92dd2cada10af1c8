//! A TOML file whose every key is declared once: checked, defaulted, overridden and published.
//!
//! A [`keys::KeyTable`] says which keys a table has, of what kind, with which default and why.
//! From it alone come the refusal of unknown keys with a hint, the checks of types and units, the
//! defaults, `--set key=value`, and the JSON Schema. What no table can say (two keys that exclude
//! each other, a port used twice) is checked by whoever reads the [`fields::Fields`] afterwards;
//! both kinds of fault go to one list of [`problem::Problems`], so that all are told together.

pub mod document;
pub mod fields;
pub mod json_schema;
pub mod keys;
pub mod overrides;
pub mod problem;
pub mod quantity;
pub mod settle;
