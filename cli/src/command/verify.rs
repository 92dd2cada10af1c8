//! `pausebed verify FILE`: checks a capture, frame by frame.

use crate::exit::{Exit, Failure, Outcome};
use dissect::verify::{FAMILIES, KEPT, Pausing, Settings, table, verify};
use proto::ids::Dscp;
use proto::units::{BitRate, Bytes, Duration};
use proto::wire::classify::PriorityMap;
use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;

/// Options of `verify`.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct Options {
    /// A capture, pcap or pcapng.
    #[arg(value_name = "FILE", required_unless_present = "rules")]
    file: Option<PathBuf>,
    /// Data rate of the links, as in "8 Gbps", if the file does not contain it: frames of one direction pass no faster.
    /// With --lanes, the interval of flow-control packets is checked too.
    #[arg(long, value_name = "RATE")]
    rate: Option<BitRate>,
    /// Physical lanes of the links: 1, 4, 8 or 12.
    #[arg(long, value_name = "N", requires = "rate", value_parser = clap::value_parser!(u8).range(1..=12))]
    lanes: Option<u8>,
    /// The error of time stamps that the rule of the line's rate allows for, as in "50 us" (default: none in captures of
    /// this project, where times are fabric time, and 1 ms in others: kernels stamp a burst at once).
    #[arg(long, value_name = "TIME")]
    jitter: Option<Duration>,
    /// The shortest interval of CNPs of a flow, as in "4 us", to be checked too.
    #[arg(long, value_name = "TIME")]
    cnp_interval: Option<Duration>,
    /// The DSCP of CNPs, usually 48, to be checked too.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..=63))]
    cnp_dscp: Option<u8>,
    /// The local ACK timeout of the requesters, as perftest's -u: a retransmission by time-out comes no earlier than
    /// 4.096 us * 2^N after the last progress (default: that of a connection request in the file; otherwise only
    /// retransmissions that no timeout explains are reported).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=31))]
    timeout: Option<u8>,
    /// The kind of pause on Ethernet links: silence during a pause is checked too.
    #[arg(long, value_name = "WORDS", value_parser = WORDS.map(|(word, _)| word))]
    pause: Option<String>,
    /// The priorities with PFC, as in 3,4; all if left out.
    #[arg(long, value_name = "N,…", requires = "pause", value_delimiter = ',',
          value_parser = clap::value_parser!(u8).range(0..=7))]
    obeyed: Vec<u8>,
    /// The response time to a pause, as in "10 us" (default: that of IEEE 802.3).
    #[arg(long, value_name = "TIME", requires = "pause")]
    response: Option<Duration>,
    /// Findings listed for each rule; further ones are only counted.
    #[arg(long, value_name = "N", default_value_t = KEPT)]
    limit: u64,
    /// List the rules instead.
    #[arg(long)]
    rules: bool,
    /// Print one JSON document instead of tables.
    #[arg(long)]
    json: bool,
}

/// The values of --pause, with the source of the priority of a frame.
const WORDS: [(&str, Option<PriorityMap>); 3] = [
    ("pause", None),
    ("pfc-by-dscp", Some(PriorityMap::BY_DSCP)),
    ("pfc-by-pcp", Some(PriorityMap::BY_PCP)),
];

/// Runs the command.
pub(super) fn run(options: &Options) -> Outcome {
    let Some(file) = options.file.as_ref().filter(|_| !options.rules) else {
        rules(options.json);
        return Ok(Exit::Good);
    };
    let symbol = options.rate.zip(options.lanes);
    let symbol = symbol.map(|(rate, lanes)| Bytes::new(lanes.into()).time_at(rate));
    let settings = Settings {
        symbol,
        cnp_interval: options.cnp_interval,
        cnp_dscp: options.cnp_dscp.map(Dscp::truncate),
        timeout: options.timeout,
        rate: options.rate,
        jitter: options.jitter,
        pause: pausing(options),
    };
    let input = File::open(file).map_err(Failure::bad_file(file))?;
    let input = BufReader::with_capacity(1 << 16, input);
    let report = verify(input, &file.display().to_string(), &settings, options.limit);
    let report = report.map_err(Failure::bad_file(file))?;
    if options.json {
        println!("{}", serde_json::to_string_pretty(&report).expect("a report is plain data"));
    } else {
        say!("{}", table::text(&report).trim_end());
    }
    Ok(match (&report.error, report.faults()) {
        (Some(_), _) => Exit::Usage,
        (None, 0) => Exit::Good,
        (None, _) => Exit::Failed,
    })
}

fn pausing(options: &Options) -> Option<Pausing> {
    let (_, priorities) = WORDS.iter().find(|(word, _)| options.pause.as_deref() == Some(word))?;
    let obeyed = options.obeyed.iter().fold(0, |set, priority| set | 1 << priority);
    let obeyed = if options.obeyed.is_empty() { u8::MAX } else { obeyed };
    Some(Pausing { priorities: *priorities, obeyed, response: options.response })
}

fn rules(json: bool) {
    let rules = FAMILIES.iter().flat_map(|row| row.rules.iter().map(move |rule| (row.name, rule)));
    if json {
        let objects = rules.map(|(family, rule)| {
            let (id, severity, title, source) = (rule.id, rule.severity, rule.title, rule.source);
            serde_json::json!({
                "rule": id, "family": family, "severity": severity, "title": title, "source": source
            })
        });
        println!("{:#}", serde_json::Value::Array(objects.collect()));
        return;
    }
    for (_, rule) in rules {
        say!("{:14} {} ({})", rule.id, rule.title, rule.source);
    }
}
