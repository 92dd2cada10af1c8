//! The runs of a plan on several machines: each machine makes a share, and the results of all are merged.
//!
//! ```text
//!   plan ──▶ --shard 1/N ──▶ DIR/RUN …  a run directory appears by rename, when it is whole,
//!        ──▶ --shard 2/N ──▶ DIR/RUN …  with a seal: plan, scenario, program
//!                               │
//!                               └──▶ --merge DIR … ──▶ the tables that one machine makes
//! ```
//!
//! The engine that starts the shards (Slurm, Kubernetes, Swarm) may kill one at any moment and start it again: a run that is
//! there is not repeated, and what a killed shard left under its hidden name is removed when it comes back.

use launch::{COMMIT, LaunchError};
use results::run_directory::result::RunResult;
use results::run_directory::sha256;
use scenario::Scenario;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::fmt::{self, Display, Formatter};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// The file that states to which plan a run directory belongs.
const SEAL: &str = "shard.json";
/// The largest number of shards.
const SHARDS_MAX: u64 = 1 << 20;

/// Every `of`-th run of a plan, from that with the index `part` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    part: u64,
    of: u64,
}

impl Display for Shard {
    /// As a part of a file name.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}-of-{}", self.part + 1, self.of)
    }
}

impl FromStr for Shard {
    type Err = String;

    /// Reads `K/N`. K counts from 1 to N, or from 0 to N-1, as the engine does: 0 and N name the same share.
    fn from_str(text: &str) -> Result<Shard, String> {
        let numbers = text.split_once('/').and_then(|(part, of)| {
            let (part, of): (u64, u64) = (part.parse().ok()?, of.parse().ok()?);
            (part <= of && (1..=SHARDS_MAX).contains(&of)).then_some((part, of))
        });
        let (part, of) = numbers.ok_or("write it as 3/8, at most 8/8")?;
        Ok(Shard { part: (part + of - 1) % of, of })
    }
}

impl Shard {
    /// Whether the run with this index is of this share.
    pub fn has(self, index: usize) -> bool {
        index as u64 % self.of == self.part
    }
}

/// One run of a plan.
#[derive(Clone, Debug)]
pub struct Planned {
    /// Its run directory, relative to the folder of the plan.
    pub folder: String,
    /// What is run.
    pub scenario: Scenario,
}

/// What a run directory states about the run in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Seal {
    /// SHA-256 of the plan.
    plan: String,
    /// SHA-256 of the scenario with its overrides and seed.
    scenario: String,
    /// Version and commit of the program.
    program: String,
}

/// The runs of one command, in its order.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The runs.
    pub runs: Vec<Planned>,
    /// SHA-256 of each run's scenario.
    scenarios: Vec<String>,
    /// SHA-256 of all of them with the names of their folders.
    hash: String,
}

/// What a shard did with a run.
#[derive(Debug)]
pub enum Made {
    /// It was there, whole.
    Before,
    /// It was made.
    Now,
    /// It failed.
    Failed(LaunchError),
}

/// Why run directories cannot be merged.
#[derive(Debug, thiserror::Error)]
pub enum ShardError {
    /// A run of something else.
    #[error("{} is a run of another {what}: {other}, here {own}", at.display())]
    Foreign {
        /// Where.
        at: PathBuf,
        /// Plan, scenario or program.
        what: &'static str,
        /// What its seal has.
        other: String,
        /// What it should have.
        own: String,
    },
    /// A run directory without a part of its files.
    #[error("{} is torn: {file} is not the file that the run wrote", folder.display())]
    Torn {
        /// Where.
        folder: PathBuf,
        /// The file.
        file: String,
    },
    /// The same run twice, with two results.
    #[error("{} and {} are the same run with different results", one.display(), other.display())]
    Differ {
        /// One of them.
        one: PathBuf,
        /// The other.
        other: PathBuf,
    },
    /// Runs that no folder has.
    #[error("{} of {of} runs are missing: {}", missing.len(), missing.join(", "))]
    Missing {
        /// The names of their folders.
        missing: Vec<String>,
        /// All runs.
        of: usize,
    },
    /// A file cannot be read or written.
    #[error("{}: {source}", file.display())]
    File {
        /// Which.
        file: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// The version of this program, as seals have it.
pub(crate) fn program() -> String {
    format!("{} {COMMIT}", env!("CARGO_PKG_VERSION"))
}

/// SHA-256 of what a scenario was read from: its text, overrides, seed, and files of traces.
pub(crate) fn identity(scenario: &Scenario) -> String {
    let is_file = |name: &str| name.starts_with("trace.") && name.ends_with(".file");
    let files = scenario.settings.iter().filter(|setting| is_file(&setting.name));
    let traces = files.map(|setting| fs::read(setting.value.trim_matches('"')).unwrap_or_default());
    let traces: Vec<String> = traces.map(|octets| sha256(&octets)).collect();
    let read = json!([scenario.text, scenario.sets, scenario.run.seed, traces]);
    sha256(read.to_string().as_bytes())
}

impl Plan {
    /// The plan of `runs`.
    pub fn new(runs: Vec<Planned>) -> Plan {
        let scenarios: Vec<String> = runs.iter().map(|run| identity(&run.scenario)).collect();
        let names: Vec<&str> = runs.iter().map(|run| run.folder.as_str()).collect();
        let hash = sha256(json!([names, scenarios]).to_string().as_bytes());
        Plan { runs, scenarios, hash }
    }

    /// The runs as lines of JSON.
    pub fn lines(&self) -> impl Iterator<Item = String> {
        self.runs.iter().zip(&self.scenarios).enumerate().map(|(index, (run, sha256))| {
            let Planned { folder, scenario } = run;
            json!({
                "run": index + 1, "folder": folder, "scenario": scenario.name, "set": scenario.sets,
                "seed": scenario.run.seed, "sha256": sha256, "plan": self.hash,
            })
            .to_string()
        })
    }

    /// The indexes of the runs of a share.
    pub fn share(&self, shard: Shard) -> Vec<usize> {
        (0..self.runs.len()).filter(|index| shard.has(*index)).collect()
    }

    /// Makes run `index` in `folder` unless it is there: `run` writes its files into the folder that it is given.
    ///
    /// # Errors
    /// If a run of another plan is there, or its folder cannot be written.
    pub fn make(
        &self,
        index: usize,
        shard: Shard,
        folder: &Path,
        run: impl FnOnce(&Planned, &Path) -> Result<(), LaunchError>,
    ) -> Result<Made, ShardError> {
        let planned = &self.runs[index];
        let target = folder.join(&planned.folder);
        match self.read(index, &target) {
            Ok(Some(_)) => return Ok(Made::Before),
            Ok(None) => {}
            // What is torn was copied in part, and is made again.
            Err(ShardError::Torn { .. }) => on(&target, fs::remove_dir_all(&target))?,
            Err(error) => return Err(error),
        }
        let parent = target.parent().unwrap_or(folder);
        let name = target.file_name().unwrap_or_default().to_string_lossy();
        let hidden = parent.join(format!(".{name}.{shard}"));
        if hidden.exists() {
            on(&hidden, fs::remove_dir_all(&hidden))?;
        }
        on(&hidden, fs::create_dir_all(&hidden))?;
        if let Err(error) = run(planned, &hidden) {
            on(&hidden, fs::remove_dir_all(&hidden))?;
            return Ok(Made::Failed(error));
        }
        let seal = serde_json::to_string_pretty(&self.seal(index)).map_err(io::Error::from);
        on(&hidden, seal.and_then(|seal| fs::write(hidden.join(SEAL), seal + "\n")))?;
        if let Err(error) = fs::rename(&hidden, &target) {
            on(&hidden, fs::remove_dir_all(&hidden))?;
            // Another process was faster with the same run.
            return match self.read(index, &target)? {
                Some(_) => Ok(Made::Before),
                None => Err(ShardError::File { file: target, source: error }),
            };
        }
        Ok(Made::Now)
    }

    /// The results of all runs, from the folders that shards wrote, with the folder of each.
    ///
    /// # Errors
    /// If a run is missing, torn, of another plan, or there twice with different results.
    pub fn merge(&self, folders: &[PathBuf]) -> Result<Vec<(PathBuf, RunResult)>, ShardError> {
        let (mut merged, mut missing) = (Vec::new(), Vec::new());
        for (index, planned) in self.runs.iter().enumerate() {
            let mut found: Option<(PathBuf, RunResult)> = None;
            for folder in folders {
                let folder = folder.join(&planned.folder);
                let Some(result) = self.read(index, &folder)? else { continue };
                match &found {
                    Some((one, first)) if !is_same(first, &result) => {
                        return Err(ShardError::Differ { one: one.clone(), other: folder });
                    }
                    Some(_) => {}
                    None => found = Some((folder, result)),
                }
            }
            match found {
                Some(found) => merged.push(found),
                None => missing.push(planned.folder.clone()),
            }
        }
        if missing.is_empty() {
            Ok(merged)
        } else {
            Err(ShardError::Missing { missing, of: self.runs.len() })
        }
    }

    /// Whether each run has a folder in one of `folders`.
    pub fn is_complete(&self, folders: &[PathBuf]) -> bool {
        let is_there = |run: &Planned| folders.iter().any(|of| of.join(&run.folder).exists());
        self.runs.iter().all(is_there)
    }

    fn seal(&self, index: usize) -> Seal {
        let (plan, scenario) = (self.hash.clone(), self.scenarios[index].clone());
        Seal { plan, scenario, program: program() }
    }

    /// The result of run `index` in `folder`, if there is such a folder.
    fn read(&self, index: usize, folder: &Path) -> Result<Option<RunResult>, ShardError> {
        if !folder.exists() {
            return Ok(None);
        }
        let torn =
            |file: &str| ShardError::Torn { folder: folder.to_owned(), file: file.to_owned() };
        let text = fs::read_to_string(folder.join(SEAL)).map_err(|_| torn(SEAL))?;
        let seal: Seal = serde_json::from_str(&text).map_err(|_| torn(SEAL))?;
        let own = self.seal(index);
        compare(folder, "program", &seal.program, &own.program)?;
        compare(folder, "scenario", &seal.scenario, &own.scenario)?;
        compare(folder, "plan", &seal.plan, &own.plan)?;
        let text = fs::read_to_string(folder.join("run.json")).map_err(|_| torn("run.json"))?;
        let result: RunResult = serde_json::from_str(&text).map_err(|_| torn("run.json"))?;
        let changed =
            result.files.iter().find(|(name, summary)| !summary.is_of(&folder.join(name)));
        match changed {
            Some((name, _)) => Err(torn(name)),
            None => Ok(Some(result)),
        }
    }
}

/// Whether two results of one run are the same, but for the host and its wall time.
fn is_same(one: &RunResult, other: &RunResult) -> bool {
    let mut other = other.clone();
    other.host = one.host.clone();
    *one == other
}

/// Refuses what is of another program, scenario or plan.
pub(crate) fn compare(
    at: &Path,
    what: &'static str,
    other: &str,
    own: &str,
) -> Result<(), ShardError> {
    if other == own {
        return Ok(());
    }
    let (other, own) = (other.to_owned(), own.to_owned());
    Err(ShardError::Foreign { at: at.to_owned(), what, other, own })
}

pub(crate) fn on<T>(file: &Path, done: io::Result<T>) -> Result<T, ShardError> {
    done.map_err(|source| ShardError::File { file: file.to_owned(), source })
}

#[cfg(test)]
mod tests;
