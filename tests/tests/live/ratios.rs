//! Measures by which a run and its twin are compared: ratios to line rate that have an expectation.

use proto::technology::Technology;
use scenario::measure::{Measure, Per, Quantity};
use std::path::Path;

/// The measures of a scenario that are ratios to line rate and have an expectation, and their permitted
/// absolute difference from the twin.
pub fn expected_ratios(file: &Path) -> (Vec<String>, f64) {
    let scenario = scenario::files::load(file, &[]).expect("the scenario is valid").scenario;
    let expected =
        |name: &str| scenario.expectations.iter().any(|expected| expected.measure == name);
    // A share is already a ratio to line rate.
    let is_ratio = |measure: &&Measure| measure.per == Per::Line || measure.of == Quantity::Share;
    let measures =
        scenario.measures.iter().filter(is_ratio).filter(|measure| expected(&measure.name));
    let names: Vec<String> = measures.map(|measure| measure.name.clone()).collect();
    assert!(!names.is_empty(), "{}: no measure to compare", file.display());
    let tolerance = match scenario.fabric.technology {
        Technology::Infiniband => 0.03,
        Technology::Ethernet => 0.05,
    };
    (names, tolerance)
}
