//! The scores of a search that several machines make: a file for each run below the folders of the search, which appears by
//! rename. Every machine repeats the search from the scores, and so arrives at the same round of runs.

use crate::shard::{self, Shard, ShardError, on};
use crate::tune::objective::Score;
use crate::tune::search::{Job, Length};
use results::run_directory::sha256;
use scenario::Scenario;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::fs;
use std::io;
use std::path::PathBuf;

/// The folder of the scores.
const FOLDER: &str = "scores";

/// Several machines.
pub struct Shared<'a> {
    /// Where scores are.
    pub folders: &'a [PathBuf],
    /// The share of each round that this machine makes; none where it only reads.
    pub share: Option<Shard>,
    /// Looks for the scores of other machines again and again until `found` is true; false if the time is up before.
    pub wait: &'a (dyn Fn(&dyn Fn() -> bool) -> bool + Sync),
}

/// The scores of one search.
pub struct Store<'a> {
    /// The machines.
    pub shared: &'a Shared<'a>,
    /// SHA-256 of the scenario.
    scenario: String,
}

/// A file of the store.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Entry {
    scenario: String,
    program: String,
    job: Value,
    score: Score,
}

impl<'a> Store<'a> {
    /// The store of a search in `scenario`.
    pub fn new(shared: &'a Shared<'a>, scenario: &Scenario) -> Store<'a> {
        Store { shared, scenario: shard::identity(scenario) }
    }

    /// The score of a run, if a machine has made it.
    ///
    /// # Errors
    /// If a file is of another scenario or program, torn, or differs from that of another folder.
    pub fn score(&self, job: &Job) -> Result<Option<Score>, ShardError> {
        let mut found: Option<(PathBuf, Entry)> = None;
        for folder in self.shared.folders {
            let file = folder.join(FOLDER).join(name(job));
            let text = match fs::read_to_string(&file) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                other => on(&file, other)?,
            };
            let torn = |_| ShardError::Torn { folder: folder.join(FOLDER), file: name(job) };
            let entry: Entry = serde_json::from_str(&text).map_err(torn)?;
            let (scenario, program) = (&self.scenario, shard::program());
            shard::compare(&file, "program", &entry.program, &program)?;
            shard::compare(&file, "scenario", &entry.scenario, scenario)?;
            match &found {
                Some((one, first)) if *first != entry => {
                    return Err(ShardError::Differ { one: one.clone(), other: file });
                }
                _ => found = Some((file, entry)),
            }
        }
        Ok(found.map(|(_, entry)| entry.score))
    }

    /// Adds the score of a run that this machine has made.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn add(&self, job: &Job, score: Score, share: Shard) -> Result<(), ShardError> {
        let Some(folder) = self.shared.folders.first().map(|folder| folder.join(FOLDER)) else {
            return Ok(());
        };
        let entry = Entry {
            scenario: self.scenario.clone(),
            program: shard::program(),
            job: written(job),
            score,
        };
        on(&folder, fs::create_dir_all(&folder))?;
        let hidden = folder.join(format!(".{}.{share}", name(job)));
        let text = serde_json::to_string_pretty(&entry).map_err(io::Error::from);
        on(&hidden, text.and_then(|text| fs::write(&hidden, text + "\n")))?;
        let target = folder.join(name(job));
        on(&target, fs::rename(&hidden, &target))
    }
}

/// A run as JSON.
pub fn written(job: &Job) -> Value {
    let length = match job.length {
        Length::Short => "short",
        Length::Full => "full",
    };
    json!({ "point": job.point.0, "case": job.case, "seed": job.seed, "length": length })
}

fn name(job: &Job) -> String {
    sha256(written(job).to_string().as_bytes())[..24].to_owned() + ".json"
}
