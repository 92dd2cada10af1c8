//! `--set key=value`: changes a document before it is checked, so that an override is held to the
//! same rules as the file.

use crate::keyfile::document::{Data, Datum, Table, parse_value};
use crate::keyfile::problem::{Complaint, Place, Problems, did_you_mean};

/// Applies one `path=value`. Elements of an array are named by their `name` (an expectation by its
/// `measure`) or by their index: `traffic.cold.load=0.5`, `expect.0.min=0.8`.
pub fn apply(root: &mut Table, set: &str, problems: &mut Problems) {
    let place = Place::Override(set.to_owned());
    let Some((path, value)) = set.split_once('=') else {
        let complaint = Complaint::new("no equals sign", "--set run.seed=8");
        problems.report(&place, set, complaint);
        return;
    };
    let path = path.trim();
    let segments: Vec<&str> = path.split('.').map(str::trim).collect();
    if let Err(complaint) = set_in_table(root, &segments, parse_value(value, &place)) {
        problems.report(&place, path, complaint);
    }
}

fn set_in_table(table: &mut Table, path: &[&str], value: Datum) -> Result<(), Complaint> {
    let [first, rest @ ..] = path else { return Ok(()) };
    if rest.is_empty() {
        table.set(first, value);
        return Ok(());
    }
    if table.get(first).is_none() {
        let data = Data::Table(Table::default());
        table.set(first, Datum::new(value.place.clone(), data));
    }
    let inner = table.get_mut(first).expect("it was just made sure of");
    set_in_datum(inner, first, rest, value)
}

fn set_in_datum(
    datum: &mut Datum,
    name: &str,
    path: &[&str],
    value: Datum,
) -> Result<(), Complaint> {
    match &mut datum.data {
        Data::Table(table) => set_in_table(table, path, value),
        Data::List(list) => {
            let element = find(list, name, path[0])?;
            match &path[1..] {
                [] => {
                    *element = value;
                    Ok(())
                }
                rest => set_in_datum(element, path[0], rest, value),
            }
        }
        other => Err(Complaint::new(
            format!("{name:?} is {}, it has no {:?}", other.type_name(), path[0]),
            "set it as a whole",
        )),
    }
}

fn find<'a>(list: &'a mut [Datum], name: &str, wanted: &str) -> Result<&'a mut Datum, Complaint> {
    let names: Vec<String> = list.iter().filter_map(known_as).map(str::to_owned).collect();
    match position(list, wanted) {
        Some(index) => Ok(&mut list[index]),
        None => {
            let hint = match names.is_empty() {
                true => format!("it has {} elements, counted from 0", list.len()),
                false => did_you_mean(wanted, names.iter().map(String::as_str)),
            };
            Err(Complaint::new(format!("{name:?} has no element {wanted:?}"), hint))
        }
    }
}

/// Where the element is that `wanted` names, or whose index it is.
fn position(list: &[Datum], wanted: &str) -> Option<usize> {
    let by_name = list.iter().position(|element| known_as(element) == Some(wanted));
    by_name.or_else(|| wanted.parse().ok().filter(|index| *index < list.len()))
}

fn known_as(element: &Datum) -> Option<&str> {
    element.table()?.known_as()
}
