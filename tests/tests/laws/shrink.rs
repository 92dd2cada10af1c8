//! Makes a scenario smaller as long as it breaks the same law.

use crate::text;
use toml::{Table, Value};

/// Runs that one scenario is worth.
const TRIALS_MAX: u32 = 400;

/// A smaller scenario for which `breaks` still holds: fewer nodes, items and keys, and a shorter run.
pub fn smaller(table: &Table, breaks: impl Fn(&Table) -> bool) -> Table {
    let mut best = table.clone();
    let mut trials = 0;
    let mut has_shrunk = true;
    while has_shrunk && trials < TRIALS_MAX {
        has_shrunk = false;
        for change in changes(&best) {
            let mut candidate = best.clone();
            if trials >= TRIALS_MAX || !change.apply(&mut candidate) || candidate == best {
                continue;
            }
            trials += 1;
            if breaks(&candidate) {
                best = candidate;
                has_shrunk = true;
            }
        }
    }
    best
}

/// One step towards a smaller scenario.
enum Change {
    /// The run lasts half as long.
    Halve,
    /// A key has its default, or an element is left out.
    Remove(String),
    /// A node is left out, with its cables and its name in every list.
    Node(String),
}

impl Change {
    /// Returns false if it does not fit.
    fn apply(&self, table: &mut Table) -> bool {
        match self {
            Change::Halve => {
                let run = text::section(table, "run");
                let duration = run.get("duration").map_or(0, text::picoseconds);
                run.insert("duration".into(), format!("{} ps", duration / 2).into());
                duration > 2_000_000
            }
            Change::Remove(path) => text::remove(table, path),
            Change::Node(name) => without(table, name),
        }
    }
}

/// What may be tried on `table`: large parts first.
fn changes(table: &Table) -> Vec<Change> {
    let mut all = vec![Change::Halve];
    let nodes = table.get("fabric").and_then(|fabric| fabric.get("nodes"));
    let nodes = nodes.and_then(Value::as_array).into_iter().flatten();
    let name = |node: &Value| node.get("name").and_then(Value::as_str).map(str::to_owned);
    all.extend(nodes.filter_map(name).map(Change::Node));
    let mut paths = Vec::new();
    for (key, value) in table {
        of_value(value, key, &mut paths);
    }
    paths.sort_by_key(|path| path.matches('.').count());
    all.extend(paths.into_iter().map(Change::Remove));
    all
}

/// The paths of `value` and of all in it. Elements are named by their numbers, the last first, so that removing one leaves
/// the paths of the others.
fn of_value(value: &Value, path: &str, paths: &mut Vec<String>) {
    match value {
        Value::Table(inner) => {
            inner.iter().for_each(|(key, value)| of_value(value, &format!("{path}.{key}"), paths));
        }
        Value::Array(list) if !path.starts_with("fabric.nodes") => {
            for (index, element) in list.iter().enumerate().rev() {
                of_value(element, &format!("{path}.{index}"), paths);
            }
        }
        _ => {}
    }
    if !path.starts_with("fabric.nodes") {
        paths.push(path.to_owned());
    }
}

/// Removes a node of a listed fabric, its cables, and what sends from it, to it or is at it.
fn without(table: &mut Table, name: &str) -> bool {
    let of_node = |end: &str| end == name || end.split(':').next() == Some(name);
    let is_there = |table: &Table| -> bool {
        let nodes = table.get("fabric").and_then(|fabric| fabric.get("nodes"));
        let mut nodes = nodes.and_then(Value::as_array).into_iter().flatten();
        nodes.any(|node| node.get("name").and_then(Value::as_str) == Some(name))
    };
    if !is_there(table) {
        return false;
    }
    let mut root = Value::Table(std::mem::take(table));
    prune(&mut root, &of_node);
    if let Value::Table(pruned) = root {
        *table = pruned;
    }
    true
}

/// Removes names from lists, and elements that name a node in another way.
fn prune(value: &mut Value, of_node: &dyn Fn(&str) -> bool) {
    match value {
        Value::Table(inner) => inner.iter_mut().for_each(|(_, value)| prune(value, of_node)),
        Value::Array(list) => {
            list.retain(|element| match element {
                Value::String(text) => !of_node(text),
                Value::Table(inner) => {
                    let mut names =
                        ["name", "a", "b", "to"].iter().filter_map(|key| inner.get(*key));
                    !names.any(|name| name.as_str().is_some_and(of_node))
                }
                _ => true,
            });
            list.iter_mut().for_each(|element| prune(element, of_node));
        }
        _ => {}
    }
}
