//! FID-13 live: a capture holds every frame, and what is there of it when its daemon is killed.

use super::incast;
use crate::ethernet::RATE;
use crate::prelude::*;
use crate::star::star;
use capture::reader::CaptureReader;
use capture::{CapturePlan, CapturedPort, WhenFull};
use emulation::wiring::End;
use launch::programs;
use proto::technology::Technology;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

/// FID-13.
pub fn capture(on: Level) -> Finding {
    let seen = incast::capture_of_everything(on)?;
    let killed = killed_while_capturing(on)?;
    Ok(format!("{seen}; {killed}"))
}

/// A daemon is killed while it captures a busy port; what is left of the file can be read.
fn killed_while_capturing(on: Level) -> Finding {
    let rest = backlog("busy", "h1", "h2", "");
    let mut stage = Stage::new(on, &star(2, "3 s", "", &rest), "h1")?;
    let folder = tempfile::tempdir().map_err(Failure::of_host)?;
    let file = folder.path().join("capture.pcapng");
    let at = End { node: 0, port: PortNumber::from_index(0) };
    stage.capture = Some(CapturePlan {
        file: file.clone(),
        scenario: "killed".to_owned(),
        seed: 0,
        dilation: Some(stage.dilation),
        snaplen: None,
        when_full: WhenFull::Drop,
        ports: vec![CapturedPort {
            at,
            technology: Technology::Infiniband,
            rate: RATE,
            fed: false,
        }],
    });
    let run = stage.run_with(Script::default(), |opening| {
        let opening = opening.clone();
        std::thread::spawn(move || {
            opening.wait_until(ms(1_200));
            opening.kill(0);
        });
    });
    let Err(Failure::Failed(died)) = run else { bail!("a run with a killed daemon came back") };
    ensure!(died.contains("SIGKILL"), "{died}");
    let whole = readable(&file)?;
    ensure!(whole > 300, "only {whole} frames can be read after the kill");
    let arguments = ["-n".as_ref(), "-r".as_ref(), file.as_os_str()];
    let opened = match programs::run("tshark", &arguments) {
        Err(_) => "tshark is not here".to_owned(),
        Ok((_, text)) => {
            let is_frame =
                |line: &&str| line.trim_start().starts_with(|c: char| c.is_ascii_digit());
            let lines = text.lines().filter(is_frame).count();
            ensure!(lines >= whole, "tshark shows {lines} of {whole} frames");
            "tshark opens it".to_owned()
        }
    };
    Ok(format!("killed after 1.2 s: {whole} frames whole, {opened}"))
}

/// How many frames of a capture can be read before it ends, wherever that is.
fn readable(file: &Path) -> Result<usize> {
    let say = |error: &dyn std::fmt::Display| Failure::Failed(format!("the capture: {error}"));
    let input = File::open(file).map_err(|error| say(&error))?;
    let reader = CaptureReader::new(BufReader::new(input)).map_err(|error| say(&error))?;
    Ok(reader.map_while(Result::ok).count())
}
