//! The live state of a small run, and the access control of the server.

use super::live_state::{BINS_MAX, LiveState};
use super::page;
use super::routes::{Access, CLIENTS_MAX, Content, Server};
use daemon::token::Token;
use emulation::clock::monotonic_ns;
use emulation::recorder::bins::Slot;
use emulation::recorder::snapshot::{BinSnapshot, PortSnapshot};
use emulation::timer;
use launch::Progress;
use launch::lab::{LabRecord, Stage};
use proto::technology::Technology;
use proto::units::Instant;
use report::data::Graph;
use results::run_directory::topology;
use scenario::Scenario;
use scenario::render::{Lab, render};
use serde_json::json;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

const SCENARIO: &str = r#"schema = 1
name = "two"
[run]
duration = "1000 mtu"
[fabric]
technology = "infiniband"
link = { rate = "8 Gbps", delay = "0.125 mtu" }
switch = { buffer = "36 mtu" }
nodes = [
  { name = "h0", kind = "nic" }, { name = "h1", kind = "nic" }, { name = "s0", kind = "switch" },
]
links = [{ a = "h0:1", b = "s0:1" }, { a = "h1:1", b = "s0:2" }]
[[traffic]]
name = "t"
from = "h0"
to = "h1"
load = 0.5
arrivals = "poisson"
size = "2048 B"
"#;

/// A lab without daemons.
pub(crate) fn record(lab: &str) -> LabRecord {
    let record = LabRecord::empty(lab.to_owned(), Technology::Infiniband);
    LabRecord { stage: Stage::Up, ..record.expect("this process is there") }
}

pub(super) fn live_state() -> (Lab, Arc<LiveState>) {
    let scenario =
        Scenario::parse(SCENARIO, &[]).unwrap_or_else(|e| panic!("{}", e.in_file("test")));
    let lab = render(&scenario);
    let state = LiveState::new(&scenario, &lab, false);
    (lab, Arc::new(state))
}

/// The bin of that number: every port held for a fifth of it, the queue before h1 long.
fn snapshot(lab: &Lab, number: u32) -> BinSnapshot {
    let bin = lab.plan.bin.as_ps();
    let slot = Slot {
        number,
        begin: Instant::from_ps(bin * u64::from(number)),
        end: Instant::from_ps(bin * u64::from(number + 1)),
    };
    let ends = lab.fabric.wiring.links.iter().flat_map(|link| [link.a, link.b]);
    let ports = ends.map(|at| {
        // A line of 8 Gbit/s carries an octet in a nanosecond.
        PortSnapshot { tx_bytes: bin / 1_000, hold_ps: bin / 5, ..PortSnapshot::idle(at) }
    });
    BinSnapshot { slot, ports: ports.collect() }
}

fn enter(state: &LiveState, bins: &[BinSnapshot]) {
    let at = bins.last().map_or(Instant::ZERO, |snapshot| snapshot.slot.end);
    state.update(Progress { at, late_p99_frames: None, lost: 0, dilation: 1, bins });
}

#[test]
fn a_bin_is_finished_when_all_workers_have_sent_their_part() {
    let (lab, state) = live_state();
    let whole = snapshot(&lab, 0);
    let (one, other) = whole.ports.split_at(2);
    let part = |ports: &[PortSnapshot]| BinSnapshot { slot: whole.slot, ports: ports.to_vec() };
    enter(&state, &[part(one)]);
    assert_eq!(state.summary().0, 0);
    enter(&state, &[part(other)]);
    let rows = state.rows_from(0);
    assert_eq!((state.summary().0, rows.len()), (1, 1));
    // Line rate is 254 of 1.06; a fifth is class 3 of 15.
    assert_eq!(rows[0].octets, [240, 0x30].repeat(4));
    assert_eq!(state.summary().1["held"], json!(4));
}

#[test]
fn only_the_last_bins_are_kept() {
    let (lab, state) = live_state();
    let bins: Vec<BinSnapshot> = (0..BINS_MAX as u32 + 10).map(|n| snapshot(&lab, n)).collect();
    enter(&state, &bins);
    let rows = state.rows_from(0);
    assert_eq!((rows.len(), rows[0].number), (BINS_MAX as usize, 10));
    assert_eq!(state.rows_from(BINS_MAX).len(), 10);
}

fn server(state: Arc<LiveState>, access: Access, lab: Option<LabRecord>) -> Server {
    let page = "page".to_owned();
    let content = Content { page, run: json!({ "run": "1" }), topology: json!({}), lab };
    Server::start(state, access, content).expect("a free port")
}

fn access(token: Option<&str>, is_open: bool) -> Access {
    let listen = SocketAddr::from(([127, 0, 0, 1], 0));
    Access { listen, token: token.map(Token::new), is_open, rate: 10 }
}

/// The answer to a GET, up to its first blank line and what came with it.
fn ask(server: &Server, path: &str, host: Option<&str>) -> (TcpStream, String) {
    request(server, "GET", path, host, "")
}

fn request(
    server: &Server,
    method: &str,
    path: &str,
    host: Option<&str>,
    body: &str,
) -> (TcpStream, String) {
    let mut stream = TcpStream::connect(server.address).expect("it listens");
    stream.set_read_timeout(Some(Duration::from_secs(5))).expect("a time-out");
    let own = server.address.to_string();
    let host = host.unwrap_or(&own);
    let length = body.len();
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n\
         Content-Length: {length}\r\n\r\n{body}"
    )
    .expect("it reads");
    let mut answer = Vec::new();
    while !answer.windows(4).any(|four| four == b"\r\n\r\n") {
        let mut some = [0; 4_096];
        let n = stream.read(&mut some).expect("an answer in time");
        assert!(n > 0, "the answer ended early: {}", String::from_utf8_lossy(&answer));
        answer.extend(&some[..n]);
    }
    (stream, String::from_utf8_lossy(&answer).into_owned())
}

#[test]
fn foreign_names_and_missing_tokens_are_refused() {
    let (_, state) = live_state();
    let open = server(Arc::clone(&state), access(None, true), None);
    assert!(ask(&open, "/", None).1.starts_with("HTTP/1.1 200"));
    assert!(ask(&open, "/", Some("evil.example")).1.starts_with("HTTP/1.1 421"));
    assert!(ask(&open, "/nothing", None).1.starts_with("HTTP/1.1 404"));
    let shut = server(state, access(Some("secret"), false), None);
    for (path, status) in [
        ("/", 403),
        ("/api/live?token=other", 403),
        ("/?token=secret", 200),
        ("/api/run?token=secret", 200),
    ] {
        let answer = ask(&shut, path, None).1;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{path}: {answer}");
    }
}

#[test]
fn clients_beyond_the_limit_are_refused_until_one_disconnects() {
    let (_, state) = live_state();
    let server = server(state, access(None, true), None);
    let mut connected: Vec<TcpStream> = Vec::new();
    for _ in 0..CLIENTS_MAX {
        let (stream, answer) = ask(&server, "/api/live", None);
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        connected.push(stream);
    }
    assert_eq!(server.clients(), CLIENTS_MAX);
    assert!(ask(&server, "/api/live", None).1.starts_with("HTTP/1.1 503"));
    connected.clear();
    // The server notices a disconnected client at its next write.
    let freed = (0..500).any(|_| {
        timer::wait(None, monotonic_ns() + 20_000_000);
        ask(&server, "/api/live", None).1.starts_with("HTTP/1.1 200")
    });
    assert!(freed, "no slot became free");
}

/// Silent clients, and clients that send a header octet by octet, are disconnected; meanwhile others are served.
#[test]
fn slow_clients_hold_no_connection_for_long() {
    let server = server(live_state().1, access(None, true), None);
    let silent: Vec<TcpStream> = (0..40)
        .map(|n| {
            let mut stream = TcpStream::connect(server.address).expect("it listens");
            let words: &[u8] = if n % 2 == 0 { b"" } else { b"GET / HTTP/1.1\r\nHo" };
            stream.write_all(words).expect("it is open");
            stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a time-out");
            stream
        })
        .collect();
    let (_, answer) = ask(&server, "/api/run", None);
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    for mut stream in silent {
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).expect("the server closes it");
    }
    let head = format!("GET /{} HTTP/1.1\r\n", "x".repeat(20_000));
    let mut stream = TcpStream::connect(server.address).expect("it listens");
    let _ = stream.write_all(head.as_bytes());
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer);
    assert!(!answer.contains("200 OK"), "a head of 20 KB is refused: {answer}");
}

#[test]
fn actions_need_the_token_and_add_a_note_for_every_page() {
    let (_, state) = live_state();
    let run = server(Arc::clone(&state), access(Some("secret"), true), None);
    let stop = r#"{"act":"stop","item":null}"#;
    let answer = request(&run, "POST", "/api/act?token=secret", None, stop).1;
    assert!(answer.starts_with("HTTP/1.1 404"), "a run is not a lab: {answer}");
    assert!(ask(&run, "/metrics", None).1.starts_with("HTTP/1.1 404"));
    let lab = server(Arc::clone(&state), access(Some("secret"), true), Some(record("two")));
    let long = format!(r#"{{"act":"cut","port":"{}"}}"#, "x".repeat(5_000));
    for (path, body, status) in [
        ("/api/act", stop, 403),
        ("/api/act?token=secre", stop, 403),
        ("/api/act?token=secret", r#"{"act":"explode"}"#, 422),
        ("/api/act?token=secret", r#"{"act":"cut","port":"nobody:1"}"#, 422),
        ("/api/act?token=secret", &long, 413),
    ] {
        let answer = request(&lab, "POST", path, None, body).1;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{path} {body:.40}: {answer}");
    }
    assert!(state.notes_after(0).is_empty(), "nothing was done");
    let answer = request(&lab, "POST", "/api/act?token=secret", None, stop).1;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let notes: Vec<_> = state.notes_after(0).into_iter().map(|note| note.text).collect();
    assert_eq!(notes, [json!({ "t": 0, "kind": "act", "what": "traffic stopped on 0 adapters" })]);
    // Reading needs no token on this host.
    assert!(ask(&lab, "/", None).1.starts_with("HTTP/1.1 200"));
    assert!(ask(&lab, "/metrics", None).1.starts_with("HTTP/1.1 200"));
}

/// The page of a shipped scenario before it begins, and the data for its script.
fn page_of(name: &str) -> (String, serde_json::Value) {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../topo/scenarios");
    let loaded = scenario::files::load(&folder.join(name), &[]);
    let scenario = loaded.unwrap_or_else(|faults| panic!("{faults}")).scenario;
    let lab = render(&scenario);
    let described = serde_json::to_value(topology::describe(&lab.fabric)).expect("plain data");
    let graph: Graph = serde_json::from_value(described).expect("cables have ends");
    let state = LiveState::new(&scenario, &lab, false);
    let subject = page::PageSubject {
        scenario: &scenario,
        lab: &lab,
        back_end: "virtual".to_owned(),
        record: None,
    };
    let page = page::html(&subject, &graph, &state);
    let (_, meta) = page.split_once("id=\"pb-meta\">").expect("it has data for its script");
    let (meta, _) = meta.split_once("</script>").expect("the element ends");
    let meta = serde_json::from_str(meta).expect("it is JSON");
    (page, meta)
}

#[test]
fn beyond_512_adapters_a_row_of_the_page_is_a_leaf() {
    let (page, meta) = page_of("pfister/case4-none.toml");
    assert_eq!((page.matches(" data-x=\"").count(), page.matches(" data-s=\"").count()), (32, 32));
    assert_eq!(meta["bundles"], json!([]));
    let (page, meta) = page_of("rrcc/large/fat1024-mix-none.toml");
    // 128 leaves of eight; of each source the least, the mean and the greatest.
    assert_eq!(
        (page.matches(" data-x=\"").count(), page.matches(" data-s=\"").count()),
        (128, 384)
    );
    assert_eq!(meta["adapters"].as_array().map(Vec::len), Some(1024));
    let bundles = meta["bundles"].as_array().expect("a list");
    assert_eq!(bundles.len(), 256);
    let outputs = meta["outputs"].as_array().expect("a list").len();
    for bundle in bundles {
        let of = bundle["of"].as_array().expect("a list");
        assert!(of.len() == 8 && of.iter().all(|o| o.as_u64().is_some_and(|o| o < outputs as u64)));
    }
    assert!(page.contains("A row is a leaf") && page.contains(&format!("data-e=\"{outputs}\"")));
}
