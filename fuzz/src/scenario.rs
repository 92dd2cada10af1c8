//! A scenario file of whatever text, with and without overrides: refused with reasons, or good.

use scenario::Scenario;

/// The text up to the first NUL is the file; what follows are overrides, one a NUL.
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
            assert!(Scenario::parse(file, sets).is_ok(), "the same answer twice");
        }
        Err(problems) => assert!(!problems.in_file("x.toml").is_empty(), "a refusal says why"),
    }
}
