//! `pausebed verify FILE`: what is wrong with a capture, frame by frame.

use super::Exit;
use dissect::verify::report::KEPT;
use dissect::verify::rules::FAMILIES;
use dissect::verify::{Pausing, Report, Settings, table, verify};
use proto::ids::Dscp;
use proto::units::{BitRate, Bytes, Duration};
use proto::wire::classify::PriorityMap;
use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;

/// Options of `verify`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// A capture, pcap or pcapng.
    #[arg(value_name = "FILE", required_unless_present = "rules")]
    file: Option<PathBuf>,
    /// Data rate of the links, as in "8 Gbps", where the file does not tell it: with --lanes, how often
    /// credit must be told is checked too.
    #[arg(long, value_name = "RATE")]
    rate: Option<BitRate>,
    /// Physical lanes of the links: 1, 4, 8 or 12.
    #[arg(long, value_name = "N", requires = "rate", value_parser = clap::value_parser!(u8).range(1..=12))]
    lanes: Option<u8>,
    /// The least time between two CNPs about a flow, as in "4 us": whether adapters keep it is checked too.
    #[arg(long, value_name = "TIME")]
    cnp_interval: Option<Duration>,
    /// The DSCP of CNPs, by habit 48: whether they have it is checked too.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..=63))]
    cnp_dscp: Option<u8>,
    /// How links of Ethernet are paused: whether who is paused keeps silent is checked too.
    #[arg(long, value_name = "WORDS", value_parser = WORDS.map(|(word, _)| word))]
    pause: Option<String>,
    /// The priorities for which PFC is obeyed, as in 3,4; all if left out.
    #[arg(long, value_name = "N,…", requires = "pause", value_delimiter = ',',
          value_parser = clap::value_parser!(u8).range(0..=7))]
    obeyed: Vec<u8>,
    /// From a pause's arrival until it must be obeyed, as in "10 us"; if left out what IEEE 802.3 gives.
    #[arg(long, value_name = "TIME", requires = "pause")]
    response: Option<Duration>,
    /// Findings listed a rule; the others are counted.
    #[arg(long, value_name = "N", default_value_t = KEPT)]
    limit: u64,
    /// List the rules instead.
    #[arg(long)]
    rules: bool,
    /// Print one JSON document instead of tables.
    #[arg(long)]
    json: bool,
}

/// In which words links are paused, and what gives a frame its priority then.
const WORDS: [(&str, Option<PriorityMap>); 3] = [
    ("pause", None),
    ("pfc-by-dscp", Some(PriorityMap::BY_DSCP)),
    ("pfc-by-pcp", Some(PriorityMap::BY_PCP)),
];

/// Runs the command.
pub fn run(options: &Options) -> Exit {
    let Some(file) = options.file.as_ref().filter(|_| !options.rules) else {
        rules(options.json);
        return Exit::Good;
    };
    let symbol = options.rate.zip(options.lanes);
    let symbol = symbol.map(|(rate, lanes)| Bytes::new(lanes.into()).time_at(rate));
    let settings = Settings {
        symbol,
        cnp_interval: options.cnp_interval,
        cnp_dscp: options.cnp_dscp.map(Dscp::truncate),
        rate: options.rate,
        pause: pausing(options),
    };
    let name = file.display().to_string();
    let report = File::open(file).map_err(|error| error.to_string()).and_then(|input| {
        verify(BufReader::with_capacity(1 << 16, input), &name, &settings, options.limit)
            .map_err(|error| error.to_string())
    });
    match report {
        Ok(report) => {
            if options.json {
                let json = serde_json::to_string_pretty(&report);
                println!("{}", json.expect("a report is plain data"));
            } else {
                print!("{}", table::text(&report));
            }
            exit_of(&report)
        }
        Err(reason) => {
            eprintln!("{name}: {reason}");
            Exit::Usage
        }
    }
}

fn pausing(options: &Options) -> Option<Pausing> {
    let (_, priorities) = WORDS.iter().find(|(word, _)| options.pause.as_deref() == Some(word))?;
    let obeyed = options.obeyed.iter().fold(0, |set, priority| set | 1 << priority);
    let obeyed = if options.obeyed.is_empty() { u8::MAX } else { obeyed };
    Some(Pausing { priorities: *priorities, obeyed, response: options.response })
}

/// The exit code that a report amounts to.
pub fn exit_of(report: &Report) -> Exit {
    match (&report.error, report.counts.is_empty()) {
        (Some(_), _) => Exit::Usage,
        (None, true) => Exit::Good,
        (None, false) => Exit::Failed,
    }
}

fn rules(json: bool) {
    let rules = FAMILIES.iter().flat_map(|row| row.rules.iter().map(move |rule| (row.name, rule)));
    if json {
        let objects = rules.map(|(family, rule)| {
            let (id, title, source) = (rule.id, rule.title, rule.source);
            serde_json::json!({ "rule": id, "family": family, "title": title, "source": source })
        });
        println!("{:#}", serde_json::Value::Array(objects.collect()));
        return;
    }
    for (_, rule) in rules {
        println!("{:14} {} ({})", rule.id, rule.title, rule.source);
    }
}
