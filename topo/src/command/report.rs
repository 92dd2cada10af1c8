//! `pausebed report DIR [BASELINE]`: makes the page of a finished run again, or its figures as files.

use super::Exit;
use report::reference::Calibration;
use report::{self, Report};
use std::path::PathBuf;

/// Options of `report`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// A run directory, as `pausebed run --out DIR` leaves it.
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// Another one to lay beside it: the same experiment without the scheme.
    #[arg(value_name = "BASELINE")]
    baseline: Option<PathBuf>,
    /// Write to this file instead of DIR/report.html.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Write each figure into this folder, as SVG for one column of print and for two and as CSV; the page
    /// only with --output.
    #[arg(long, value_name = "FOLDER")]
    figures: Option<PathBuf>,
    /// Lay a figure of others beside ours: points (CSV: panel,run,series,t_tau,value), or a picture (PNG, JPEG).
    #[arg(long, value_name = "FILE")]
    reference: Vec<PathBuf>,
    /// Over which panel the picture lies.
    #[arg(long, value_name = "PANEL[,RUN]", requires = "calibrate")]
    over: Option<String>,
    /// Two points of an axis of the picture: pixels from its upper left corner, and what is there: τ for x, the
    /// unit of the panel's axis for y. Once for x and once for y.
    #[arg(long, value_name = "x|y:PIXEL=VALUE,PIXEL=VALUE", requires = "over")]
    calibrate: Vec<String>,
    /// Print what was written as JSON.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(options: &Options) -> Exit {
    let mut report = match Report::load(&options.folder, options.baseline.as_deref()) {
        Ok(report) => report,
        Err(error) => {
            eprintln!("{error}\n  hint: pausebed run FILE --out DIR makes a run directory");
            return Exit::Usage;
        }
    };
    if let Err(reason) = refer(options, &mut report) {
        eprintln!("{reason}");
        return Exit::Usage;
    }
    let written = match write(options, &report) {
        Ok(written) => written,
        Err((file, error)) => {
            eprintln!("cannot write {}: {error}", file.display());
            return Exit::Host;
        }
    };
    if options.json {
        let files: Vec<String> = written.iter().map(|file| file.display().to_string()).collect();
        println!("{:#}", serde_json::json!({ "files": files }));
    } else {
        written.iter().for_each(|file| println!("{}", file.display()));
    }
    Exit::Good
}

/// What others found, checked against what is there.
fn refer(options: &Options, report: &mut Report) -> Result<(), String> {
    let over = options.over.as_ref().map(|over| Calibration::of(over, &options.calibrate));
    let calibration = over.transpose()?;
    report.refer(&options.reference, calibration.as_ref()).map_err(|error| error.to_string())
}

/// The page, the figures or both; answers which files there are now.
fn write(options: &Options, report: &Report) -> Result<Vec<PathBuf>, (PathBuf, std::io::Error)> {
    let Options { folder, output, figures, .. } = options;
    let mut written = Vec::new();
    let mut put = |file: PathBuf, text: &str| {
        std::fs::write(&file, text).map_err(|error| (file.clone(), error))?;
        written.push(file);
        Ok(())
    };
    let page = match (output, figures) {
        (None, Some(_)) => None,
        (Some(file), _) => Some(file.clone()),
        (None, None) => Some(folder.join(report::FILE)),
    };
    if let Some(file) = page {
        put(file, &report.page())?;
    }
    if let Some(folder) = figures {
        std::fs::create_dir_all(folder).map_err(|error| (folder.clone(), error))?;
        for file in report.figures() {
            put(folder.join(&file.name), &file.text)?;
        }
    }
    Ok(written)
}
