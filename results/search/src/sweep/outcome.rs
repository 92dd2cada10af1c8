//! The result at one point: mean and deviation of each measure over the seeds.

use super::grid::Point;
use results::lossless::LosslessDrops;
use results::run_directory::result::RunResult;
use results::verdict::Verdict;
use scenario::measure::value::Value;
use serde::Serialize;
use std::collections::BTreeMap;

/// A point and its result.
#[derive(Clone, Debug)]
pub struct Row {
    /// The point.
    pub point: Point,
    /// The worst verdict of its runs.
    pub verdict: Verdict,
    /// The frames of lossless lanes that congestion dropped in its runs, if there were any.
    pub lossless_drops: Option<LosslessDrops>,
    /// By measure.
    pub cells: BTreeMap<String, Cell>,
}

/// One measure at one point.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Cell {
    /// Mean over the seeds with a number; `None` if there is none.
    pub mean: Option<f64>,
    /// Standard deviation over them; `None` for fewer than two.
    pub deviation: Option<f64>,
}

impl Row {
    /// The result of the runs at `point`.
    pub fn new(point: Point, results: &[RunResult]) -> Row {
        let verdict = Verdict::worst(results.iter().map(|result| result.verdict));
        let names = results.iter().flat_map(|result| result.measures.keys().cloned());
        let number = |result: &RunResult, name: &str| {
            result.measures.get(name)?.as_ref().and_then(Value::number)
        };
        let cell = |name: String| {
            let values: Vec<f64> = results.iter().filter_map(|of| number(of, &name)).collect();
            (name, Cell::of(&values))
        };
        let cells = names.map(cell).collect();
        let lost = results.iter().filter_map(|result| result.lossless_drops.clone());
        let lossless_drops = LosslessDrops::sum(lost);
        Row { point, verdict, lossless_drops, cells }
    }

    /// The mean of `measure`.
    pub fn mean(&self, measure: &str) -> Option<f64> {
        self.cells.get(measure)?.mean
    }
}

impl Cell {
    fn of(values: &[f64]) -> Cell {
        let n = values.len() as f64;
        let mean = (!values.is_empty()).then(|| values.iter().sum::<f64>() / n);
        let deviation = mean.filter(|_| values.len() > 1).map(|mean| {
            let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
            (squares / (n - 1.0)).sqrt()
        });
        Cell { mean, deviation }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_is_mean_and_spread_over_seeds() {
        assert_eq!(Cell::of(&[]), Cell::default());
        assert_eq!(Cell::of(&[3.0]), Cell { mean: Some(3.0), deviation: None });
        assert_eq!(Cell::of(&[1.0, 3.0]).deviation, Some(2f64.sqrt()));
    }
}
