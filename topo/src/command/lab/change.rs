//! `pausebed clear`, `set link`, `fault` and `traffic`: what people do to a lab that runs.

use super::{Choice, failed};
use crate::command::Exit;
use clap::{Subcommand, ValueEnum};
use daemon::admin::{Fault, LinkChange, TrafficChange};
use emulation::wiring::{Action, FrameFilter};
use launch::lab::client::ClientError;
use launch::lab::{Record, client};
use proto::units::{BitRate, Duration};

/// Options of `clear`.
#[derive(Clone, Debug, clap::Args)]
pub struct Clear {
    #[command(flatten)]
    choice: Choice,
}

/// Options of `set`.
#[derive(Clone, Debug, clap::Args)]
pub struct Set {
    #[command(subcommand)]
    what: Settable,
}

#[derive(Clone, Debug, Subcommand)]
enum Settable {
    /// Cut a cable or mend it, both ways; let it lose frames or slow it down, one way
    Link(Link),
}

#[derive(Clone, Debug, clap::Args)]
#[group(skip)]
struct Link {
    /// A port at the cable, as in leaf1:4
    #[arg(value_name = "PORT")]
    port: String,
    /// Nothing gets through, either way
    #[arg(long, conflicts_with = "up")]
    down: bool,
    /// Everything gets through again
    #[arg(long)]
    up: bool,
    /// The share of frames lost at random that this port sends, as in 0.01
    #[arg(long, value_name = "SHARE", required_unless_present_any = ["down", "up", "rate"])]
    loss: Option<f64>,
    /// What the line gives to frames that this port sends, at most its own rate, as in "1 Gbps"
    #[arg(long, value_name = "RATE")]
    rate: Option<BitRate>,
    #[command(flatten)]
    choice: Choice,
}

/// Options of `fault`.
#[derive(Clone, Debug, clap::Args)]
pub struct FaultOptions {
    /// The port whose frames are meant, those that it sends, as in leaf1:4
    #[arg(value_name = "PORT")]
    port: String,
    /// What happens to a frame that is hit; mend ends everything that was done to the port
    #[arg(value_enum)]
    action: ActionWord,
    /// Which frames
    #[arg(value_enum, default_value = "all")]
    frames: FramesWord,
    /// The share of them that is hit
    #[arg(long = "prob", value_name = "SHARE", default_value_t = 1.0)]
    chance: f64,
    /// For how long, in fabric time, as in "5 ms"; until mended if left out
    #[arg(long = "for", value_name = "TIME", value_parser = time)]
    length: Option<Duration>,
    /// How much later, for delay, as in "1 us"
    #[arg(long, value_name = "TIME", value_parser = time, required_if_eq("action", "delay"))]
    by: Option<Duration>,
    #[command(flatten)]
    choice: Choice,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ActionWord {
    Drop,
    Corrupt,
    Duplicate,
    Delay,
    Mend,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum FramesWord {
    /// All frames
    All,
    /// Credits, PAUSE, PFC
    Link,
    /// Frames with FECN or CE
    Fecn,
    /// Frames with BECN, CNPs, CNMs
    Becn,
}

/// Options of `traffic`.
#[derive(Clone, Debug, clap::Args)]
pub struct Traffic {
    /// Start or stop
    #[arg(value_enum)]
    what: TrafficWord,
    /// The traffic item; all if left out
    #[arg(value_name = "ITEM")]
    item: Option<String>,
    #[command(flatten)]
    choice: Choice,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum TrafficWord {
    Start,
    Stop,
}

/// Reads `5 ms`, and `5ms` too.
fn time(text: &str) -> Result<Duration, String> {
    let digits = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let spaced = format!("{number} {}", unit.trim());
    spaced.parse().map_err(|_| format!("{text:?} is no length of time: 5 ms, 200 us"))
}

/// Runs `clear`.
pub fn clear(options: &Clear) -> Exit {
    with(&options.choice, |record| {
        client::clear(record)?;
        Ok(format!("counters of lab {} begin at zero", record.lab))
    })
}

/// Runs `set`.
pub fn set(options: &Set) -> Exit {
    let Settable::Link(link) = &options.what;
    with(&link.choice, |record| {
        if link.loss.is_some() || link.rate.is_some() {
            let change = LinkChange { loss: link.loss, rate: link.rate, down: None };
            client::at_port(record, "POST", "links", &link.port, Some(&change))?;
        }
        if link.down || link.up {
            client::cut(record, &link.port, link.down)?;
        }
        Ok(format!("link {} changed", link.port))
    })
}

/// Runs `fault`.
pub fn fault(options: &FaultOptions) -> Exit {
    with(&options.choice, |record| {
        let port = &options.port;
        let action = match (options.action, options.by) {
            (ActionWord::Drop, _) => Action::Lose,
            (ActionWord::Corrupt, _) => Action::Corrupt,
            (ActionWord::Duplicate, _) => Action::Duplicate,
            (ActionWord::Delay, by) => Action::Delay(by.unwrap_or(Duration::ZERO)),
            (ActionWord::Mend, _) => {
                client::at_port(record, "DELETE", "faults", port, None::<&Fault>)?;
                return Ok(format!("{port} is mended"));
            }
        };
        let frames = match options.frames {
            FramesWord::All => FrameFilter::All,
            FramesWord::Link => FrameFilter::LinkLocal,
            FramesWord::Fecn => FrameFilter::Marked,
            FramesWord::Becn => FrameFilter::Notice,
        };
        let fault = Fault { action, frames, chance: options.chance, length: options.length };
        client::at_port(record, "POST", "faults", port, Some(&fault))?;
        Ok(format!("{port} has a fault"))
    })
}

/// Runs `traffic`.
pub fn traffic(options: &Traffic) -> Exit {
    with(&options.choice, |record| {
        let on = options.what == TrafficWord::Start;
        let change = TrafficChange { item: options.item.clone(), on };
        let adapters = client::traffic(record, &change)?;
        if adapters == 0 {
            let reason = "no adapter has such traffic; a trace can be neither stopped nor started";
            return Err(ClientError::Refused(reason.to_owned()));
        }
        let word = if on { "started" } else { "stopped" };
        Ok(format!("traffic {word} on {adapters} adapters"))
    })
}

/// Does something to the lab that is meant, and says what.
fn with(choice: &Choice, act: impl FnOnce(&Record) -> Result<String, ClientError>) -> Exit {
    let record = match choice.running() {
        Ok(record) => record,
        Err(exit) => return exit,
    };
    match act(&record) {
        Ok(done) => {
            eprintln!("{done}");
            Exit::Good
        }
        Err(error) => failed(&error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_with_and_without_a_space() {
        assert_eq!(time("5ms"), time("5 ms"));
        assert_eq!(time("200us").map(Duration::as_ps), Ok(200_000_000));
        assert!(time("soon").is_err() && time("5").is_err());
    }
}
