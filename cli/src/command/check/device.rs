//! `pausebed check --dut FILE`: cases for a device under test, and `--compare`: the difference of two statements.

use crate::exit::{Exit, Failure, Outcome as Ended};
use crate::terminal::progress::spinner;
use dut::file::DutFile;
use dut::register::{Case, choose};
use dut::statement::{Statement, compare, line};
use dut::suite::Suite;
use dut::verdict::Verdict;
use emulation::clock::Stopwatch;
use std::path::{Path, PathBuf};

/// Options of a check of a device.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct Options {
    /// Check the device that this file describes: a switch or a NIC of any make
    #[arg(long, value_name = "FILE", conflicts_with_all = ["level", "compare"])]
    dut: Option<PathBuf>,
    /// Let hooks of the DUT file run on this host
    #[arg(long, requires = "dut")]
    allow_hooks: bool,
    /// Another kernel for the virtual machine of the DUT file, as in 6.1.0-56
    #[arg(long, value_name = "RELEASE", requires = "dut")]
    kernel: Option<String>,
    /// Write a capture of each case into this folder
    #[arg(long, value_name = "FOLDER", requires = "dut")]
    evidence: Option<PathBuf>,
    /// Say what differs between two statements in JSON
    #[arg(long, value_names = ["BEFORE", "AFTER"], num_args = 2)]
    compare: Option<Vec<PathBuf>>,
}

/// Runs the command, if it is one about a device.
pub(super) fn run(options: &super::Options) -> Option<Ended> {
    let device = &options.device;
    if let Some([before, after]) = device.compare.as_deref() {
        return Some(run_compare(before, after));
    }
    device.dut.as_deref().map(|file| run_check(options, file))
}

fn run_compare(before: &Path, after: &Path) -> Ended {
    let read = |file: &Path| {
        let text = std::fs::read_to_string(file).map_err(Failure::bad_file(file))?;
        Statement::parse(&text).map_err(Failure::bad_file(file))
    };
    let lines = compare(&read(before)?, &read(after)?);
    lines.iter().for_each(|line| say!("{line}"));
    println!("{} differences", lines.len());
    Ok(if lines.is_empty() { Exit::Good } else { Exit::Failed })
}

fn run_check(options: &super::Options, path: &Path) -> Ended {
    let mut file = DutFile::load(path).map_err(Failure::usage)?;
    if let Some(kernel) = &options.device.kernel {
        file.device.kernel = Some(kernel.clone());
    }
    let chosen = choose(file.dut.kind, &options.names).map_err(|unknown| {
        let kind = file.dut.kind.word();
        let hint = format!("pausebed check --dut {} --list", path.display());
        Failure::usage(format!("there is no group or case {unknown} for {kind}\n  hint: {hint}"))
    })?;
    if options.list {
        for Case { id, title, clause, .. } in chosen {
            say!("{id:<8}  {title}  [{clause}]");
        }
        return Ok(Exit::Good);
    }
    let statement = perform(options, &file, &chosen)?;
    write(options, &statement)?;
    let count = |verdict| statement.count(verdict);
    Ok(match (count(Verdict::Fail), count(Verdict::Inconclusive)) {
        (0, 0) => Exit::Good,
        (0, _) => Exit::Inconclusive,
        _ => Exit::Failed,
    })
}

fn perform(
    options: &super::Options,
    file: &DutFile,
    chosen: &[&'static Case],
) -> Result<Statement, Failure> {
    let super::Options { device: Options { allow_hooks, evidence, .. }, json, .. } = options;
    let watch = Stopwatch::start();
    let report = &mut |line: &str| eprintln!("  {line}");
    let started = Suite::start(file, evidence.as_deref(), *allow_hooks, report);
    let mut suite = started.map_err(Failure::host)?;
    let build = suite.build.clone();
    eprintln!("  {}: {build}; {} cases", file.dut.name, chosen.len());
    let mut outcomes = Vec::new();
    for case in chosen {
        let spinner = spinner(&format!("{}  {}", case.id, case.title));
        let outcome = suite.perform(case);
        spinner.finish_and_clear();
        if !json {
            say!("{}", line(&outcome));
        }
        outcomes.push(outcome);
    }
    let statement = Statement {
        dut: file.dut.name.clone(),
        kind: file.dut.kind.word().to_owned(),
        about: file.dut.about.clone(),
        build,
        claims: file.dut.claims.clone(),
        outcomes,
    };
    if *json {
        print!("{}", statement.json());
    } else {
        println!("\n{} in {:.1} s", statement.totals(), watch.seconds());
    }
    Ok(statement)
}

/// Writes the files that were asked for; the ending of a statement's name chooses its form.
fn write(options: &super::Options, statement: &Statement) -> Result<(), Failure> {
    let put =
        |file: &Path, text: String| std::fs::write(file, text).map_err(Failure::cannot_write(file));
    if let Some(file) = &options.junit {
        put(file, statement.junit())?;
    }
    if let Some(file) = &options.statement {
        let text = match file.extension().and_then(|ending| ending.to_str()) {
            Some("html") => statement.html(),
            Some("json") => statement.json(),
            _ => statement.markdown(),
        };
        put(file, text)?;
    }
    Ok(())
}
