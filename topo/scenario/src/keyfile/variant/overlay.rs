//! One TOML document laid over another; the comments of both are kept.

use crate::keyfile::problem::{Complaint, did_you_mean};
use toml_edit::{ArrayOfTables, DocumentMut, Item, Table, TableLike, Value};

/// `base` with what `variant` says of it.
pub(super) fn overlaid(
    mut base: DocumentMut,
    mut variant: DocumentMut,
) -> Result<DocumentMut, Complaint> {
    let header = variant.iter().next().and_then(|(key, _)| comment_above(variant.as_table(), key));
    variant.remove("base");
    for path in variant.remove("without").map_or(Ok(Vec::new()), texts)? {
        let gone = leave_out(base.as_table_mut(), &path);
        gone.map_err(|hint| Complaint::new(format!("the base has no {path:?}"), hint))?;
    }
    overlay(base.as_item_mut(), variant.as_item());
    in_order(base.as_table_mut());
    let first = base.iter().next().map(|(key, _)| key.to_owned());
    if let Some(mut key) = first.and_then(|first| base.key_mut(&first)) {
        key.leaf_decor_mut().set_prefix(header.unwrap_or_default());
    }
    Ok(base)
}

/// The strings of an array.
fn texts(item: Item) -> Result<Vec<String>, Complaint> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let texts = item.as_array().and_then(|list| list.iter().map(text).collect());
    texts.ok_or_else(|| Complaint::new("not an array of names", "without = [\"measure.drops\"]"))
}

fn comment_above(table: &dyn TableLike, key: &str) -> Option<String> {
    Some(table.key(key)?.leaf_decor().prefix()?.as_str()?.to_owned())
}

/// Removes the value of `path`; the error is a hint.
fn leave_out(table: &mut dyn TableLike, path: &str) -> Result<(), String> {
    let (first, rest) = path.split_once('.').unwrap_or((path, ""));
    match table.get_mut(first) {
        None => return Err(did_you_mean(first, table.iter().map(|(key, _)| key))),
        Some(_) if rest.is_empty() => drop(table.remove(first)),
        Some(Item::ArrayOfTables(elements)) => {
            let found = elements
                .iter()
                .map(known_as)
                .enumerate()
                .find_map(|(index, known)| Some((index, below(rest, known?)?)));
            match found {
                None => return Err(did_you_mean(rest, elements.iter().filter_map(known_as))),
                Some((index, "")) => drop(elements.remove(index)),
                Some((index, rest)) => {
                    elements.get_mut(index).map_or(Ok(()), |element| leave_out(element, rest))?;
                }
            }
        }
        Some(item) => {
            leave_out(item.as_table_like_mut().ok_or("it is not a table")?, rest)?;
        }
    }
    Ok(())
}

/// What follows `name` in `path`; names of elements may have points.
pub(super) fn below<'a>(path: &'a str, name: &str) -> Option<&'a str> {
    match path.strip_prefix(name)? {
        "" => Some(""),
        rest => rest.strip_prefix('.'),
    }
}

/// The text by which an element is known, as [`crate::keyfile::document::Table::known_as`] tells it of a file that is read.
fn known_as(element: &Table) -> Option<&str> {
    element.get("name").or_else(|| element.get("measure"))?.as_str()
}

/// Lays `over` over `base`.
fn overlay(base: &mut Item, over: &Item) {
    let is_value = base.is_value() || over.is_value();
    if let (Some(elements), Some(further)) =
        (base.as_array_of_tables_mut(), over.as_array_of_tables())
        && further.iter().all(|element| known_as(element).is_some())
    {
        return overlay_elements(elements, further);
    }
    if let (Item::Table(base), Item::Table(over)) = (&mut *base, over)
        && let Some(prefix) = over.decor().prefix()
        && prefix.as_str().is_some_and(|prefix| prefix.contains('#'))
    {
        base.decor_mut().set_prefix(prefix.clone());
    }
    match (base.as_table_like_mut(), over.as_table_like()) {
        (Some(base), Some(over)) if is_same_kind(base, over) => {
            overlay_keys(base, over, is_value);
        }
        _ => *base = over.clone(),
    }
}

/// Whether two tables describe the same kind of thing, so that keys of one mean something for the other.
fn is_same_kind(base: &dyn TableLike, over: &dyn TableLike) -> bool {
    let kind = |table: &dyn TableLike| table.get("kind").and_then(Item::as_str).map(str::to_owned);
    kind(over).is_none_or(|own| kind(base) == Some(own))
}

/// Lays keys over keys; what goes into or comes from an inline table loses its spaces and comments.
fn overlay_keys(base: &mut dyn TableLike, over: &dyn TableLike, is_value: bool) {
    for (name, item) in over.iter() {
        let mut item = item.clone();
        if is_value && let Ok(mut value) = item.clone().into_value() {
            value.decor_mut().clear();
            item = Item::Value(value);
        }
        let Some(key) = over.key(name) else { continue };
        if let Some((mut old_key, old)) = base.get_key_value_mut(name) {
            if !is_value {
                *old_key.leaf_decor_mut() = key.leaf_decor().clone();
            }
            overlay(old, &item);
        } else if is_value {
            base.insert(name, item);
        } else {
            base.entry_format(key).or_insert(item);
        }
    }
}

/// Lays elements over elements; a further one follows the one that is written before it. A name that `over` has twice
/// stays twice, to be refused.
fn overlay_elements(base: &mut ArrayOfTables, over: &ArrayOfTables) {
    let is_bound = |element: &Table| !element.contains_key("name");
    base.retain(|old| {
        let replaced = |new: &Table| is_bound(new) && known_as(new) == known_as(old);
        !over.iter().any(replaced)
    });
    let mut next = base.len();
    for (nth, element) in over.iter().enumerate() {
        let is_first = over.iter().take(nth).all(|other| known_as(other) != known_as(element));
        let same = base.iter().position(|old| known_as(old) == known_as(element));
        let index = same.filter(|_| is_first && !is_bound(element));
        match index.and_then(|index| base.get_mut(index)) {
            Some(old) if is_same_kind(old, element) => overlay_keys(old, element, false),
            Some(old) => *old = element.clone(),
            None => base.insert(next, element.clone()),
        }
        next = index.unwrap_or(next) + 1;
    }
}

/// Lets tables be printed in the order of the tree: headers of two files have no common order.
fn in_order(table: &mut Table) {
    table.set_position(None);
    for (_, item) in table.iter_mut() {
        match item {
            Item::Table(table) => in_order(table),
            Item::ArrayOfTables(tables) => tables.iter_mut().for_each(in_order),
            Item::None | Item::Value(_) => {}
        }
    }
}
