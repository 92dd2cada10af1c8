//! `pausebed clear`, `set link`, `fault` and `traffic`: changes to a running lab.

use super::Choice;
use crate::completion;
use crate::exit::{Exit, Failure, Outcome};
use clap::{Subcommand, ValueEnum};
use daemon::admin::{Fault, LinkChange, TrafficChange};
use emulation::wiring::{Action, FrameFilter, FramePart, NodeKind};
use launch::lab::client::ClientError;
use launch::lab::{LabRecord, client};
use proto::units::{BitRate, Duration};

/// Options of `clear`.
#[derive(Clone, Debug, clap::Args)]
pub(in super::super) struct Clear {
    #[command(flatten)]
    choice: Choice,
}

/// Options of `set`.
#[derive(Clone, Debug, clap::Args)]
pub(in super::super) struct Set {
    #[command(subcommand)]
    what: Settable,
}

#[derive(Clone, Debug, Subcommand)]
enum Settable {
    /// Cut or repair a cable in both directions; lose frames or limit the rate in one direction
    Link(Link),
    /// Change settings of a switch: marking, memory thresholds, shares of traffic classes
    Switch(Switch),
}

#[derive(Clone, Debug, clap::Args)]
#[group(skip)]
struct Switch {
    /// A switch, as in leaf1; a port of it, as in leaf1:4, for keys of link; or all
    #[arg(value_name = "SWITCH", add = completion::ports_and_nodes())]
    name: String,
    /// Keys of a scenario: scheme.KEY, switch.pool.KEY, switch.headroom, link.scheduling. What is left out stays
    #[arg(value_name = "KEY=VALUE", required = true, value_parser = setting, add = completion::keys())]
    settings: Vec<String>,
    #[command(flatten)]
    choice: Choice,
}

#[derive(Clone, Debug, clap::Args)]
#[group(skip)]
struct Link {
    /// A port at the cable, as in leaf1:4
    #[arg(value_name = "PORT", add = completion::ports())]
    port: String,
    /// Stop all frames, in both directions
    #[arg(long, conflicts_with = "up", group = "way")]
    down: bool,
    /// Let all frames pass again
    #[arg(long, group = "way")]
    up: bool,
    /// With --down or --up: switch the attached interface of the host off or on as well, so that its far end loses
    /// its carrier. Needs CAP_NET_ADMIN
    #[arg(long, requires = "way")]
    carrier: bool,
    /// The share of frames from this port that are lost at random, as in 0.01
    #[arg(long, value_name = "SHARE", required_unless_present_any = ["down", "up", "rate"])]
    loss: Option<f64>,
    /// The rate for frames from this port, at most the line rate, as in "1 Gbps"
    #[arg(long, value_name = "RATE")]
    rate: Option<BitRate>,
    #[command(flatten)]
    choice: Choice,
}

/// Options of `fault`.
#[derive(Clone, Debug, clap::Args)]
pub(in super::super) struct FaultOptions {
    /// The port that sends the frames, as in leaf1:4
    #[arg(value_name = "PORT", add = completion::ports())]
    port: String,
    /// The fault; mend removes all faults and changes of the port
    #[arg(value_enum)]
    action: ActionWord,
    /// The kind of frames
    #[arg(value_enum, default_value = "all")]
    frames: FramesWord,
    /// The share of these frames, 0 to 1
    #[arg(long = "prob", value_name = "SHARE", default_value_t = 1.0)]
    chance: f64,
    /// The duration in fabric time, as in "5 ms" (default: until mend)
    #[arg(long = "for", value_name = "TIME", value_parser = time)]
    length: Option<Duration>,
    /// For corrupt: a bit of this part flips and the FCS is right (default: any bit, and the FCS is wrong; at an
    /// attached interface, payload)
    #[arg(long, value_enum)]
    part: Option<PartWord>,
    /// The additional delay, for delay, as in "1 us"
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
enum PartWord {
    /// Octets behind all headers; the receiver's ICRC or checksum shows it
    Payload,
    /// The ICRC of RoCE
    Icrc,
    /// IP, UDP or TCP, BTH
    Header,
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
pub(in super::super) struct Traffic {
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

/// A line of TOML from `key=value`. A value that is none of TOML is a string, as with `--set`.
fn setting(text: &str) -> Result<String, String> {
    let (key, value) = text.split_once('=').ok_or("no equals sign: scheme.kmin=\"40 KB\"")?;
    let line = |value: &str| format!("{key} = {value}\n");
    let parses = |line: &String| line.parse::<toml::Table>().is_ok_and(|table| table.len() == 1);
    let text = || line(&toml::Value::from(value).to_string());
    let found = [line(value), text()].into_iter().find(parses);
    found.ok_or_else(|| format!("{key:?} is not a key, as in scheme.kmin"))
}

/// Reads `5 ms`, and `5ms` too.
fn time(text: &str) -> Result<Duration, String> {
    let digits = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let spaced = format!("{number} {}", unit.trim());
    spaced.parse().map_err(|_| format!("{text:?} is not a duration, as in 5 ms or 200 us"))
}

/// Runs `clear`.
pub(in super::super) fn clear(options: &Clear) -> Outcome {
    with(&options.choice, |record| {
        client::clear(record)?;
        Ok(format!("counters of lab {} are reset to zero", record.lab))
    })
}

/// Runs `set`.
pub(in super::super) fn set(options: &Set) -> Outcome {
    match &options.what {
        Settable::Link(link) => set_link(link),
        Settable::Switch(switch) => set_switch(switch),
    }
}

fn set_switch(switch: &Switch) -> Outcome {
    let settings = switch.settings.concat().parse::<toml::Table>();
    let settings = settings.map_err(|error| Failure::usage(format!("settings: {error}")))?;
    with(&switch.choice, |record| {
        let switches = record.daemons.iter().filter(|daemon| daemon.kind == NodeKind::Switch);
        let names: Vec<&String> = match switch.name.as_str() {
            "all" => switches.flat_map(|daemon| &daemon.nodes).collect(),
            _ => vec![&switch.name],
        };
        for name in &names {
            client::change_settings(record, name, &settings)?;
        }
        Ok(format!("settings of {} switches changed", names.len()))
    })
}

fn set_link(link: &Link) -> Outcome {
    with(&link.choice, |record| {
        if link.loss.is_some() || link.rate.is_some() {
            let change = LinkChange { loss: link.loss, rate: link.rate, down: None };
            client::change_link(record, &link.port, &change)?;
        }
        if link.down || link.up {
            // What is refused has changed nothing.
            if link.carrier {
                client::set_carrier(record, &link.port, link.down)?;
            }
            client::cut(record, &link.port, link.down)?;
        }
        Ok(format!("link {} changed", link.port))
    })
}

/// Runs `fault`.
pub(in super::super) fn fault(options: &FaultOptions) -> Outcome {
    with(&options.choice, |record| {
        let port = &options.port;
        if options.part.is_some() && options.action != ActionWord::Corrupt {
            return Err(ClientError::Refused("only corrupt takes --part".to_owned()));
        }
        let action = match (options.action, options.by) {
            (ActionWord::Drop, _) => Action::Lose,
            (ActionWord::Corrupt, _) => match options.part {
                None => Action::Corrupt,
                Some(PartWord::Payload) => Action::Alter(FramePart::Payload),
                Some(PartWord::Icrc) => Action::Alter(FramePart::Icrc),
                Some(PartWord::Header) => Action::Alter(FramePart::Header),
            },
            (ActionWord::Duplicate, _) => Action::Duplicate,
            (ActionWord::Delay, by) => Action::Delay(by.unwrap_or(Duration::ZERO)),
            (ActionWord::Mend, _) => {
                client::remove_faults(record, port)?;
                return Ok(format!("{port} is repaired"));
            }
        };
        let frames = match options.frames {
            FramesWord::All => FrameFilter::All,
            FramesWord::Link => FrameFilter::LinkLocal,
            FramesWord::Fecn => FrameFilter::Marked,
            FramesWord::Becn => FrameFilter::Notice,
        };
        let fault = Fault { action, frames, chance: options.chance, length: options.length };
        client::add_fault(record, port, &fault)?;
        Ok(format!("{port} has a fault"))
    })
}

/// Runs `traffic`.
pub(in super::super) fn traffic(options: &Traffic) -> Outcome {
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

/// Changes the chosen lab, and prints the description of the change.
fn with(choice: &Choice, act: impl FnOnce(&LabRecord) -> Result<String, ClientError>) -> Outcome {
    eprintln!("{}", act(&choice.running()?)?);
    Ok(Exit::Good)
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

    #[test]
    fn settings_are_toml_or_text() {
        assert_eq!(setting("scheme.kmin=40 KB").as_deref(), Ok("scheme.kmin = \"40 KB\"\n"));
        let list = "link.scheduling = [1, \"strict\"]\n";
        assert_eq!(setting("link.scheduling=[1, \"strict\"]").as_deref(), Ok(list));
        for wrong in ["scheme.kmin", "a b=1", "=1"] {
            assert!(setting(wrong).is_err(), "{wrong}");
        }
    }
}
