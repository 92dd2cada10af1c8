//! A TOML file whose every key is declared once: checked, defaulted, overridden and published.
//!
//! A [`proto::params::KeyTable`] declares the keys of a table: kind, default, meaning. Engines declare theirs
//! beside their code. From these tables come the refusal of unknown keys with a hint, the checks of types and
//! units, the defaults, `--set key=value`, and the JSON Schema. Rules between keys (two keys that exclude
//! each other, a port used twice) are checked by the readers of [`fields::Fields`]. Both kinds of error go
//! to one list of [`problem::Problems`], so that a user sees all of them at once.

pub mod document;
pub mod fields;
pub mod json_schema;
pub mod overrides;
pub mod problem;
pub mod settle;
