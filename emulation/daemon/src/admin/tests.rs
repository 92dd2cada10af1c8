//! The administration with a simulated worker: responses, limits, and refusals.

use super::*;
use crate::config::TcpConfig;
use crate::orders::orders;
use crate::token::Token;
use emulation::cable::impairment::ManualImpairment;
use emulation::clock::{Clock, Stopwatch, monotonic_ns};
use emulation::driver::account::Account;
use emulation::driver::orders::Order;
use emulation::timer;
use proto::counters::{DeviceReading, DropReason, FlowId, FlowReading};
use proto::counters::{LaneCounters, LaneReading, PortReading};
use proto::device::Depth;
use proto::units::Instant;
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::num::NonZeroU64;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tempfile::TempDir;

const LOOPBACK: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

/// The orders that a simulated worker got, and its counters.
#[derive(Debug, Default)]
struct Played {
    over: AtomicBool,
    reads: AtomicU64,
    whole: AtomicU64,
    frames: AtomicU64,
    told: Mutex<Vec<String>>,
}

/// A running administration with a simulated worker behind it.
struct Stage {
    played: Arc<Played>,
    worker: Option<JoinHandle<()>>,
    _admin: AdminServer,
    folder: TempDir,
    address: Option<SocketAddr>,
}

/// A process that hosts a chain of three devices.
fn info() -> ProcessInfo {
    let config = crate::tests::config(0, 1, vec![0; 3]);
    ProcessInfo::new(config, Clock::new(0, NonZeroU64::MIN), None)
}

impl Stage {
    fn set() -> Stage {
        Stage::open(None)
    }

    /// The same with TCP for clients that have `token`.
    fn by_tcp(token: &Token) -> Stage {
        Stage::open(Some(TcpConfig { port: 0, name: None, token: token.clone() }))
    }

    fn open(tcp: Option<TcpConfig>) -> Stage {
        let folder = tempfile::tempdir().expect("a folder");
        let told = AdminConfig { socket: Some(folder.path().join("s")), tcp };
        let socket = AdminSockets::open(&told, LOOPBACK).expect("a short path");
        let address = socket.address();
        let (orders_out, orders_in) = orders(ORDERS_MAX, None);
        let mut info = info();
        info.config.admin = Some(told);
        let admin = AdminServer::start(socket, AdminHandle::new(info, orders_out));
        let admin = admin.expect("a thread");
        let played = Arc::new(Played::default());
        let its = Arc::clone(&played);
        let worker = std::thread::spawn(move || {
            while !its.over.load(Ordering::Relaxed) {
                while let Some(order) = orders_in.next() {
                    its.obey(order);
                }
                timer::wait(None, monotonic_ns() + 1_000_000);
            }
        });
        Stage { played, worker: Some(worker), _admin: admin, folder, address }
    }

    fn connect(&self) -> std::os::unix::net::UnixStream {
        let stream = std::os::unix::net::UnixStream::connect(self.folder.path().join("s"));
        let stream = stream.expect("it listens");
        stream.set_read_timeout(Some(Duration::from_secs(30))).expect("a time-out");
        stream
    }

    /// Status line and headers of the response to a request by TCP with these headers.
    fn ask_by_tcp(&self, method: &str, path: &str, headers: &str) -> String {
        let address = self.address.expect("it listens by TCP");
        let mut stream = std::net::TcpStream::connect(address).expect("it listens");
        stream.set_read_timeout(Some(Duration::from_secs(30))).expect("a time-out");
        let head = format!("{method} {path} HTTP/1.1\r\n{headers}\r\n");
        stream.write_all(head.as_bytes()).expect("it reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("all answers are text");
        answer.split_once("\r\n\r\n").expect("an answer").0.to_ascii_lowercase()
    }

    /// Status and body of the response.
    fn ask(&self, method: &str, path: &str, body: &str) -> (u16, String) {
        let mut stream = self.connect();
        let length = body.len();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n\
             Content-Length: {length}\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).expect("it reads");
        // The server does not read a body that is too long to its end.
        let _ = stream.write_all(body.as_bytes());
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let answer = String::from_utf8(answer).expect("all answers are text");
        let (head, body) = answer.split_once("\r\n\r\n").expect("an answer");
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
        (status.expect("a status"), body.to_owned())
    }

    fn counters(&self) -> view::Counters {
        let (status, body) = self.ask("GET", "/counters", "");
        assert_eq!(status, 200, "{body}");
        serde_json::from_str(&body).expect("counters")
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.played.over.store(true, Ordering::Relaxed);
        if let Some(worker) = self.worker.take() {
            worker.join().expect("the played worker does not panic");
        }
    }
}

impl Played {
    fn obey(&self, order: Order) {
        let told = |what: String| self.told.lock().expect("no panic").push(what);
        match order {
            Order::Read(mut snapshot, depth, reply) => {
                self.reads.fetch_add(1, Ordering::Relaxed);
                self.whole.fetch_add(u64::from(depth == Depth::All), Ordering::Relaxed);
                let tx_frames = self.frames.load(Ordering::Relaxed);
                let ports = [1, 1, 2].map(|ports| vec![port(tx_frames); ports]);
                snapshot.devices =
                    ports.map(|ports| DeviceReading { ports, ..DeviceReading::default() }).to_vec();
                let flow = FlowId { source: 1, destination: 2, class: 0 };
                snapshot.devices[0].flows.push(FlowReading::new(flow));
                snapshot.beat.at = Instant::from_ps(1_000);
                reply(snapshot);
            }
            Order::Impair(impairing, reply) => {
                told(format!("{} {} {:?}", impairing.device, impairing.port, impairing.change));
                reply(true);
            }
            Order::SlowDown(device, port, rate, reply) => {
                told(format!("{device} {port} {rate}"));
                reply(rate <= proto::units::BitRate::gbps(8));
            }
            Order::Tap(capture, reply) => {
                told(format!("capture {}", capture.is_some()));
                reply((capture, Instant::from_ps(1)));
            }
            Order::Change(device, port, settings, reply) if settings.contains_key("scheme") => {
                told(format!("{device} {port:?} {settings}"));
                reply(Ok(()));
            }
            Order::Change(.., reply) => reply(Err("that is fixed".to_owned())),
            Order::Agent(.., reply) => reply(None),
            Order::Manage(..) | Order::Claim(..) => {}
            Order::Account(at, reply) => {
                reply(Some(Box::new(Account { at, ..Account::default() })))
            }
            Order::Traffic { item, on, reply } => {
                told(format!("{item:?} {on}"));
                reply(2);
            }
        }
    }
}

/// A port that has sent `tx_frames` frames on one lane.
fn port(tx_frames: u64) -> PortReading {
    let (tx_bytes, hold_ps) = (64 * tx_frames, 5);
    let counters = LaneCounters { tx_frames, tx_bytes, hold_ps, ..LaneCounters::default() };
    let mut port = PortReading {
        lanes: vec![LaneReading { tc: 3, counters }],
        named: vec![("rx_prio3_pause".to_owned(), tx_frames)],
        ..PortReading::default()
    };
    port.drops.add(DropReason::Vcrc, 2);
    port
}

#[test]
fn flows_are_left_out_where_they_are_not_wanted() {
    let stage = Stage::set();
    let flows = |path: &str| {
        let (status, body) = stage.ask("GET", path, "");
        assert_eq!(status, 200, "{path}: {body}");
        let counters: view::Counters = serde_json::from_str(&body).expect("counters");
        assert_eq!(counters.nodes[2].ports.len(), 2);
        counters.nodes[0].flows.len()
    };
    assert_eq!((flows("/counters"), flows("/counters?flows=all")), (1, 1));
    assert_eq!(flows("/counters?flows=none"), 0);
    for path in ["/counters?flows=some", "/counters?flow=none", "/counters?flows=none&x=1"] {
        let (status, body) = stage.ask("GET", path, "");
        assert_eq!(status, 400, "{path}: {body}");
        let problem: Problem = serde_json::from_str(&body).expect("a problem");
        assert!(!problem.error.is_empty());
    }
}

#[test]
fn outputs_are_totals_of_ports_with_cables_and_spare_the_worker_the_rest() {
    let stage = Stage::set();
    stage.played.frames.store(100, Ordering::Relaxed);
    let (status, body) = stage.ask("GET", "/outputs", "");
    assert_eq!(status, 200, "{body}");
    let outputs: view::Outputs = serde_json::from_str(&body).expect("outputs");
    let mut names: Vec<&str> = outputs.ports.iter().map(|port| port.port.as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, ["relay:1", "relay:2", "sink:1", "source:1"]);
    let first = &outputs.ports[0];
    assert_eq!((outputs.at_ps, first.tx_bytes, first.queue, first.drops), (1_000, 6_400, 0, 2));
    assert_eq!(first.wait_ps, [5]);
    assert_eq!(stage.played.whole.load(Ordering::Relaxed), 0, "nobody wants more yet");
    // A recent snapshot that is not deep enough is not reused for counters.
    stage.counters();
    assert_eq!(stage.played.whole.load(Ordering::Relaxed), 1);
}

#[test]
fn counters_begin_at_zero_when_they_are_cleared_and_metrics_count_on() {
    let stage = Stage::set();
    stage.played.frames.store(100, Ordering::Relaxed);
    let frames = |counters: &view::Counters| counters.nodes[2].ports[1].lanes[0].tx_frames;
    let before = stage.counters();
    assert_eq!((before.cleared_ps, frames(&before)), (None, 100));
    assert_eq!(before.nodes[2].ports[1].port, "relay:2");
    assert_eq!(stage.ask("POST", "/clear", "").0, 204);
    stage.played.frames.store(117, Ordering::Relaxed);
    // Wait until the shared snapshot has expired.
    timer::wait(None, monotonic_ns() + 300_000_000);
    let after = stage.counters();
    assert_eq!((after.cleared_ps, frames(&after)), (Some(1_000), 17));
    assert_eq!(after.nodes[2].ports[1].named["rx_prio3_pause"], 17);
    let (_, text) = stage.ask("GET", "/metrics", "");
    let line = r#"pausebed_port_transmit_packets_total{node="relay",port="2",priority="3"} 117"#;
    assert!(text.lines().any(|found| found == line), "{text}");
}

/// Every line is valid in the format, every family is declared once and before its samples, and no label has
/// more values than a fabric has ports, lanes and reasons.
#[test]
fn metrics_are_what_the_exposition_format_permits() {
    let stage = Stage::set();
    let (status, text) = stage.ask("GET", "/metrics", "");
    assert_eq!(status, 200);
    let mut announced = BTreeSet::new();
    let mut family = "";
    let mut samples = BTreeSet::new();
    for line in text.lines() {
        let words: Vec<&str> = line.splitn(4, ' ').collect();
        match words.as_slice() {
            ["#", "HELP", name, _] => assert!(!announced.contains(name), "{line}"),
            ["#", "TYPE", name, kind] => {
                assert!(announced.insert(*name), "{line}");
                assert!(["counter", "gauge"].contains(kind), "{line}");
                assert_eq!(*kind == "counter", name.ends_with("_total"), "{line}");
                family = name;
            }
            _ => {
                let (series, value) = line.rsplit_once(' ').expect("a sample");
                value.parse::<f64>().unwrap_or_else(|_| panic!("{line}"));
                let (name, labels) = series.split_once('{').expect("all have labels");
                assert_eq!(name, family, "{line}");
                assert!(name.starts_with("pausebed_"), "{line}");
                assert!(samples.insert(series), "twice: {line}");
                let labels = labels.strip_suffix('}').expect("closed");
                for label in labels.split(',') {
                    let (label, value) = label.split_once('=').expect("a label");
                    let known = [
                        "node",
                        "port",
                        "priority",
                        "direction",
                        "reason",
                        "action",
                        "process",
                        "name",
                        "seed",
                        "dilate",
                        "version",
                    ];
                    assert!(known.contains(&label), "{line}");
                    assert!(value.len() >= 2 && value.starts_with('"') && value.ends_with('"'));
                }
            }
        }
    }
    assert!(announced.len() > 15 && samples.len() > 60, "{} {}", announced.len(), samples.len());
}

#[test]
fn commands_reach_the_worker_and_senseless_ones_do_not() {
    let stage = Stage::set();
    let good = [
        ("POST", "/links/relay:2", r#"{"down":true}"#, 204),
        ("POST", "/links/relay:1", r#"{"loss":0.25}"#, 204),
        (
            "POST",
            "/faults/source:1",
            r#"{"action":"lose","frames":"marked","chance":0.1,"for":"5 ms"}"#,
            204,
        ),
        ("DELETE", "/faults/source:1", "", 204),
        ("POST", "/links/relay:1", r#"{"rate":"1 Gbps"}"#, 204),
        ("POST", "/traffic", r#"{"item":"hot","on":false}"#, 200),
        ("POST", "/settings/relay:2", r#"{"scheme":{"pmax":0.5}}"#, 204),
    ];
    for (method, path, body, expected) in good {
        let (status, answer) = stage.ask(method, path, body);
        assert_eq!(status, expected, "{path}: {answer}");
    }
    let bad = [
        ("POST", "/links/relay:9", r#"{"down":true}"#, 422),
        ("POST", "/links/relay:1", r#"{"loss":1.5}"#, 422),
        ("POST", "/links/relay:1", "{}", 422),
        ("POST", "/links/relay:1", r#"{"up":true}"#, 422),
        ("POST", "/links/relay:1", "nonsense", 400),
        ("POST", "/settings/relay", "{}", 422),
        ("POST", "/settings/relay", r#"{"link":{}}"#, 422),
        ("POST", "/settings/spine", r#"{"scheme":{"kmin":"1 KB"}}"#, 422),
        ("POST", "/traffic", r#"{"on":"yes"}"#, 422),
        ("GET", "/nothing", "", 404),
        ("DELETE", "/status", "", 405),
    ];
    for (method, path, body, expected) in bad {
        let (status, answer) = stage.ask(method, path, body);
        assert_eq!(status, expected, "{method} {path} {body}: {answer}");
    }
    let told = stage.played.told.lock().expect("no panic");
    assert_eq!(told.len(), good.len(), "{told:?}");
    assert_eq!(told[0], format!("2 2 {:?}", ManualImpairment::Cut(true)));
    assert_eq!(told[1], "2 1 Lossy((250000000, 1000000000))");
    assert!(told[2].starts_with("0 1 Rule(") && told[2].contains("Marked"), "{}", told[2]);
    let change = "2 Some(PortNumber(2)) [scheme]\npmax = 0.5\n";
    assert_eq!(told[3..], ["0 1 Mend", "2 1 1 Gbps", "Some(\"hot\") false", change]);
}

#[test]
fn a_capture_is_made_where_it_can_be_and_refused_elsewhere() {
    let stage = Stage::set();
    let request = |file: &Path, port: &str| {
        let file = file.display();
        format!("{{\"file\":\"{file}\",\"ports\":{{\"{port}\":\"8 Gbps\"}}}}")
    };
    let file = stage.folder.path().join("x.pcapng");
    assert_eq!(stage.ask("POST", "/capture", &request(&file, "relay:1")).0, 204);
    assert!(std::fs::read(&file).is_ok_and(|octets| octets.starts_with(&[0x0a, 0x0d, 0x0d, 0x0a])));
    assert_eq!(stage.ask("POST", "/capture", &request(&file, "relay:7")).0, 422);
    assert_eq!(stage.ask("POST", "/capture", &request(&file, "relay:1")).0, 422, "it exists");
    let nowhere = stage.folder.path().join("nowhere/x.pcapng");
    assert_eq!(stage.ask("POST", "/capture", &request(&nowhere, "relay:1")).0, 422);
    assert_eq!(stage.ask("DELETE", "/capture", ""), (200, "null".to_owned()));
    assert_eq!(*stage.played.told.lock().expect("no panic"), ["capture true", "capture false"]);
}

#[test]
fn an_account_has_an_instant_that_is_not_far_ahead() {
    let stage = Stage::set();
    let (status, body) = stage.ask("GET", "/balance?at_ps=7", "");
    let account: Option<Account> = serde_json::from_str(&body).expect("an account");
    assert_eq!((status, account.map(|account| account.at)), (200, Some(Instant::from_ps(7))));
    let far = (monotonic_ns() + 60_000_000_000) * 1_000;
    assert_eq!(stage.ask("GET", &format!("/balance?at_ps={far}"), "").0, 422);
    assert_eq!(stage.ask("GET", "/balance", "").0, 400);
}

#[test]
fn the_description_names_every_address_and_no_other() {
    let stage = Stage::set();
    let (_, text) = stage.ask("GET", "/openapi.json", "");
    let description: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let paths = description["paths"].as_object().expect("paths");
    assert_eq!(paths.len(), 13);
    for (path, methods) in paths {
        let path = path.replace("{port}", "relay:1").replace("{node}", "relay");
        let path = path.replace("{name}", "relay");
        for method in methods.as_object().expect("methods").keys() {
            if method != "parameters" {
                let (status, _) = stage.ask(&method.to_uppercase(), &path, "");
                assert!(status != 404 && status != 405, "{method} {path}: {status}");
            }
        }
    }
}

#[test]
fn a_body_that_is_too_long_is_refused_and_the_worker_hears_nothing() {
    let stage = Stage::set();
    let body = format!("{{\"on\":true,\"item\":\"{}\"}}", "x".repeat(BODY_MAX));
    assert_eq!(stage.ask("POST", "/traffic", &body).0, 413);
    assert_eq!(stage.played.told.lock().expect("no panic").len(), 0);
    assert_eq!(stage.ask("GET", "/status", "").0, 200);
}

#[test]
fn however_many_ask_the_worker_reads_a_few_times_a_second() {
    let stage = Stage::set();
    let stopwatch = Stopwatch::start();
    for _ in 0..200 {
        assert_eq!(stage.ask("GET", "/status", "").0, 200);
    }
    let most = stopwatch.seconds() * 10.0 + 2.0;
    let reads = stage.played.reads.load(Ordering::Relaxed);
    assert!(reads >= 1 && reads as f64 <= most, "{reads} reads, at most {most} are permitted");
}

#[test]
fn those_who_never_finish_their_request_do_not_keep_others_out() {
    let stage = Stage::set();
    let lorises: Vec<_> = (0..3 * CONNECTIONS_MAX)
        .map(|_| {
            let mut stream = stage.connect();
            // Without a permit the connection has been closed already.
            let _ = stream.write_all(b"GET /status HT");
            stream
        })
        .collect();
    for mut loris in lorises {
        let mut heard = Vec::new();
        // Both an error and an end of file are an end.
        let _ = loris.read_to_end(&mut heard);
        assert!(!String::from_utf8_lossy(&heard).contains("200 OK"));
    }
    assert_eq!(stage.ask("GET", "/status", "").0, 200);
}

#[test]
fn a_worker_that_does_not_answer_is_said_to_be_busy() {
    let stage = Stage::set();
    stage.played.over.store(true, Ordering::Relaxed);
    timer::wait(None, monotonic_ns() + 200_000_000);
    let (status, body) = stage.ask("GET", "/status", "");
    assert_eq!(status, 503, "{body}");
}

#[test]
fn a_socket_is_taken_by_one_and_gone_with_the_administration() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("s");
    let told = AdminConfig { socket: Some(file.clone()), tcp: None };
    let socket = AdminSockets::open(&told, LOOPBACK).expect("a short path");
    assert!(AdminSockets::open(&told, LOOPBACK).is_err());
    let (orders_out, _inbox) = orders(ORDERS_MAX, None);
    drop(AdminServer::start(socket, AdminHandle::new(info(), orders_out)).expect("a thread"));
    assert!(!file.exists());
}

/// Every program on the host can reach loopback, and so can a page in a browser, under a name of its own.
#[test]
fn by_tcp_who_has_the_token_and_calls_it_by_its_name_is_answered_and_nobody_else() {
    let token = Token::make().expect("octets");
    let stage = Stage::by_tcp(&token);
    let address = stage.address.expect("it listens by TCP");
    assert!(address.ip().is_loopback());
    let own = format!("Host: {address}\r\n");
    let by_name = format!("Host: localhost:{}\r\n", address.port());
    let right = format!("Authorization: Bearer {}\r\n", token.text());
    let other = Token::make().expect("octets");
    let wrong = format!("Authorization: Bearer {}\r\n", other.text());
    let cases = [
        (format!("{own}{right}"), 200),
        (format!("{by_name}{}", right.replace("Bearer", "bearer")), 200),
        (own.clone(), 401),
        (format!("{own}{wrong}"), 401),
        (format!("{own}{wrong}{right}"), 401),
        (format!("{own}Authorization: Bearer \r\n"), 401),
        (format!("{own}{}", right.replace("Bearer", "Basic")), 401),
        (format!("Host: evil.example:{}\r\n{right}", address.port()), 421),
        (format!("Host: 127.0.0.1\r\n{right}"), 421),
        (format!("{own}{by_name}{right}"), 421),
        (right.clone(), 421),
    ];
    for (headers, expected) in cases {
        let answer = stage.ask_by_tcp("GET", "/status", &headers);
        assert!(answer.starts_with(&format!("http/1.1 {expected} ")), "{headers}{answer}");
        assert_eq!(expected == 401, answer.contains("www-authenticate: bearer"), "{answer}");
        assert!(!answer.contains("access-control-"), "no other site may read this: {answer}");
    }
    for path in ["/openapi.json", "/nothing"] {
        assert!(stage.ask_by_tcp("GET", path, &own).starts_with("http/1.1 401"), "{path}");
    }
    // A browser's preflight request for a page of another site.
    let preflight =
        format!("{own}Origin: http://evil.example\r\nAccess-Control-Request-Method: POST\r\n");
    let answer = stage.ask_by_tcp("OPTIONS", "/traffic", &preflight);
    assert!(answer.starts_with("http/1.1 401") && !answer.contains("access-control-"), "{answer}");
    assert_eq!(stage.played.told.lock().expect("no panic").len(), 0);
    assert_eq!(
        stage.ask("GET", "/status", "").0,
        200,
        "the socket of the folder asks for no token"
    );
}

#[test]
fn the_token_that_reads_changes_nothing() {
    let token = Token::make().expect("octets");
    let stage = Stage::by_tcp(&token);
    let address = stage.address.expect("it listens by TCP");
    let reads = token.read_only();
    assert!(!token.is(reads.text()) && !reads.is(token.read_only().read_only().text()));
    let headers = format!("Host: {address}\r\nAuthorization: Bearer {}\r\n", reads.text());
    for path in ["/status", "/counters", "/metrics", "/openapi.json"] {
        let answer = stage.ask_by_tcp("GET", path, &headers);
        assert!(answer.starts_with("http/1.1 200 "), "{path}: {answer}");
    }
    for (method, path) in [
        ("POST", "/clear"),
        ("POST", "/traffic"),
        ("POST", "/links/relay:1"),
        ("DELETE", "/faults/relay:1"),
        ("POST", "/capture"),
        ("DELETE", "/capture"),
    ] {
        let answer = stage.ask_by_tcp(method, path, &headers);
        assert!(answer.starts_with("http/1.1 403 "), "{method} {path}: {answer}");
    }
    assert_eq!(stage.played.told.lock().expect("no panic").len(), 0);
}

#[test]
fn strangers_at_tcp_keep_nobody_from_the_socket() {
    let stage = Stage::by_tcp(&Token::make().expect("octets"));
    let address = stage.address.expect("it listens by TCP");
    let connect = |_| std::net::TcpStream::connect(address).expect("it listens");
    let strangers: Vec<_> = (0..2 * CONNECTIONS_MAX).map(connect).collect();
    assert_eq!(stage.ask("GET", "/status", "").0, 200);
    drop(strangers);
}
