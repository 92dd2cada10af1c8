//! `pausebed vm build`: makes the image that hosts of the kind `vm` start from.

use crate::exit::{Exit, Failure, Outcome};
use emulation::clock::Stopwatch;
use host::HostError;
use host::build::{Order, build};
use serde_json::json;

/// Options of `vm`.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct Options {
    #[command(subcommand)]
    action: Action,
}

#[derive(Clone, Debug, clap::Subcommand)]
enum Action {
    /// Make an image from packages of the distribution; nothing is installed.
    Build(Build),
}

#[derive(Clone, Debug, clap::Args)]
struct Build {
    /// Another kernel: a package file, or a release such as 6.1.0-50 (default: the newest).
    #[arg(long, value_name = "FILE.deb|RELEASE")]
    kernel: Option<String>,
    /// Another package for the image, with what it depends on; may be repeated.
    #[arg(long, value_name = "PACKAGE")]
    add: Vec<String>,
    /// Print one JSON document about the image.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(super) fn run(options: &Options) -> Outcome {
    let Action::Build(options) = &options.action;
    let own = std::env::current_exe()
        .map_err(|error| Failure::host(format!("this program has no path: {error}")))?;
    let guestd = own.with_file_name("guestd");
    if !guestd.exists() {
        let path = guestd.display();
        return Err(Failure::host(format!(
            "{path} is missing; build the whole workspace: cargo build --release"
        )));
    }
    let order = Order { kernel: options.kernel.clone(), additions: options.add.clone(), guestd };
    let watch = Stopwatch::start();
    let mut progress = |line: &str| eprintln!("{:6.1} s  {line}", watch.seconds());
    let built = build(&order, &mut progress).map_err(failure)?;
    let manifest = &built.image.manifest;
    let (folder, kernel) = (built.image.folder.display(), &manifest.kernel);
    if options.json {
        let about = json!({
            "folder": folder.to_string(),
            "kernel": kernel,
            "accelerator": built.accelerator,
            "cached": built.was_cached,
            "packages": manifest.packages,
            "seconds": watch.seconds(),
        });
        println!("{about:#}");
    } else {
        println!(
            "{folder}: kernel {kernel}, {} packages, {}",
            manifest.packages.len(),
            built.accelerator
        );
    }
    Ok(Exit::Good)
}

/// The exit code of an error of hosts.
pub(super) fn failure(error: HostError) -> Failure {
    let message = error.to_string();
    match error {
        HostError::Invalid(_) => Failure::usage(message),
        _ => Failure::host(message),
    }
}
