//! Maximum rate of one switch over UDP on loopback, compared with a bare forwarder of the same datagrams.
//!
//! ```text
//! cargo bench -p pausebed-tests --bench flat_out [-- [--repeats N] [--millis N]]
//!
//!                    CPU 0                       CPU 1                        CPU 0
//!   source ── datagrams of one frame ──▶ worker with one switch ── as daemons bundle ──▶ sink
//!          ◀──────── credits ──────────                        ◀─────── credits ───────
//!   source ── datagrams of one frame ──▶ recvmmsg, one octet, sendmmsg ──── as they came ──▶ sink
//! ```
//!
//! The two take turns in one program, so that other load on the machine affects both alike. Results of one
//! turn are compared with each other. Source and sink share a thread and do minimal work. The source is at
//! most 256 frames ahead of the sink and, with the switch, keeps to its credits. CPU time is that of the
//! forwarding thread, with system calls. In the third row the source bundles frames as the daemons do.

use emulation::clock::monotonic_ns;
use emulation::timer::{self, prepare_thread};
use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::{Pid, gettid};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

mod bare;
mod cable_end;
mod fabric;
mod neighbours;

/// Payloads: LRH to VCRC they are 62 and 2074 octets.
const PAYLOADS: [usize; 2] = [36, 2048];

/// State shared by the threads of one run.
#[derive(Default)]
pub struct Signals {
    /// Set to end the run.
    stop: AtomicBool,
    /// Number of frames that have reached the sink.
    sunk: AtomicU64,
    /// Thread id of the forwarder.
    forwarder: AtomicU64,
}

impl Signals {
    /// True when the run is over.
    pub fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Sets the total number of frames that the sink has received.
    pub fn sunk(&self, frames: u64) {
        self.sunk.store(frames, Ordering::Relaxed);
    }

    /// Records the calling thread as the forwarder and moves it to its own CPU.
    pub fn register_forwarder(&self) {
        pin_to(1);
        self.forwarder.store(gettid().as_raw() as u64, Ordering::Relaxed);
    }
}

/// Pins the calling thread to a CPU, if it exists, and raises its priority above ordinary threads.
pub fn pin_to(cpu: usize) {
    let mut cpus = CpuSet::new();
    // On a machine with one CPU both threads share it.
    let _ = cpus.set(cpu).and_then(|()| sched_setaffinity(Pid::from_raw(0), &cpus));
    prepare_thread(false);
}

/// Result of one run.
#[derive(Clone, Copy)]
struct Speed {
    frames_per_s: f64,
    cpu_ns_a_frame: f64,
}

/// Warms up, then reads both counters at the beginning and at the end of the measured time.
fn measure(signals: &Signals, length_ns: u64) -> Speed {
    let pause = |ns: u64| timer::wait(None, monotonic_ns() + ns);
    pause(length_ns / 3);
    let look = || {
        let sunk = signals.sunk.load(Ordering::Relaxed);
        (monotonic_ns(), sunk, thread_cpu_ns(signals.forwarder.load(Ordering::Relaxed)))
    };
    let before = look();
    pause(length_ns);
    let after = look();
    signals.stop.store(true, Ordering::Relaxed);
    let frames = (after.1 - before.1) as f64;
    Speed {
        frames_per_s: frames * 1e9 / (after.0 - before.0) as f64,
        cpu_ns_a_frame: (after.2 - before.2) as f64 / frames,
    }
}

/// CPU time of a thread of this process, in nanoseconds.
fn thread_cpu_ns(thread: u64) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/self/task/{thread}/schedstat"))
        .expect("the forwarder is running");
    let first = text.split_whitespace().next().and_then(|word| word.parse().ok());
    first.expect("schedstat begins with the time on CPU")
}

/// A forwarder: its name, and the function that runs it for a time in ns with a payload in octets.
struct Row {
    name: &'static str,
    run: fn(&Signals, usize, u64) -> Speed,
}

const ROWS: [Row; 3] = [
    Row { name: "bare forwarder", run: bare::run },
    Row { name: "switch", run: |signals, payload, ns| fabric::run(signals, payload, 1, ns) },
    Row {
        name: "switch, source bundles",
        run: |signals, payload, ns| fabric::run(signals, payload, 16, ns),
    },
];

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn load_average() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace().take(3).collect::<Vec<_>>().join(" ")
}

fn option(name: &str, default: u64) -> u64 {
    let words: Vec<String> = std::env::args().collect();
    let value = words.iter().position(|word| word == name).and_then(|at| words.get(at + 1));
    value.map_or(default, |value| value.parse().unwrap_or_else(|_| panic!("{name} N")))
}

fn main() {
    let (repeats, length_ns) = (option("--repeats", 5).max(1), option("--millis", 700) * 1_000_000);
    println!("load average before: {}", load_average());
    for payload in PAYLOADS {
        let mut runs: [Vec<Speed>; 3] = Default::default();
        for _ in 0..repeats {
            for (row, speeds) in ROWS.iter().zip(&mut runs) {
                speeds.push((row.run)(&Signals::default(), payload, length_ns));
            }
        }
        for (row, speeds) in ROWS.iter().zip(&runs) {
            let ratio = |of: fn(&Speed, &Speed) -> f64| {
                median(speeds.iter().zip(&runs[0]).map(|(own, bare)| of(own, bare)))
            };
            println!(
                "{payload:>5} B  {:<23} {:>8.0} frames/s  {:>6.0} ns of CPU a frame   of the bare one: {:.2} frames/s, {:.2} CPU",
                row.name,
                median(speeds.iter().map(|speed| speed.frames_per_s)),
                median(speeds.iter().map(|speed| speed.cpu_ns_a_frame)),
                ratio(|own, bare| own.frames_per_s / bare.frames_per_s),
                ratio(|own, bare| own.cpu_ns_a_frame / bare.cpu_ns_a_frame),
            );
        }
    }
    println!("load average after: {}", load_average());
}
