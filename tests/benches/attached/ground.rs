//! Three namespaces with their cables, and the measurement programs between them.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

/// The namespaces: generator, forwarder, sink.
pub const NAMESPACES: [&str; 3] = ["lfA", "lfF", "lfB"];
/// Seconds of one measurement.
const SECONDS: &str = "0.8";

/// The namespaces and files, removed when dropped.
pub struct Ground {
    yardsticks: PathBuf,
    /// Folder for files of the measured forwarder.
    pub folder: TempDir,
    program: PathBuf,
}

impl Ground {
    /// Builds the generator and creates the namespaces.
    pub fn make(yardsticks: Option<String>) -> Result<Ground, String> {
        let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/bench");
        let yardsticks = yardsticks.map_or(beside, PathBuf::from);
        let source = yardsticks.join("lfperf");
        if !source.is_dir() {
            return Err(format!("no yardsticks in {}", yardsticks.display()));
        }
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        if output(Command::new("ip").args(["netns", "list"]))?.contains(NAMESPACES[0]) {
            return Err(format!("a namespace called {} is there already", NAMESPACES[0]));
        }
        let place = folder.path().join("lfperf");
        output(Command::new("cp").arg("-r").args([&source, &place]))?;
        output(Command::new("chmod").args(["-R", "u+w"]).arg(&place))?;
        let target = folder.path().join("target");
        let mut build = Command::new("cargo");
        build.args(["build", "--release", "--quiet", "--manifest-path"]);
        build.arg(place.join("Cargo.toml")).arg("--target-dir").arg(&target);
        output(&mut build)?;
        let ground = Ground { yardsticks, folder, program: target.join("release/lfperf") };
        ground.script("veth.sh", &["up"])?;
        for (namespace, interface, number) in [("lfA", "a0", 1), ("lfB", "b0", 2)] {
            let address = format!("198.18.9.{number}/24");
            let words = ["-n", namespace, "addr", "add", &address, "dev", interface];
            output(Command::new("ip").args(words))?;
        }
        Ok(ground)
    }

    /// Runs a script of the folder of measurement programs.
    pub fn script(&self, name: &str, words: &[&str]) -> Result<String, String> {
        let mut command = Command::new("bash");
        command.arg(self.yardsticks.join(name)).args(words).current_dir(self.folder.path());
        command.env("PERF_RUN", self.folder.path().join("run")).env("LFPERF", &self.program);
        // Background processes of the script keep its output open.
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let status = command.status().map_err(|error| error.to_string())?;
        if status.success() {
            Ok(String::new())
        } else {
            Err(format!("{name} {words:?}: {status}"))
        }
    }

    /// A command that runs in one of the namespaces.
    pub fn inside(namespace: &str, program: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", namespace, program]).stdin(Stdio::null());
        command
    }

    /// Frames of `size` octets per second that reach the sink through the forwarder, or through the bare forwarder.
    pub fn frames_per_s(&self, size: usize, is_bare: bool) -> Result<f64, String> {
        let mut command = Command::new(&self.program);
        command.args(["io", "pktmm", &size.to_string(), "--secs", SECONDS]);
        match is_bare {
            true => command.arg("--chain"),
            false => command.args(["--a", "lfA:a0", "--b", "lfB:b0"]),
        };
        let text = output(&mut command)?;
        let rate = text.split(',').find_map(|word| word.strip_prefix("rx_fps="));
        let rate = rate.and_then(|rate| rate.parse().ok()).filter(|rate| *rate > 0.0);
        rate.ok_or_else(|| format!("no frame came: {text}"))
    }

    /// Mean round-trip time of a ping, in microseconds.
    pub fn round_trip(&self) -> Result<f64, String> {
        let words = ["-q", "-c", "300", "-i", "0.003", "-W", "1", "198.18.9.2"];
        let text = output(Ground::inside("lfA", "ping").args(words))?;
        // rtt min/avg/max/mdev = 0.055/0.081/0.301/0.020 ms
        let average = text.split_once("rtt ").and_then(|(_, rest)| rest.split('/').nth(4));
        let average = average.and_then(|number| number.parse::<f64>().ok());
        average.map(|ms| ms * 1e3).ok_or_else(|| format!("ping tells no time: {text}"))
    }

    /// Throughput of one TCP stream, in bit/s.
    pub fn bulk(&self) -> Result<f64, String> {
        let mut server = Ground::inside("lfB", "iperf3");
        let server = server.args(["-s", "-1"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let mut server = server.map_err(|error| error.to_string())?;
        let words = ["-J", "-t", "2", "-c", "198.18.9.2"];
        let mut rate = Err("it was never asked".to_owned());
        for _ in 0..20 {
            rate = output(Ground::inside("lfA", "iperf3").args(words)).and_then(|text| told(&text));
            if rate.is_ok() {
                break;
            }
            emulation::timer::wait(None, emulation::clock::monotonic_ns() + 100_000_000);
        }
        // The server ends after one client; an error means that it has ended.
        let _ = server.kill();
        let _ = server.wait();
        rate
    }
}

impl Drop for Ground {
    fn drop(&mut self) {
        if let Err(reason) = self.script("veth.sh", &["down"]) {
            println!("the namespaces were not removed: {reason}");
        }
    }
}

/// The rate in iperf3's output, in bit/s. iperf3 exits with 0 even if it finds no server; then there is no rate.
fn told(text: &str) -> Result<f64, String> {
    let said: serde_json::Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let rate = said["end"]["sum_received"]["bits_per_second"].as_f64();
    rate.ok_or_else(|| format!("iperf3 tells no rate: {}", said["error"]))
}

/// Standard output of a program, which must succeed.
pub fn output(command: &mut Command) -> Result<String, String> {
    let Output { status, stdout, stderr } = command
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("{:?}: {error}", command.get_program()))?;
    let text = String::from_utf8_lossy(&stdout).into_owned();
    let said = String::from_utf8_lossy(&stderr);
    if status.success() { Ok(text) } else { Err(format!("{command:?}: {status}: {said}{text}")) }
}
