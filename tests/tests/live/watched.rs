//! A lab in containers that a real Prometheus scrapes: `pausebed compose --with-board`.

use super::containers::{alone_at_engine, census, docker, is_there};
use super::laboratory::{eventually, pausebed};
use super::small;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// A started Compose project, stopped when dropped.
struct Project<'a> {
    file: &'a Path,
    port: u16,
}

impl Project<'_> {
    /// Standard output of `docker compose`, or its standard error if it fails.
    fn compose(&self, words: &[&str]) -> Result<String, String> {
        let plugin = docker(&["compose", "version"]).is_ok();
        let mut command = Command::new(if plugin { "docker" } else { "docker-compose" });
        command.args(plugin.then_some("compose"));
        command.args(["--project-name", "pausebed-watched", "--file"]).arg(self.file).args(words);
        command.env("PAUSEBED_PROMETHEUS_PORT", self.port.to_string());
        let output = command.stdin(Stdio::null()).output().map_err(|error| error.to_string())?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        if output.status.success() { Ok(text) } else { Err(said) }
    }

    /// The result of a Prometheus query: the value of each series with its daemon.
    fn ask(&self, query: &str) -> Option<Vec<(String, f64)>> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).ok()?;
        stream.set_read_timeout(Some(Duration::from_secs(20))).ok()?;
        let path = format!("/api/v1/query?query={query}");
        write!(stream, "GET {path} HTTP/1.0\r\nHost: prometheus\r\n\r\n").ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        let (_, body) = answer.split_once("\r\n\r\n")?;
        let answer: Value = serde_json::from_str(body).ok()?;
        let row = |row: &Value| {
            let instance = row["metric"]["instance"].as_str()?.to_owned();
            Some((instance, row["value"][1].as_str()?.parse().ok()?))
        };
        answer["data"]["result"].as_array()?.iter().map(row).collect()
    }
}

impl Drop for Project<'_> {
    fn drop(&mut self) {
        // Only a failed test leaves anything behind.
        let _ = self.compose(&["down", "--volumes", "--timeout", "0"]);
    }
}

/// A free TCP port on loopback.
fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("the socket is bound").port()
}

#[test]
fn a_prometheus_container_scrapes_every_daemon_and_ends_with_its_lab() {
    let image = format!("pausebed-prometheus:{}", env!("CARGO_PKG_VERSION"));
    if !is_there() {
        return;
    }
    if let Err(reason) = docker(&["image", "inspect", "--format", "{{.Id}}", &image]) {
        skip::because!("no Prometheus image (docker/prometheus.sh builds it): {reason}");
        return;
    }
    let _alone = alone_at_engine();
    let before = census();
    let folder = tempfile::tempdir().expect("a folder");
    let board = folder.path().join("board");
    let mut command = Command::new(pausebed());
    command.arg("compose").arg("--with-board").arg(&board).arg(small());
    command.args(["--set", "run.placement=device", "--set", "run.duration=\"20000 mtu\""]);
    let output = command.output().expect("the program is built");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let file = folder.path().join("compose.yaml");
    fs::write(&file, output.stdout).expect("a file");
    let project = Project { file: &file, port: free_port() };
    project.compose(&["up", "--detach"]).expect("all services start");
    let every = ["h0", "h1", "h2", "h3", "s0", "s1"].map(|name| format!("{name}:4701"));
    let every = BTreeSet::from(every);
    let mut said = None;
    let all_go_on = || {
        said = project.ask("rate(pausebed_fabric_time_seconds[10s])");
        let going = said.iter().flatten().filter(|(_, rate)| *rate > 0.0);
        going.map(|(daemon, _)| daemon.clone()).collect::<BTreeSet<_>>() == every
    };
    let scraped = eventually(90.0, all_go_on);
    let logs = || project.compose(&["logs", "--no-color", "--tail", "8"]);
    assert!(scraped, "{said:?}\n{:?}", logs());
    // On a slow host the run may have ended by now, and its series with it.
    let sent = "max_over_time(pausebed_port_transmit_packets_total[1m])";
    let frames = project.ask(&format!("sum+by+(instance)({sent})"));
    let frames = frames.expect("an answer");
    assert_eq!(frames.len(), every.len(), "{frames:?}");
    assert!(frames.iter().all(|(_, total)| *total > 0.0), "{frames:?}");
    let services = project.compose(&["ps", "--services"]).expect("a list");
    let containers = docker(&["ps", "--format", "{{.Names}}"]).expect("a list");
    assert!(
        !containers.contains("grafana"),
        "Grafana starts only on request: {services}\n{containers}"
    );
    project.compose(&["down", "--volumes", "--timeout", "0"]).expect("Compose stops the project");
    assert_eq!(census(), before);
}
