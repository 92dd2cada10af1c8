//! One sweep, suite or search on several machines: shards that are killed and started again, and what they merge into.

#![expect(clippy::disallowed_methods, reason = "these tests start the program")]

#[path = "shards/engines.rs"]
mod engines;
#[path = "live/hostile.rs"]
#[allow(dead_code, reason = "laboratory.rs asks it for the ports of daemons")]
mod hostile;
#[path = "live/laboratory.rs"]
#[allow(dead_code, reason = "the tests of live.rs use more of it")]
mod laboratory;

use laboratory::{eventually, pausebed};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use tempfile::TempDir;

/// A star whose runs take some milliseconds each.
const STAR: &str = r#"
schema = 1
name = "a star of three"

[run]
seed = 1
duration = "2000 mtu"

[fabric]
shape = "star"
hosts = 3
technology = "infiniband"
link = { rate = "8 Gbps", delay = "0.125 mtu", lanes = 4 }
switch = { memory = "per-input", buffer = "36 mtu" }

[[traffic]]
name = "all"
from = "h0"
to = "h1"
load = 0.5
arrivals = "poisson"

[[measure]]
name = "received"
of = "throughput"
per = "line"
at = "h1:rx"
from = "100 mtu"
to = "2000 mtu"

[[expect]]
measure = "received"
min = 0.3
"#;

/// A folder with two scenario files, in which the program runs.
struct Place {
    folder: TempDir,
}

impl Place {
    fn new() -> Place {
        let folder = tempfile::tempdir().expect("a folder");
        fs::create_dir(folder.path().join("suite")).expect("a folder");
        for (file, seed) in [("star's.toml", 1), ("suite/one.toml", 2), ("suite/two.toml", 3)] {
            let text = STAR.replace("seed = 1", &format!("seed = {seed}"));
            fs::write(folder.path().join(file), text).expect("a file");
        }
        Place { folder }
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(pausebed());
        command.args(words).current_dir(self.folder.path()).stdin(Stdio::null());
        command
    }

    fn run(&self, words: &[&str]) -> Output {
        self.command(words).output().expect("the program is built")
    }

    fn start(&self, words: &[&str]) -> Child {
        let mut command = self.command(words);
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the program is built")
    }
}

/// Exit code and standard output.
fn told(output: &Output) -> (Option<i32>, String) {
    (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The files of a folder itself, without those of its subfolders.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(folder).expect("a folder").flatten();
    let files = entries.filter(|entry| entry.path().is_file());
    files
        .map(|file| {
            let octets = fs::read(file.path()).expect("it is there");
            (file.file_name().to_string_lossy().into_owned(), octets)
        })
        .collect()
}

/// Kills shards of `words` while they make their runs, starts them again until all runs are there, and merges.
fn killed_and_merged(place: &Place, words: &[&str], out: &str) -> Output {
    for (kill, share) in ["1/2", "2/2", "1/2"].into_iter().enumerate() {
        let before = runs(&place.path(out));
        let mut shard = place.start(&[words, &["--out", out, "--shard", share]].concat());
        eventually(10.0, || runs(&place.path(out)) > before + kill);
        shard.kill().expect("a child of the test");
        shard.wait().expect("a child of the test");
    }
    for share in ["0/2", "1/2"] {
        let shard = told(&place.run(&[words, &["--out", out, "--shard", share]].concat()));
        assert_eq!(shard.0, Some(0), "{}", shard.1);
        assert!(shard.1.contains("there before, 0 failed"), "{}", shard.1);
    }
    place.run(&[words, &["--out", out, "--merge", out]].concat())
}

/// The runs that are there, whole.
fn runs(out: &Path) -> usize {
    let seals = |folder: &Path| {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let shown = entries.filter(|entry| !entry.file_name().to_string_lossy().starts_with('.'));
        shown.map(|entry| entry.path()).collect::<Vec<_>>()
    };
    let all = seals(out).into_iter().flat_map(|folder| [seals(&folder), vec![folder]].concat());
    all.filter(|folder| folder.join("shard.json").is_file()).count()
}

#[test]
fn a_sweep_by_shards_that_are_killed_is_that_of_one_machine() {
    let place = Place::new();
    let words =
        ["sweep", "star's.toml", "--set", "traffic.all.load=0.2,0.4,0.6", "--seeds", "1..8"];
    let one = told(&place.run(&[&words[..], &["--out", "one"]].concat()));
    assert_eq!(one.0, Some(0), "{}", one.1);
    let merged = killed_and_merged(&place, &words, "all");
    assert_eq!(told(&merged), one);
    assert_eq!(files(&place.path("all")), files(&place.path("one")));
    let left = fs::read_dir(place.path("all")).expect("a folder").flatten();
    let hidden = left.filter(|entry| entry.file_name().to_string_lossy().starts_with('.'));
    assert_eq!(hidden.count(), 0, "what killed shards left is gone");

    let plan = told(&place.run(&[&words[..], &["--plan"]].concat()));
    assert_eq!((plan.0, plan.1.lines().count()), (Some(0), 24), "{}", plan.1);
    fs::remove_dir_all(place.path("all/point-00002-seed-5")).expect("it is there");
    let lacking = place.run(&[&words[..], &["--merge", "all"]].concat());
    let message = String::from_utf8_lossy(&lacking.stderr);
    assert_eq!(lacking.status.code(), Some(6), "{message}");
    assert!(message.contains("1 of 24 runs are missing: point-00002-seed-5"), "{message}");
}

#[test]
fn a_suite_by_shards_that_are_killed_is_that_of_one_machine() {
    let place = Place::new();
    let words = ["suite", "suite", "--seeds", "1..6", "--no-report"];
    let one = told(&place.run(&[&words[..], &["--out", "one"]].concat()));
    assert_eq!(one.0, Some(0), "{}", one.1);
    let merged = told(&killed_and_merged(&place, &words, "all"));
    assert!(one.1.ends_with(&merged.1), "its runs are not printed again: {}", merged.1);
    assert_eq!(merged.0, Some(0));
    assert_eq!(files(&place.path("all")), files(&place.path("one")));
    assert!(files(&place.path("all")).contains_key("suite.json"));
}

#[test]
fn a_job_for_slurm_is_a_script_that_a_shell_takes() {
    let place = Place::new();
    let words =
        ["sweep", "star's.toml", "--set", "run.seed=1,2", "--out", "o u t", "--to", "slurm"];
    let script = told(&place.run(&words));
    assert_eq!(script.0, Some(0));
    // A stand-in for sbatch that keeps the job it is given.
    let stand_in = "#!/bin/sh\ncat >job.$#\necho 17\n";
    fs::write(place.path("sbatch"), stand_in).expect("a file");
    let mut shell = Command::new("sh");
    let script = format!("chmod +x sbatch; PATH=\"$PWD:$PATH\"\n{}", script.1);
    let ended = shell.args(["-c", &script]).current_dir(place.folder.path()).output();
    assert!(ended.expect("a shell").status.success());
    let (array, merge) = (place.path("job.4"), place.path("job.2"));
    let jobs = [array, merge].map(|job| fs::read_to_string(job).expect("both were handed in"));
    assert!(jobs[0].contains("\"$SLURM_ARRAY_TASK_ID/8\""), "{}", jobs[0]);
    let run = |job: &str, index: u32| {
        let mut shell = Command::new("sh");
        let index = index.to_string();
        shell.args(["-c", job]).current_dir(place.folder.path()).env("SLURM_ARRAY_TASK_ID", index);
        told(&shell.output().expect("a shell"))
    };
    for index in 0..8 {
        let shard = run(&jobs[0], index);
        assert_eq!(shard.0, Some(0), "{}", shard.1);
    }
    let merged = run(&jobs[1], 0);
    assert_eq!(merged.0, Some(0), "{}", merged.1);
    assert!(place.path("o u t/sweep.csv").is_file());
}
