//! `pausebed report DIR [BASELINE]`: makes the report of a finished run, or its figures as files.

use super::compare::no_run_directory;
use crate::exit::{Exit, Failure, Outcome};
use report::Report;
use report::reference::Calibration;
use std::path::PathBuf;

/// Options of `report`.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct Options {
    /// A run directory, as `pausebed run --out DIR` leaves it.
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// The run directory of the baseline: the same experiment without the scheme.
    #[arg(value_name = "BASELINE")]
    baseline: Option<PathBuf>,
    /// Write to this file instead of DIR/report.html.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Write each figure into this folder, as SVG for one and for two columns of print and as CSV; the page only
    /// with --output.
    #[arg(long, value_name = "FOLDER")]
    figures: Option<PathBuf>,
    /// Compare with a published figure: points (CSV: panel,run,series,t_tau,value), or a picture (PNG, JPEG).
    #[arg(long, value_name = "FILE")]
    reference: Vec<PathBuf>,
    /// The panel of the picture.
    #[arg(long, value_name = "PANEL[,RUN]", requires = "calibrate")]
    over: Option<String>,
    /// Two points of an axis of the picture: pixels from its upper left corner, and the values there, in τ for x
    /// and in the unit of the panel for y. Once for x and once for y.
    #[arg(long, value_name = "x|y:PIXEL=VALUE,PIXEL=VALUE", requires = "over")]
    calibrate: Vec<String>,
    /// Print the paths of the written files as JSON.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(super) fn run(options: &Options) -> Outcome {
    let loaded = Report::load(&options.folder, options.baseline.as_deref());
    let mut report = loaded.map_err(no_run_directory)?;
    let over = options.over.as_ref().map(|over| Calibration::of(over, &options.calibrate));
    let calibration = over.transpose().map_err(Failure::usage)?;
    report.refer(&options.reference, calibration.as_ref()).map_err(Failure::usage)?;
    let written = write(options, &report)?;
    if options.json {
        let files: Vec<String> = written.iter().map(|file| file.display().to_string()).collect();
        println!("{:#}", serde_json::json!({ "files": files }));
    } else {
        written.iter().for_each(|file| println!("{}", file.display()));
    }
    Ok(Exit::Good)
}

/// Writes the page, the figures or both, and returns the paths of the files.
fn write(options: &Options, report: &Report) -> Result<Vec<PathBuf>, Failure> {
    let Options { folder, output, figures, .. } = options;
    let mut files = Vec::new();
    if output.is_some() || figures.is_none() {
        let file = output.clone().unwrap_or_else(|| folder.join(report::FILE));
        files.push((file, report.page()));
    }
    if let Some(folder) = figures {
        std::fs::create_dir_all(folder).map_err(Failure::cannot_write(folder))?;
        files.extend(report.figures().into_iter().map(|file| (folder.join(file.name), file.text)));
    }
    for (file, text) in &files {
        std::fs::write(file, text).map_err(Failure::cannot_write(file))?;
    }
    Ok(files.into_iter().map(|(file, _)| file).collect())
}
