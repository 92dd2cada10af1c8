//! Draws mutants by a seed from the list of cargo-mutants.

use super::laboratory::in_repository;
use proto::random::Random;
use serde_json::Value;
use std::fmt::Write;
use std::process::Command;

/// The seed.
const SEED: u64 = 29;
/// Folders, and how many mutants of each are drawn. Queue pairs of agents are in nicd/src/host.
const FOLDERS: [(&str, &str, usize); 3] = [
    ("switchd", "switchd/src", 16),
    ("nicd", "nicd/src/host", 16),
    ("nicd", "nicd/src/transport", 16),
];

/// The text of `mutants/drawn.toml`; none without cargo-mutants.
pub fn draw() -> Option<String> {
    let mut text = format!(
        "# Mutants drawn with seed {SEED} from the list of cargo-mutants. Made by the test draw_faults; do not edit but for `equivalent` and `survives`, the reasons.\n\n"
    );
    for (package, folder, count) in FOLDERS {
        let listed = Command::new("cargo")
            .args(["mutants", "--list", "--json", "-p", package])
            .current_dir(in_repository(""))
            .output()
            .ok()
            .filter(|output| output.status.success())?;
        let all: Vec<Value> = serde_json::from_slice(&listed.stdout).expect("JSON");
        let mut all: Vec<Value> = all
            .into_iter()
            .filter(|one| one["file"].as_str().is_some_and(|file| file.starts_with(folder)))
            .filter(|one| !one["file"].as_str().is_some_and(|file| file.ends_with("main.rs")))
            .collect();
        let mut random = Random::stream(SEED, "mutants", folder);
        for _ in 0..count {
            row(&mut text, &all.swap_remove(random.below(all.len() as u64) as usize));
        }
    }
    Some(text)
}

fn row(text: &mut String, one: &Value) {
    let place = |end: &str| {
        ["line", "column"].map(|part| one["span"][end][part].as_u64().expect("a number"))
    };
    let word = |key: &str| one[key].as_str().expect("a text");
    let (from, to, file) = (place("start"), place("end"), word("file"));
    let source = std::fs::read_to_string(in_repository(file)).expect("a file");
    let offset =
        |place: [u64; 2]| super::scratch::offset(&source, place.map(|number| number as usize));
    let was = &source[offset(from)..offset(to)];
    let line = source.lines().nth(from[0] as usize - 1).expect("a line");
    let quoted = |text: &str| toml::Value::String(text.to_owned()).to_string();
    // Writing to a String cannot fail.
    let _ = writeln!(
        text,
        "[[mutant]]\nname = {}\nfile = {}\nfrom = {from:?}\nline = {}\nwas = {}\nis = {}\n",
        quoted(word("name")),
        quoted(file),
        quoted(line),
        quoted(was),
        quoted(word("replacement")),
    );
}
