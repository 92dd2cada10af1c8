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
pub mod variant;

use document::Table;
use fields::Fields;
use problem::{Place, Problem, Problems};
use proto::params::{KeyTable, Scale};
use std::cell::RefCell;

/// Checks and completes `table`, the root of a file, against its keys, and reads it. Returns what `read`
/// makes of it, and the warnings.
///
/// # Errors
/// All faults in the order of the file, those in `problems` included.
pub fn read<T>(
    table: &mut Table,
    keys: &KeyTable,
    scale: Scale,
    mut problems: Problems,
    read: impl FnOnce(&Fields<'_>) -> Option<T>,
) -> Result<(T, Vec<Problem>), Problems> {
    let place = &Place::File { line: 1, column: 1 };
    settle::settle(table, keys, place, "", &scale, &mut problems);
    let problems = RefCell::new(problems);
    let read = read(&Fields { path: String::new(), place, table, scale, problems: &problems });
    let mut problems = problems.into_inner();
    match read {
        Some(read) if problems.is_empty() => Ok((read, problems.take_warnings())),
        _ => Err(problems.in_order()),
    }
}
