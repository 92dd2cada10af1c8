//! Commands that a run started on hosts: a row each in `run.json`, a file with the output, and the exit code judged.

use crate::run_directory::WriteError;
use crate::run_directory::sealed::{FileSummary, Sealed};
use crate::verdict::{Judgement, Verdict};
use scenario::host::{ExpectedExit, Host};
use scenario::measure::value::Value;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

/// The folder of outputs in a run directory.
const FOLDER: &str = "hosts";

/// What became of the command of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostRun {
    /// The place of the host among those of the fabric.
    pub host: usize,
    /// The exit code, or why there is none.
    pub exit: Result<i32, String>,
    /// What it printed to both streams, with escaped control characters.
    pub output: String,
    /// Octets that it printed.
    pub octets: u64,
    /// Octets that `output` leaves out.
    pub left_out: u64,
}

/// A command of a host, as `run.json` has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostLine {
    /// The host.
    pub host: String,
    /// Its kind.
    pub kind: String,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// When it was started, fabric picoseconds.
    pub start_ps: u64,
    /// Its exit code; null if there is none.
    pub exit: Option<i32>,
    /// Why there is no exit code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The file with its output in the run directory.
    pub output: String,
    /// Octets that it printed.
    pub octets: u64,
    /// Octets that the file leaves out between begin and end.
    pub left_out: u64,
}

/// The rows of `run.json`.
pub fn lines(hosts: &[Host], runs: &[HostRun]) -> Vec<HostLine> {
    let line = |run: &HostRun| {
        let host = &hosts[run.host];
        let command = host.command.as_ref()?;
        Some(HostLine {
            host: host.name.clone(),
            kind: host.kind.word().to_owned(),
            command: command.words.clone(),
            start_ps: command.start.as_ps(),
            exit: run.exit.as_ref().ok().copied(),
            why: run.exit.as_ref().err().cloned(),
            output: file_of(host),
            octets: run.octets,
            left_out: run.left_out,
        })
    };
    runs.iter().filter_map(line).collect()
}

/// The outputs by host, for measures.
pub fn outputs(hosts: &[Host], runs: &[HostRun]) -> Vec<Option<String>> {
    let output = |index| runs.iter().find(|run| run.host == index).map(|run| run.output.clone());
    (0..hosts.len()).map(output).collect()
}

/// The name by which the exit code of a host is judged.
fn judged_as(host: &Host) -> String {
    format!("exit code of {}", host.name)
}

/// Judges the exit codes of hosts from which one is expected.
pub fn judge(hosts: &[Host], runs: &[HostRun]) -> Vec<Judgement> {
    let judged = |run: &HostRun| {
        let host = &hosts[run.host];
        let command = host.command.as_ref()?;
        let ExpectedExit::Code(code) = command.exit else { return None };
        let exit = run.exit.as_ref().ok().copied();
        let is_met = exit == Some(i32::from(code));
        Some(Judgement {
            measure: judged_as(host),
            min: Some(f64::from(code)),
            max: Some(f64::from(code)),
            theory: None,
            order: None,
            value: exit.map(|exit| Value::Number(f64::from(exit))),
            verdict: if is_met { Verdict::Pass } else { Verdict::Fail },
            why: format!("run = {:?}", command.words.join(" ")),
            line: command.line,
        })
    };
    runs.iter().filter_map(judged).collect()
}

/// The exit codes that are missing, with the reason.
pub fn missing<'a>(
    hosts: &'a [Host],
    runs: &'a [HostRun],
) -> impl Iterator<Item = (String, String)> + 'a {
    runs.iter().filter_map(|run| {
        let why = run.exit.as_ref().err()?.clone();
        Some((judged_as(&hosts[run.host]), why))
    })
}

fn file_of(host: &Host) -> String {
    format!("{FOLDER}/{}.out", host.name)
}

/// Writes the outputs into the run directory `folder`. Returns a summary of each file.
///
/// # Errors
/// If a file cannot be written.
pub fn write(
    folder: &Path,
    hosts: &[Host],
    runs: &[HostRun],
) -> Result<BTreeMap<String, FileSummary>, WriteError> {
    let mut written = BTreeMap::new();
    if !runs.is_empty() {
        let file = folder.join(FOLDER);
        std::fs::create_dir_all(&file).map_err(|source| WriteError { file, source })?;
    }
    for run in runs {
        let name = file_of(&hosts[run.host]);
        let file = folder.join(&name);
        let summary = Sealed::create(&file).and_then(|mut sealed| {
            sealed.write_all(run.output.as_bytes())?;
            sealed.finish(run.output.lines().count() as u64)
        });
        written.insert(name, summary.map_err(|source| WriteError { file, source })?);
    }
    Ok(written)
}

#[cfg(test)]
mod tests {
    use super::*;
    use scenario::Scenario;

    fn hosts(exit: &str) -> Vec<Host> {
        let text = format!(
            r#"
            schema = 1
            name = "x"
            [run]
            duration = "1 s"
            backend = "udp"
            [fabric]
            technology = "ethernet"
            nodes = [{{ name = "s1", kind = "switch" }}]
            links = []
            link = {{ pause = "none" }}
            switch = {{ buffer = "64 MB" }}
            [[host]]
            name = "v1"
            port = "s1:1"
            address = "198.18.0.1/16"
            run = "ping -c 3 198.18.0.2"
            exit = {exit}
            "#
        );
        Scenario::parse(&text, &[]).expect("it is valid").fabric.hosts
    }

    fn run(exit: Result<i32, &str>) -> [HostRun; 1] {
        let (exit, output) = (exit.map_err(str::to_owned), "3 received\n".to_owned());
        [HostRun { host: 0, exit, output, octets: 11, left_out: 0 }]
    }

    #[test]
    fn the_exit_code_is_judged_unless_any_is_right() {
        let verdict = |exit: &str, found| judge(&hosts(exit), &run(found)).pop();
        let passed = verdict("2", Ok(2)).expect("it is judged");
        assert_eq!((passed.verdict, passed.line), (Verdict::Pass, 13));
        for found in [Ok(0), Ok(-1), Err("it had not ended")] {
            assert_eq!(verdict("2", found).map(|judged| judged.verdict), Some(Verdict::Fail));
        }
        assert_eq!(verdict("\"any\"", Ok(1)), None);
        let hosts = hosts("0");
        let missing: Vec<_> = missing(&hosts, &run(Err("no"))).collect();
        assert_eq!(missing, [("exit code of v1".to_owned(), "no".to_owned())]);
    }

    #[test]
    fn the_output_is_a_file_and_a_row() {
        let (folder, hosts) = (tempfile::tempdir().expect("a folder"), hosts("0"));
        let written = write(folder.path(), &hosts, &run(Ok(0))).expect("it is writable");
        assert_eq!((written["hosts/v1.out"].rows, written["hosts/v1.out"].bytes), (1, 11));
        let [line] = &lines(&hosts, &run(Ok(0)))[..] else { panic!("one row") };
        let text = std::fs::read_to_string(folder.path().join(&line.output));
        assert_eq!(text.expect("it is there"), "3 received\n");
        assert_eq!((line.exit, line.command.len()), (Some(0), 4));
        assert_eq!(outputs(&hosts, &[]), [None]);
    }
}
