//! Wall time of exact pace over the number of processes: fat trees of growing size, one process for each device.
//!
//! ```text
//! cargo build --profile quick --bins && cargo bench -p pausebed-tests --profile quick --bench exact [-- --picture ../docs/pictures/exact-pace.svg]
//! ```
//!
//! Every NIC sends at half its line to NICs drawn at random. Each size runs three times; the table has the medians, and
//! `--picture` draws them.

#![expect(clippy::disallowed_methods, reason = "a bench of the program starts the program")]

use chart::curves::{self, Curve, Picture};
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Stdio};

/// Leaf switches of four NICs each, below four spine switches: 5 processes a leaf and 4.
const LEAVES: [u32; 6] = [1, 2, 4, 8, 16, 24];
/// Runs of each size.
const TURNS: usize = 3;
/// Frame times of a run.
const FRAME_TIMES: f64 = 1_000.0;

/// A fat tree of `leaves` leaf switches.
fn scenario(leaves: u32) -> String {
    format!(
        r#"
schema = 1
name = "exact-pace"
[run]
duration = "{FRAME_TIMES} mtu"
backend = "udp"
pace = "exact"
placement = "device"
[fabric]
shape = "xgft"
m = [4, {leaves}]
w = [1, 4]
technology = "infiniband"
mtu = "2048 B"
link = {{ rate = "8 Gbps", delay = "0.125 mtu", lanes = 1 }}
switch = {{ memory = "per-input", buffer = "36 mtu" }}
nic = {{}}
[scheme]
kind = "none"
[[traffic]]
name = "even"
from = "h*"
to = "uniform"
load = 0.5
arrivals = "poisson"
size = "2048 B"
transport = "rc"
"#
    )
}

/// What a run took, for each frame time.
struct Cost {
    wall_ms: f64,
    cpu_ms: f64,
    datagrams: f64,
    promises_alone: f64,
}

/// User and system time of all processes that this one has started and awaited, in milliseconds.
fn cpu_ms() -> f64 {
    let used = nix::sys::resource::getrusage(nix::sys::resource::UsageWho::RUSAGE_CHILDREN);
    let used = used.expect("the kernel counts it");
    [used.user_time(), used.system_time()]
        .iter()
        .map(|time| time.tv_sec() as f64 * 1e3 + time.tv_usec() as f64 / 1e3)
        .sum()
}

fn run(program: &Path, leaves: u32) -> Cost {
    let folder = tempfile::tempdir().expect("a folder");
    let (file, out) = (folder.path().join("exact.toml"), folder.path().join("out"));
    std::fs::write(&file, scenario(leaves)).expect("a file");
    let before_ms = cpu_ms();
    let mut command = Command::new(program);
    command.arg("run").arg(&file).arg("--out").arg(&out).arg("--no-report");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    assert!(command.status().expect("the program is built").success(), "{leaves} leaves");
    let text = std::fs::read_to_string(out.join("run.json")).expect("it is written");
    let run: Value = serde_json::from_str(&text).expect("JSON");
    let number = |pointer: &str| run.pointer(pointer).and_then(Value::as_f64).expect("a number");
    // "…, 143223 datagrams, 9181 with a promise alone, …"
    let told: Vec<&str> =
        run["host"]["versions"]["scheduling"].as_str().expect("text").split(' ').collect();
    let counted = |unit: &str| -> f64 {
        let found = told.windows(2).find(|pair| pair[1] == unit).expect("a count");
        found[0].parse().expect("a number")
    };
    Cost {
        wall_ms: number("/host/wall_seconds") * 1e3 / FRAME_TIMES,
        cpu_ms: (cpu_ms() - before_ms) / FRAME_TIMES,
        datagrams: counted("datagrams,") / FRAME_TIMES,
        promises_alone: counted("with") / FRAME_TIMES,
    }
}

fn median(costs: &[Cost], of: impl Fn(&Cost) -> f64) -> f64 {
    let mut values: Vec<f64> = costs.iter().map(of).collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    let words: Vec<String> = std::env::args().collect();
    let picture = words.windows(2).find(|pair| pair[0] == "--picture").map(|pair| &pair[1]);
    let bench = std::env::current_exe().expect("this program");
    let program = bench.ancestors().nth(2).expect("the build folder").join("pausebed");
    println!(
        "processes  wall ms  CPU ms  datagrams  with a promise alone  µs of CPU a datagram   (per frame time)"
    );
    let mut points = Vec::new();
    for leaves in LEAVES {
        let costs: Vec<Cost> = (0..TURNS).map(|_| run(&program, leaves)).collect();
        let processes = 5 * leaves + 4;
        let wall_ms = median(&costs, |cost| cost.wall_ms);
        println!(
            "{processes:9}  {wall_ms:7.2}  {:6.2}  {:9.0}  {:20.0}  {:20.1}",
            median(&costs, |cost| cost.cpu_ms),
            median(&costs, |cost| cost.datagrams),
            median(&costs, |cost| cost.promises_alone),
            median(&costs, |cost| 1e3 * cost.cpu_ms / cost.datagrams),
        );
        points.push((f64::from(processes), wall_ms));
    }
    if let Some(file) = picture {
        std::fs::write(file, drawn(points)).expect("the picture's file");
    }
}

fn drawn(points: Vec<(f64, f64)>) -> String {
    let picture = Picture {
        title: "Wall time of a frame time with exact pace",
        subtitle: "milliseconds, over the number of processes",
        top: curves::ABOVE,
        x_max: points.last().map_or(1.0, |(processes, _)| *processes),
        ticks: points.iter().map(|(processes, _)| (*processes, processes.to_string())).collect(),
        dots: true,
    };
    let body = curves::picture(&picture, &[Curve { name: "udp".to_owned(), points }]);
    curves::document(picture.title, curves::ABOVE + curves::HEIGHT + curves::BELOW, "", &body)
}
