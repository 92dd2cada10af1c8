//! A scenario file of arbitrary text, with and without overrides: accepted, or refused with reasons.

use scenario::Scenario;

/// The text up to the first NUL is the file. NUL-separated overrides follow.
pub fn check(octets: &[u8]) {
    let text = String::from_utf8_lossy(octets);
    let mut parts = text.split('\0');
    let file = parts.next().unwrap_or_default();
    let sets: Vec<String> = parts.map(str::to_owned).collect();
    judge(file, &[]);
    if !sets.is_empty() {
        judge(file, &sets);
    }
}

fn judge(file: &str, sets: &[String]) {
    match Scenario::parse(file, sets) {
        Ok(scenario) => {
            let nodes = scenario.fabric.topology.nodes.len();
            assert!(nodes > 0, "a fabric has nodes");
            assert!(Scenario::parse(file, sets).is_ok(), "parsing twice gives the same result");
        }
        Err(problems) => assert!(!problems.in_file("x.toml").is_empty(), "a refusal has a reason"),
    }
}
