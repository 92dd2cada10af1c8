//! Options that several commands share: overrides of scenario keys, and the conditions of runs.

use crate::completion;
use launch::BACKENDS;
use std::num::NonZeroUsize;
use std::ops::RangeInclusive;
use std::path::PathBuf;

/// Overrides of keys of a scenario file.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct Overrides {
    /// Override a key of the file, as in scheme.ccti_increase=20; can be repeated.
    #[arg(long = "set", value_name = "KEY=VALUE", add = completion::keys())]
    sets: Vec<String>,
    /// Wall time over fabric time, instead of the file's: a number, or auto. With auto a run that falls behind stretches
    /// its clock, up to 16 times; a number is never changed.
    #[arg(long, value_name = "FACTOR")]
    dilate: Option<String>,
    /// What live runs follow, instead of the file's. `wall`: the wall clock, which attached devices and hosts need, and
    /// which a busy host stretches or makes inconclusive. `exact`: the promises of the other processes. An exact run equals
    /// that of the virtual clock to the octet, is never inconclusive, and needs no quiet host.
    #[arg(long, value_name = "PACE", value_parser = ["wall", "exact"])]
    pace: Option<String>,
    /// Leave the fabric to a subnet manager, such as OpenSM: `lab.managed=true`.
    #[arg(long)]
    managed: bool,
}

impl Overrides {
    /// As `KEY=VALUE`, with the backend if there is one.
    pub(crate) fn keys(&self, backend: Option<&str>) -> Vec<String> {
        let mut keys = self.sets.clone();
        keys.extend(backend.map(|backend| format!("run.backend={backend:?}")));
        keys.extend(self.managed.then(|| "lab.managed=true".to_owned()));
        keys.extend(self.pace.as_ref().map(|pace| format!("run.pace={pace:?}")));
        keys.extend(self.dilate.as_ref().map(|dilate| match dilate.parse::<f64>() {
            Ok(_) => format!("run.dilate={dilate}"),
            Err(_) => format!("run.dilate={dilate:?}"),
        }));
        keys
    }
}

/// Options of every command that runs scenarios.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct RunOptions {
    /// Run on this substrate instead of the file's.
    #[arg(long, value_parser = BACKENDS.iter().map(|row| row.name).collect::<Vec<_>>())]
    pub backend: Option<String>,
    #[command(flatten)]
    overrides: Overrides,
    /// The seed, instead of the file's.
    #[arg(long, value_name = "N", conflicts_with = "seeds")]
    pub seed: Option<u64>,
    /// Several seeds, as in 1..10 (both included): mean and spread of every measure.
    #[arg(long, value_name = "FIRST..LAST", value_parser = seeds)]
    pub seeds: Option<Seeds>,
    /// Threads for each run on the virtual clock. They change no result. Default: one for every 64 devices of a
    /// single run, as far as there are cores, and one for each of several runs side by side.
    #[arg(long, value_name = "N")]
    pub threads: Option<NonZeroUsize>,
    /// Write run directories here.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Write no report.html into run directories.
    #[arg(long)]
    pub no_report: bool,
    /// Print one JSON document instead of tables.
    #[arg(long)]
    pub json: bool,
    /// Say how long the runs will take, and make none.
    #[arg(long)]
    pub dry_run: bool,
    /// Print no progress and no messages, only results and errors.
    #[arg(long, short)]
    pub quiet: bool,
}

impl RunOptions {
    /// The same options with exact pace.
    pub(crate) fn at_exact_pace(&self) -> RunOptions {
        let overrides = Overrides { pace: Some("exact".to_owned()), ..self.overrides.clone() };
        RunOptions { overrides, ..self.clone() }
    }

    /// The overrides of scenario keys.
    pub(crate) fn overrides(&self) -> Vec<String> {
        let mut sets = self.overrides.keys(self.backend.as_deref());
        sets.extend(self.seed.iter().map(|seed| format!("run.seed={seed}")));
        sets
    }
}

/// The seeds of a series of runs; at least one.
pub(crate) type Seeds = RangeInclusive<u64>;

/// Reads `1..10`.
///
/// # Errors
/// If `text` is not a range.
pub(crate) fn seeds(text: &str) -> Result<Seeds, String> {
    let (first, last) = text.split_once("..").ok_or("write it as 1..10")?;
    let number =
        |text: &str| text.trim_start_matches('=').parse::<u64>().map_err(|e| e.to_string());
    let (first, last) = (number(first)?, number(last)?);
    if first > last { Err("the first is above the last".to_owned()) } else { Ok(first..=last) }
}

/// The number of cores that this process may use.
pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, NonZeroUsize::get)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_and_numbers_are_not() {
        let with = |dilate: &str| Overrides {
            sets: vec!["run.seed=3".to_owned()],
            dilate: Some(dilate.to_owned()),
            pace: None,
            managed: false,
        };
        assert_eq!(with("auto").keys(None), ["run.seed=3", "run.dilate=\"auto\""]);
        let all = ["run.seed=3", "run.backend=\"udp\"", "run.dilate=1e3"];
        assert_eq!(with("1e3").keys(Some("udp")), all);
    }
}
