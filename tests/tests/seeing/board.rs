//! The Grafana dashboard and the metrics of labs: every query names existing metrics and labels.

use crate::laboratory::{eventually, in_repository, pause};
use crate::served::Served;
use crate::{ETHERNET, INFINIBAND, Lab, if_there};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

/// The metric families of a Prometheus page, each with the labels of all its series.
type Families = BTreeMap<String, BTreeSet<String>>;

fn families(text: &str) -> Families {
    let mut found = Families::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (name, labels) = line.split_once('{').expect("every series has labels");
        let (labels, _) = labels.rsplit_once('}').expect("the label list is closed");
        let names = labels.split("\",").filter_map(|label| label.split_once("=\""));
        let names = names.map(|(name, _)| name.to_owned());
        found.entry(name.to_owned()).or_default().extend(names);
    }
    found
}

/// Every query of the dashboard's panels and variables.
fn queries(board: &Value) -> Vec<String> {
    let panels = board["panels"].as_array().expect("panels").iter();
    let targets = panels.flat_map(|panel| panel["targets"].as_array().into_iter().flatten());
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let mut all: Vec<String> = targets.filter_map(|target| text(&target["expr"])).collect();
    let variables = board["templating"]["list"].as_array().expect("variables").iter();
    let asking = variables.filter(|variable| variable["type"] == "query");
    all.extend(asking.filter_map(|variable| text(&variable["query"])));
    all
}

/// The series of a query: each metric family with the labels that the query uses.
fn asked(query: &str) -> Vec<(String, Vec<String>)> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut found = Vec::new();
    let mut rest = query;
    while let Some(at) = rest.find("pausebed_") {
        rest = &rest[at..];
        let end = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
        let (name, behind) = rest.split_at(end);
        let matchers = behind.strip_prefix('{').and_then(|inner| inner.split_once('}'));
        let labels = matchers.map_or("", |(inner, _)| inner).split(", ");
        let labels =
            labels.filter_map(|label| label.split_once("=~")).map(|(name, _)| name.to_owned());
        found.push((name.to_owned(), labels.collect()));
        rest = behind;
    }
    found
}

/// The labels that a query sums by; they belong to its first series.
fn summed_by(query: &str) -> Vec<String> {
    let by = query.split_once("by (").and_then(|(_, behind)| behind.split_once(')'));
    by.map_or(Vec::new(), |(labels, _)| labels.split(", ").map(str::to_owned).collect())
}

/// A query with the dashboard's variables substituted.
fn filled(query: &str) -> String {
    query
        .replace("$__rate_interval", "10s")
        .replace("$node", ".*")
        .replace("$port", ".*")
        .replace("$lane", ".*")
}

fn board() -> Value {
    let kept = fs::read_to_string(in_repository("docker/grafana/pausebed.json"));
    serde_json::from_str(&kept.expect("the dashboard file is readable")).expect("JSON")
}

/// The metrics of labs of both technologies, after every kind of frame was lost once.
fn served_by_labs() -> (Families, Vec<String>) {
    let mut all = Families::new();
    let mut pages = Vec::new();
    for (file, port) in [(INFINIBAND, "h0:1"), (ETHERNET, "h0:1")] {
        let lab = Lab::up(file, "one");
        let served = Served::of(&lab);
        lab.good(&["fault", port, "corrupt", "--prob", "0.5"]);
        let mut page = String::new();
        let complete = eventually(20.0, || {
            page = served.text("/metrics");
            page.contains("pausebed_port_discards_total{")
        });
        assert!(complete, "{page}");
        for (family, labels) in families(&page) {
            all.entry(family).or_default().extend(labels);
        }
        pages.push(page);
    }
    (all, pages)
}

#[test]
fn every_dashboard_query_names_metrics_that_labs_serve() {
    let (served, pages) = served_by_labs();
    let queries = queries(&board());
    assert!(queries.len() > 25, "{queries:#?}");
    // Only ports with such a scheme have these counters.
    let of_a_scheme = |name: &str| {
        let named = [
            "_cnp_",
            "_cnm_",
            "_becn_",
            "_fecn_",
            "_ecn_",
            "pause_frames",
            "out_of_sequence",
            "retransmitted",
        ];
        named.iter().any(|part| name.contains(part))
    };
    let known: BTreeSet<String> =
        daemon::admin::families::NAMED.iter().map(|(_, family)| family.full_name()).collect();
    let mut seen = 0;
    for query in &queries {
        let series = asked(query);
        assert!(!series.is_empty(), "{query} names no metric of this project");
        for (place, (name, labels)) in series.iter().enumerate() {
            let Some(has) = served.get(name) else {
                assert!(
                    of_a_scheme(name) && known.contains(name),
                    "{name} does not exist: {query}"
                );
                continue;
            };
            seen += 1;
            let by = if place == 0 { summed_by(query) } else { Vec::new() };
            for label in labels.iter().chain(&by) {
                assert!(has.contains(label), "{name} has no {label}: {query}");
            }
        }
    }
    assert!(seen > 30, "only {seen} series were found");
    for page in &pages {
        judged_by_promtool(page);
    }
    parsed_by_promtool(&queries);
}

/// Checks the exposition with promtool.
fn judged_by_promtool(page: &str) {
    let mut command = Command::new("promtool");
    command.args(["check", "metrics"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let Ok(mut child) = command.stderr(Stdio::piped()).spawn() else {
        skip::because!("promtool is not installed; the exposition is not checked");
        return;
    };
    let mut input = child.stdin.take().expect("standard input is piped");
    input.write_all(page.as_bytes()).expect("promtool reads its input");
    drop(input);
    let output = child.wait_with_output().expect("promtool ends");
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success() && said.trim().is_empty(), "{said}");
}

/// Checks the queries, as recording rules, with promtool.
fn parsed_by_promtool(queries: &[String]) {
    let folder = tempfile::tempdir().expect("a folder");
    let exprs = queries.iter().filter(|query| !query.starts_with("label_values"));
    let rules: Vec<Value> = exprs
        .enumerate()
        .map(|(number, query)| serde_json::json!({ "record": format!("q{number}"), "expr": filled(query) }))
        .collect();
    // JSON is YAML.
    let file = folder.path().join("rules.yml");
    let text = serde_json::json!({ "groups": [{ "name": "board", "rules": rules }] }).to_string();
    fs::write(&file, text).expect("a file");
    let mut command = Command::new("promtool");
    let Some(output) = if_there(command.args(["check", "rules"]).arg(&file)) else { return };
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success(), "{said}");
    assert!(said.contains(&format!("{} rules found", rules.len())), "{said}");
}

/// A real Prometheus scrapes a lab's page and evaluates the dashboard's queries.
#[test]
fn prometheus_scrapes_a_lab_and_answers_the_dashboard() {
    if if_there(Command::new("prometheus").arg("--version")).is_none() {
        return;
    }
    let lab = Lab::up(ETHERNET, "one");
    let served = Served::of(&lab);
    let kept = fs::read_to_string(in_repository("docker/grafana/prometheus.yml"));
    let config =
        kept.expect("the configuration is readable").replace("127.0.0.1:8086", &served.address);
    let file = lab.root().join("prometheus.yml");
    fs::write(&file, config.replace("5s", "1s")).expect("a file");
    let prometheus = Prometheus::start(&lab, &file);
    let value = |query: &str| prometheus.ask(query);
    let scraped = eventually(30.0, || value("up").is_some_and(|one| one == [1.0]));
    assert!(scraped, "{:?}", value("up"));
    let paced = "rate(pausebed_port_transmit_bytes_total[10s])";
    assert!(eventually(20.0, || value(paced).is_some_and(|all| all.iter().any(|v| *v > 0.0))));
    pause(3.0);
    let mut answered = 0;
    for query in queries(&board()).iter().filter(|query| !query.starts_with("label_values")) {
        let values = value(&filled(query));
        let values = values.unwrap_or_else(|| panic!("Prometheus refuses {query}"));
        answered += usize::from(!values.is_empty());
        if query.contains("transmit_wait") && !query.starts_with("count") {
            let share = values.iter().copied().fold(0.0, f64::max);
            assert!(
                share > 0.2,
                "the senders of an incast are paused most of the time: {values:?}"
            );
        }
    }
    assert!(answered > 20, "only {answered} queries had an answer");
}

/// A Prometheus process on this host, killed when dropped.
struct Prometheus {
    child: std::process::Child,
    address: String,
}

impl Prometheus {
    fn start(lab: &Lab, config: &std::path::Path) -> Prometheus {
        let free = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = free.local_addr().expect("the socket is bound").to_string();
        drop(free);
        let mut command = lab.program("prometheus", &[]);
        command.arg(format!("--config.file={}", config.display()));
        command.arg(format!("--storage.tsdb.path={}", lab.root().join("tsdb").display()));
        command.arg(format!("--web.listen-address={address}"));
        let log = fs::File::create(lab.root().join("prometheus.log")).expect("a file");
        let child = command.stdout(Stdio::null()).stderr(log).spawn().expect("Prometheus starts");
        Prometheus { child, address }
    }

    /// The values of an instant query; `None` if Prometheus refuses it.
    fn ask(&self, query: &str) -> Option<Vec<f64>> {
        let coded: String = query.bytes().map(|octet| format!("%{octet:02X}")).collect();
        let path = format!("/api/v1/query?query={coded}");
        let text = get(&self.address, &path)?;
        let answer: Value = serde_json::from_str(&text).ok()?;
        let result = &answer["data"]["result"];
        (answer["status"] == "success").then_some(())?;
        let number = |value: &Value| value[1].as_str().and_then(|text| text.parse().ok());
        if answer["data"]["resultType"] == "scalar" {
            return Some(number(result).into_iter().collect());
        }
        Some(result.as_array()?.iter().filter_map(|row| number(&row["value"])).collect())
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        // The data of Prometheus is not needed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The body of a response without chunked encoding.
fn get(address: &str, path: &str) -> Option<String> {
    use std::io::Read;
    let mut stream = std::net::TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(std::time::Duration::from_secs(20))).ok()?;
    write!(stream, "GET {path} HTTP/1.0\r\nHost: {address}\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    head.split(' ').nth(1).filter(|status| *status == "200")?;
    Some(body.to_owned())
}
