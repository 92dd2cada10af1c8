//! The text of a first scenario: an incast on a small fabric, with every part explained, for `pausebed init`.

use proto::congestion::schemes::Scheme;
use proto::params::{Key, Kind, parse_default};
use proto::technology::Technology;
use proto::units::{BitRate, Bytes, Duration};
use scenario::keyfile::problem::Problems;
use scenario::{Scenario, scheme};
use std::fmt::Write;
use std::ops::RangeInclusive;

/// The file with the JSON Schema of scenario files, which editors read to complete keys.
pub const SCHEMA_FILE: &str = "pausebed.schema.json";

/// A shape with a size to begin with.
#[derive(Debug)]
pub struct Shape {
    /// As in `[fabric] shape`.
    pub name: &'static str,
    /// What it is, for a question.
    pub about: &'static str,
    /// Its keys in `[fabric]`.
    keys: &'static str,
    /// The NICs that send.
    senders: &'static str,
    /// The NIC to which they send.
    receiver: &'static str,
}

/// Every shape.
pub static SHAPES: [Shape; 6] = [
    Shape {
        name: "star",
        about: "one switch with eight NICs",
        keys: "shape = \"star\"\nhosts = 8 # h0 to h7, at ports 1 to 8 of the switch s0\n",
        senders: "h[0-6]",
        receiver: "h7",
    },
    Shape {
        name: "xgft",
        about: "a fat tree: eight NICs, two leaves, two spines",
        keys: "shape = \"xgft\"\nm = [4, 2] # children by level: NICs of a leaf, leaves of a spine\n\
               w = [1, 2] # parents by level: leaves of a NIC, spines of a leaf\n",
        senders: "h[0-6]",
        receiver: "h7",
    },
    Shape {
        name: "leaf-spine",
        about: "two leaves with four NICs each, two spines",
        keys: "shape = \"leaf-spine\"\nleaves = 2\nspines = 2\nhosts_per_leaf = 4 # h1 to h8\n",
        senders: "h[1-7]",
        receiver: "h8",
    },
    Shape {
        name: "ar-t1",
        about: "three senders with a way in common and a way of their own each",
        keys: "shape = \"ar-t1\" # h1 to h3 send, h4 to h6 receive\n",
        senders: "h[1-3]",
        receiver: "h4",
    },
    Shape {
        name: "ar-t3",
        about: "two pairs of senders, each with a way in common",
        keys: "shape = \"ar-t3\" # h1 to h4 send, h5 to h8 receive\n",
        senders: "h[1-4]",
        receiver: "h5",
    },
    Shape {
        name: "listed",
        about: "nodes and links by hand, three NICs to begin with",
        keys: "nodes = [\n  { name = \"h0\", kind = \"nic\" },\n  { name = \"h1\", kind = \"nic\" },\n  \
               { name = \"h2\", kind = \"nic\" },\n  { name = \"s0\", kind = \"switch\" },\n]\n\
               links = [ # an end is node:port\n  { a = \"h0:1\", b = \"s0:1\" },\n  \
               { a = \"h1:1\", b = \"s0:2\" },\n  { a = \"h2:1\", b = \"s0:3\" },\n]\n",
        senders: "h[0-1]",
        receiver: "h2",
    },
];

/// Link, switch and NIC of InfiniBand.
fn infiniband(rate: BitRate) -> String {
    format!(
        r#"mtu    = "2048 B"
link   = {{ rate = "{rate}", delay = "0.125 mtu", lanes = 4 }} # credits stop the sender of a full buffer
switch = {{ memory = "per-input", buffer = "36 mtu", read = "multi" }} # mtu as a size: one full frame
"#
    )
}

/// The same of RoCEv2 over Ethernet.
fn roce(rate: BitRate) -> String {
    // Both ways over the cable and the jitter, and room for the frames under way.
    let headroom = rate.octets_in(Duration::from_us(12)) + Bytes::new(12_000);
    // The default pool has room for the headroom of eight ports up to 400 Gb/s.
    let pool = match rate > BitRate::gbps(400) {
        true => format!(", pool = {{ size = \"{}\" }}", headroom * 16),
        false => String::new(),
    };
    format!(
        r#"mtu    = "1024 B"
link   = {{ rate = "{rate}", delay = "1 us", pause = "pfc" }} # PFC stops the sender of a full buffer
switch = {{ memory = "shared-pool", headroom = "{headroom}", jitter = "10 us"{pool} }} # headroom: what still comes after a pause
"#
    )
}

/// The same of Ethernet with congestion notification.
fn notified(rate: BitRate) -> String {
    format!(
        r#"frame  = "1500 B" # a full frame, DA to FCS
link   = {{ rate = "{rate}", delay = "0.125 mtu", pause = "pause", priorities = "pcp", scheduling = [1, 1, 1, 1, 1, 1, "strict", 1] }}
switch = {{ memory = "per-input", buffer = "600 KB", headroom = "15 KB", cn = {{ cnpv = [3], cnm_priority = 6 }} }}
"#
    )
}

/// The rates of links at which the file is valid and its run long enough, in Gb/s.
pub const RATES: RangeInclusive<u64> = 1..=1_600;

/// The text of the file, with the usual rate of its links if none is given. The scheme must work on the technology.
///
/// # Errors
/// What validation says of the file, if that does not accept it at this rate.
pub fn text(
    technology: Technology,
    shape: &Shape,
    scheme: &Scheme,
    rate: Option<BitRate>,
) -> Result<String, Problems> {
    // A file without parameters shows what is in force.
    let scenario = Scenario::parse(&with_parameters(technology, shape, scheme, rate, ""), &[])?;
    let in_force = scheme::in_force(&scenario.scheme, &scenario.fabric);
    Ok(with_parameters(technology, shape, scheme, rate, &parameters(scheme, &in_force)))
}

fn with_parameters(
    technology: Technology,
    shape: &Shape,
    scheme: &Scheme,
    rate: Option<BitRate>,
    parameters: &str,
) -> String {
    let Shape { senders, receiver, .. } = shape;
    // Their messages go to the senders of frames on a layer below RoCE.
    let is_notified = matches!(scheme.name, "bcn" | "qcn");
    let at = |usual| rate.unwrap_or(BitRate::gbps(usual));
    const RELIABLE: &str = "transport = \"rc\" # a reliable connection";
    const TEST: &str = "transport = \"test\" # frames of this project, without a transport";
    // Fabric time of the run, and from when on it is measured: senders need longer to find their rates on Ethernet.
    let (fabric, item, duration, from) = match technology {
        Technology::Infiniband => (infiniband(at(8)), RELIABLE, "3 ms", "1 ms"),
        Technology::Ethernet if is_notified => (notified(at(10)), TEST, "20 ms", "10 ms"),
        Technology::Ethernet => (roce(at(40)), RELIABLE, "10 ms", "5 ms"),
    };
    let tags = if scheme.name == "qcn" { "nic    = { cn_tags = true }\n" } else { "" };
    let (name, about) = (scheme.name, scheme.about);
    let keys = shape.keys;
    format!(
        r#"#:schema ./{SCHEMA_FILE}
# Several NICs send to one, on a {shape} of {technology}, with {name}.
#
# pausebed validate FILE checks this file, pausebed run FILE --out runs makes a run and its report.
# pausebed run FILE --set KEY=VALUE changes a key for one run, as in --set run.seed=2.

schema = 1
name   = "incast-{shape}-{name}" # its name in results
source = "pausebed init"

[run]
seed     = 1 # the same seed gives the same run, to the octet
duration = "{duration}" # fabric time
backend  = "virtual" # or "udp", "netns", "compose": pausebed doctor says what this host can do

[fabric]
technology = "{technology}"
{keys}{fabric}{tags}
# {about}
[scheme]
kind = "{name}"
{parameters}
[[traffic]]
name = "incast"
from = "{senders}"
to   = "{receiver}"
load = 0.7 # of each sender's line, in sum more than the line of {receiver} carries
arrivals  = "poisson"
{item}
"#,
        shape = shape.name,
    ) + &judged(receiver, from, scheme.controls_senders())
}

/// What is measured, and what is expected of it.
fn judged(receiver: &str, from: &str, is_controlled: bool) -> String {
    let (least, why) = match is_controlled {
        true => (0.3, "defaults are made for large fabrics, and may hold few senders back too far"),
        false => (0.95, "more is sent than the port takes"),
    };
    format!(
        r#"
[[measure]]
name = "hot_port"
of   = "throughput"
at   = "{receiver}:rx" # what {receiver} receives
from = "{from}" # without the start
reduce = "mean"
per    = "line"

[[measure]]
name = "drops"
of   = "count"
at   = "*"
counter = "lossless-drops"
reduce = "sum"

[[expect]]
measure = "hot_port"
min = {least}
why = "{why}"

[[expect]]
measure = "drops"
max = 0
why = "flow control stops senders before a buffer overflows"
"#
    )
}

/// The parameters of a scheme as comments, each with its default. `in_force` has those that depend on the fabric.
fn parameters(scheme: &Scheme, in_force: &[(&str, String)]) -> String {
    let keys: Vec<&Key> = scheme.keys.iter().copied().flatten().collect();
    let mut text = String::new();
    for key in &keys {
        let about = key.about.split(". ").next().unwrap_or_default().trim_end_matches('.');
        let here = in_force.iter().find(|(name, _)| *name == key.name);
        let (value, note) = match here {
            Some((_, value)) => {
                (parse_default(value).to_string(), "; its default follows the fabric")
            }
            None => match default(key, &keys) {
                Some(default) => (default, ""),
                None => continue,
            },
        };
        let _ = writeln!(text, "# {} = {value} # {about}{note}", key.name);
    }
    match text.is_empty() {
        true => text,
        false => format!(
            "# Parameters with their defaults; without the first # a line is in force. \
             More: pausebed schemes {}\n{text}",
            scheme.name
        ),
    }
}

/// The default of a key as in a file; none if other settings determine it.
fn default(key: &Key, keys: &[&Key]) -> Option<String> {
    let position = |by: &str| {
        let by = keys.iter().find(|key| key.name == by)?;
        let (Kind::Word(words), Some(word)) = (&by.kind, by.need.text(|_| None)) else {
            return None;
        };
        words().iter().position(|known| *known == word.trim_matches('"'))
    };
    key.need.text(position).map(|text| parse_default(text).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use launch::experiment::{Conditions, Experiment};
    use launch::substrate;
    use proto::congestion::schemes::SCHEMES;
    use results::verdict::Verdict;
    use scenario::run::Backend;

    /// Every combination that is valid.
    fn all() -> impl Iterator<Item = (String, String)> {
        SCHEMES.iter().flat_map(|scheme| {
            scheme.technologies.iter().flat_map(move |technology| {
                SHAPES.iter().map(move |shape| {
                    let name = format!("{technology}, {}, {}", shape.name, scheme.name);
                    (name, text(*technology, shape, scheme, None).expect("it is valid"))
                })
            })
        })
    }

    #[test]
    fn every_shape_has_a_row() {
        assert_eq!(SHAPES.each_ref().map(|shape| shape.name).to_vec(), scenario::shapes::names());
    }

    /// The other shapes are run by `tests/tests/terminal.rs`.
    #[test]
    fn every_text_is_valid_without_a_warning_and_a_star_meets_its_expectations() {
        for (name, text) in all() {
            let scenario = Scenario::parse(&text, &[]);
            let scenario = scenario.unwrap_or_else(|faults| panic!("{name}: {faults}\n{text}"));
            assert!(scenario.warnings.is_empty(), "{name}: {:?}", scenario.warnings);
            if !name.contains("star") {
                continue;
            }
            let conditions = Conditions::new(substrate(Backend::Virtual), "test");
            let run = Experiment::run(&scenario, conditions, &mut |_| {}).expect("it runs");
            let measures = &run.result.measures;
            assert_eq!(run.result.verdict, Verdict::Pass, "{name}: {measures:?}");
        }
    }

    #[test]
    fn parameters_that_grow_with_the_line_are_those_of_its_rate() {
        let dcqcn = SCHEMES.iter().find(|scheme| scheme.name == "dcqcn").expect("it exists");
        let kmin = |rate| {
            let text = text(Technology::Ethernet, &SHAPES[0], dcqcn, rate).expect("it is valid");
            let scenario = Scenario::parse(&text, &[]).expect("it is valid");
            assert!(scenario.warnings.is_empty(), "{:?}", scenario.warnings);
            let line = text.lines().find(|line| line.starts_with("# kmin")).expect("a line");
            line.split(" # ").next().map(str::to_owned)
        };
        assert_eq!(kmin(None).as_deref(), Some("# kmin = \"5 KB\""));
        assert_eq!(kmin(Some(BitRate::gbps(100))).as_deref(), Some("# kmin = \"12500 B\""));
    }

    #[test]
    fn a_file_is_valid_at_every_rate_and_meets_its_expectations_at_the_lowest() {
        for gbps in [*RATES.start(), 25, 100, 400, 800, *RATES.end()] {
            let rate = Some(BitRate::gbps(gbps));
            for (scheme, technology, shape) in SCHEMES.iter().flat_map(|scheme| {
                let each = scheme.technologies.iter();
                each.flat_map(move |it| SHAPES.iter().map(move |shape| (scheme, *it, shape)))
            }) {
                let name = format!("{technology}, {}, {}, {gbps} Gb/s", shape.name, scheme.name);
                let text = text(technology, shape, scheme, rate);
                let text = text.unwrap_or_else(|faults| panic!("{name}: {faults}"));
                if shape.name == "star" && RATES.start() == &gbps {
                    let scenario = Scenario::parse(&text, &[]).expect("it is valid");
                    let conditions = Conditions::new(substrate(Backend::Virtual), "test");
                    let run = Experiment::run(&scenario, conditions, &mut |_| {}).expect("it runs");
                    let measures = &run.result.measures;
                    assert_eq!(run.result.verdict, Verdict::Pass, "{name}: {measures:?}");
                }
            }
        }
    }

    #[test]
    fn every_parameter_in_a_comment_can_be_put_in_force() {
        for (name, text) in all() {
            let is_key = |line: &str| {
                let key = line.strip_prefix("# ").and_then(|line| line.split_once(" = "));
                key.is_some_and(|(key, _)| key.chars().all(|c| c.is_ascii_lowercase() || c == '_'))
            };
            let lines = text.lines().map(|line| match is_key(line) {
                true => line[2..].to_owned(),
                false => line.to_owned(),
            });
            let in_force = lines.collect::<Vec<_>>().join("\n");
            let read = Scenario::parse(&in_force, &[]);
            assert!(read.is_ok(), "{name}: {}\n{in_force}", read.expect_err("it is refused"));
        }
    }
}
