//! The file that `tune` writes: its scenario with comments, the settings that it
//! found, and expectations for the traffic of the file.

use crate::tune::ideal::Window;
use crate::tune::runner::Prepared;
use crate::tune::{Tuning, search::Trial};
use scenario::Scenario;
use toml_edit::{ArrayOfTables, DocumentMut, Item, Table, Value, value};

/// The measures that it adds; those of an earlier search are replaced.
const COLD: &str = "tuned_cold_ports";
const HOT: &str = "tuned_hot_port";
const FAIR: &str = "tuned_hot_flows_fairness";

/// The text of the file: `text`, which was read as `scenario` with the overrides `sets`, with the
/// settings of `trial`.
///
/// # Errors
/// If `text` is not TOML, which is impossible after it was read.
pub fn text(
    text: &str,
    sets: &[String],
    scenario: &Scenario,
    tuning: &Tuning,
    trial: &Trial,
) -> Result<String, toml_edit::TomlError> {
    let mut document: DocumentMut = text.parse()?;
    for (path, setting) in sets.iter().filter_map(|set| set.split_once('=')) {
        let setting = setting.trim().parse().unwrap_or_else(|_| Value::from(setting.trim()));
        let path: Vec<&str> = path.split('.').map(str::trim).collect();
        write_override(document.as_item_mut(), &path, setting);
    }
    let name = scenario.name.strip_suffix("-tuned").unwrap_or(&scenario.name);
    document["name"] = value(format!("{name}-tuned"));
    for (parameter, setting) in tuning.space.settings(&trial.point) {
        if let Ok(setting) = setting.to_string().parse() {
            set_beside_its_comment(&mut document["scheme"][parameter], setting);
        }
    }
    let own = Prepared::new(
        scenario,
        &scenario::tune::Case { name: scenario.name.clone(), traffic: scenario.traffic.clone() },
        scenario.tune.as_ref().and_then(|tune| tune.window),
    );
    if let Ok(own) = own {
        expect(&mut document, &own, tuning, trial);
    }
    Ok(document.to_string())
}

/// Writes an override of `--set` to the file. Elements of an array are named
/// by their name or measure, or by their index.
fn write_override(item: &mut Item, path: &[&str], setting: Value) {
    let Some((first, rest)) = path.split_first() else {
        return set_beside_its_comment(item, setting);
    };
    match item {
        Item::ArrayOfTables(tables) => {
            let is_it = |(index, table): (usize, &Table)| {
                element_name(table) == Some(first) || *first == index.to_string()
            };
            let place = tables.iter().enumerate().position(is_it);
            if let Some((table, key)) = place.and_then(|at| tables.get_mut(at)).zip(rest.first()) {
                write_override(&mut table[key], &rest[1..], setting);
            }
        }
        _ => write_override(&mut item[first], rest, setting),
    }
}

fn element_name(table: &Table) -> Option<&str> {
    ["name", "measure"].into_iter().find_map(|key| table.get(key)?.as_str())
}

fn set_beside_its_comment(item: &mut Item, setting: Value) {
    match item.as_value_mut() {
        Some(old) => {
            let decor = old.decor().clone();
            *old = setting;
            *old.decor_mut() = decor;
        }
        None => *item = Item::Value(setting),
    }
}

/// Adds measures and expectations for the traffic of the file.
fn expect(document: &mut DocumentMut, own: &Prepared, tuning: &Tuning, trial: &Trial) {
    let goal = tuning.objective.goal;
    let owed = own.ideal.owed;
    let ports = |nodes: &mut dyn Iterator<Item = usize>| {
        ranges(nodes.map(|node| format!("{}:rx", name(own, node))).collect())
    };
    let cold = ports(&mut own.ideal.cold.iter().copied());
    let hot = ports(&mut own.ideal.hot.iter().map(|hot| hot.node));
    let flows = own.ideal.hot.iter().flat_map(|hot| {
        hot.senders.iter().map(|sender| format!("{}>{}", name(own, *sender), name(own, hot.node)))
    });
    let window = in_frames(own, own.window);
    for (name, of, at, per) in [
        (COLD, "throughput", cold, Some("line")),
        (HOT, "throughput", hot, Some("line")),
        (FAIR, "fairness", ranges(flows.collect()), None),
    ] {
        add(document, "measure", name, measure(name, of, &at, &window, per));
    }
    let why = format!(
        "owed {owed:.4}, ±{:.1} %; found by pausebed tune in {} runs",
        goal * 100.0,
        tuning.spent
    );
    let bounds = [("min", owed * (1.0 - goal)), ("max", owed * (1.0 + goal))];
    add(document, "expect", COLD, expectation(COLD, &bounds, &why));
    let hot = trial.judged().map(|score| score.hot).fold(f64::INFINITY, f64::min);
    let why = "the least that the search saw in any case, less 2 %";
    add(document, "expect", HOT, expectation(HOT, &[("min", hot - 0.02)], why));
}

fn name(own: &Prepared, node: usize) -> &str {
    &own.scenario.fabric.topology.nodes[node].name
}

fn in_frames(own: &Prepared, window: Window) -> [String; 2] {
    let tau = own.scenario.fabric.scale.tau.as_ps().max(1) as f64;
    [window.0, window.1].map(|at| {
        // A window derived from the traffic need not be whole frame times.
        let frames = format!("{:.6}", at.as_ps() as f64 / tau);
        format!("{} mtu", frames.trim_end_matches('0').trim_end_matches('.'))
    })
}

fn measure(name: &str, of: &str, at: &[String], window: &[String; 2], per: Option<&str>) -> Table {
    let at: toml_edit::Array = at.iter().collect();
    let [from, to] = window;
    let keys = [
        ("name", value(name)),
        ("of", value(of)),
        ("at", value(at)),
        ("from", value(from)),
        ("to", value(to)),
    ];
    keys.into_iter().chain(per.map(|per| ("per", value(per)))).collect()
}

fn expectation(measure: &str, bounds: &[(&str, f64)], why: &str) -> Table {
    let bounds = bounds.iter().map(|(bound, n)| (*bound, value((n * 1e4).round() / 1e4)));
    [("measure", value(measure))].into_iter().chain(bounds).chain([("why", value(why))]).collect()
}

/// Appends `table` to the array `key`, in place of the one of the same name.
fn add(document: &mut DocumentMut, key: &str, name: &str, mut table: Table) {
    let array = document.entry(key).or_insert(Item::ArrayOfTables(ArrayOfTables::new()));
    let Some(array) = array.as_array_of_tables_mut() else { return };
    array.retain(|old| element_name(old) != Some(name));
    table.decor_mut().set_prefix("\n");
    array.push(table);
}

/// Merges names that differ in one number, each number one more than the last: h\[0-30\]:rx.
fn ranges(names: Vec<String>) -> Vec<String> {
    let mut runs: Vec<(String, u64, u64, String)> = Vec::new();
    let mut out = Vec::new();
    for name in names {
        let Some((head, number, tail)) = around_first_number(&name) else {
            out.push(name);
            continue;
        };
        match runs.last_mut() {
            Some((h, _, last, t)) if (&**h, *last + 1, &**t) == (head, number, tail) => {
                *last = number
            }
            _ => runs.push((head.to_owned(), number, number, tail.to_owned())),
        }
    }
    out.extend(runs.into_iter().map(|(head, first, last, tail)| match first == last {
        true => format!("{head}{first}{tail}"),
        false => format!("{head}[{first}-{last}]{tail}"),
    }));
    out
}

fn around_first_number(name: &str) -> Option<(&str, u64, &str)> {
    let from = name.find(|c: char| c.is_ascii_digit())?;
    let rest = &name[from..];
    let length = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let digits = &rest[..length];
    // h01 would come back as h1.
    let number = digits.parse().ok().filter(|number: &u64| number.to_string() == digits)?;
    Some((&name[..from], number, &rest[length..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(list: &[&str]) -> Vec<String> {
        list.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn neighbours_become_ranges_and_others_stay() {
        let ports = names(&["h0:rx", "h1:rx", "h2:rx", "h4:rx", "tor:rx", "h05:rx"]);
        assert_eq!(ranges(ports), names(&["tor:rx", "h05:rx", "h[0-2]:rx", "h4:rx"]));
        let flows = names(&["h9>h31", "h10>h31", "h9>h8"]);
        assert_eq!(ranges(flows), names(&["h[9-10]>h31", "h9>h8"]));
    }
}
