//! `pausebed serve LAB`: every user of this host may read the page; changes require the token.

use crate::laboratory::eventually;
use crate::{INFINIBAND, Lab};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::time::Duration;

/// A server of a lab's page, killed when dropped.
pub struct Served {
    child: Child,
    /// Address and port on which the server listens.
    pub address: String,
    token: String,
}

impl Served {
    pub fn of(lab: &Lab) -> Served {
        let mut command = lab.command(&["serve", lab.name, "--listen", "127.0.0.1:0"]);
        let mut child = command.stderr(Stdio::piped()).spawn().expect("the program starts");
        let mut said =
            BufReader::new(child.stderr.take().expect("standard error is piped")).lines();
        let mut line = || said.next().expect("a line").expect("text");
        let (open, changing) = (line(), line());
        let address = open.trim_start_matches("http://").trim_end_matches('/').to_owned();
        let token = changing.split("token=").nth(1).expect("a token");
        let token = token.split(' ').next().expect("a word").to_owned();
        Served { child, address, token }
    }

    /// Sends a request; returns the status and the stream after the response header.
    fn open(&self, method: &str, path: &str, body: &str) -> (u16, BufReader<TcpStream>) {
        let mut stream = TcpStream::connect(&self.address).expect("the server listens");
        stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a time-out");
        let (host, length) = (&self.address, body.len());
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\
             Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
        )
        .expect("the server reads the request");
        let mut stream = BufReader::new(stream);
        let mut status = String::new();
        stream.read_line(&mut status).expect("an answer in time");
        let number = status.split(' ').nth(1).and_then(|word| word.parse().ok());
        let mut line = String::from("-");
        while !line.trim().is_empty() {
            line.clear();
            stream.read_line(&mut line).expect("a header line in time");
        }
        (number.expect("a status"), stream)
    }

    pub fn ask(&self, method: &str, path: &str, body: &str) -> (u16, Vec<u8>) {
        let (status, mut stream) = self.open(method, path, body);
        let mut octets = Vec::new();
        stream.read_to_end(&mut octets).expect("an answer in time");
        (status, octets)
    }

    pub fn text(&self, path: &str) -> String {
        let (status, octets) = self.ask("GET", path, "");
        assert_eq!(status, 200, "{path}");
        String::from_utf8(octets).expect("text")
    }

    /// Posts an action with the token; returns the status and the body.
    fn act(&self, body: &str) -> (u16, String) {
        let (status, said) = self.ask("POST", &format!("/api/act?token={}", self.token), body);
        (status, String::from_utf8(said).expect("text"))
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // An error means that the server has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads the event stream until an event of `kind`; returns its data.
fn event(stream: &mut impl BufRead, kind: &str) -> String {
    let mut current = String::new();
    loop {
        let mut line = String::new();
        let read = stream.read_line(&mut line).expect("events in time");
        assert!(read > 0, "the stream ends before {kind}");
        if let Some(found) = line.strip_prefix("event:") {
            current = found.trim().to_owned();
        }
        if let Some(data) = line.strip_prefix("data:")
            && current == kind
        {
            return data.trim().to_owned();
        }
    }
}

#[test]
fn the_live_page_shows_a_lab_changes_it_with_the_token_and_reports_its_end() {
    let lab = Lab::up(INFINIBAND, "one");
    let served = Served::of(&lab);
    let page = served.text("/");
    assert!(page.contains("Lab one is up") && page.contains("id=\"acts\" hidden"));
    assert!(
        !page.contains(&served.token),
        "the page, which every user may read, must not contain the token"
    );
    assert!(served.text("/api/run").contains("\"stop_ps\":null"));
    let (status, mut live) = served.open("GET", "/api/live", "");
    assert_eq!(status, 200);
    event(&mut live, "hello");
    let bin = event(&mut live, "bin");
    let bin: serde_json::Value = serde_json::from_str(&bin).expect("JSON");
    // Five cables have ten outputs, of two octets each.
    assert_eq!(bin["row"].as_str().map(str::len), Some(28), "{bin}");
    let tick = event(&mut live, "tick");
    let tick: serde_json::Value = serde_json::from_str(&tick).expect("JSON");
    assert!(tick["late"].is_number() && tick["lost"] == 0, "{tick}");
    let cut = r#"{"act":"cut","port":"h0:1"}"#;
    assert_eq!(served.ask("POST", "/api/act", cut).0, 403);
    assert_eq!(served.ask("POST", "/api/act?token=x", cut).0, 403);
    assert_eq!(served.act(r#"{"act":"cut","port":"nobody:1"}"#).0, 422);
    assert_eq!(served.act(cut), (200, "the cable at h0:1 is cut".to_owned()));
    assert!(event(&mut live, "note").contains("the cable at h0:1 is cut"));
    let injected = || {
        let shown: serde_json::Value =
            serde_json::from_str(&lab.good(&["status", "--json"])).expect("JSON");
        shown["one"]["injected_lost"].as_u64().expect("a number")
    };
    assert!(eventually(20.0, || injected() > 0), "the cut cable loses frames");
    assert_eq!(served.act(r#"{"act":"mend","port":"s0:1"}"#).0, 200);
    assert_eq!(served.act(r#"{"act":"stop","item":"even"}"#).1, "traffic stopped on 4 adapters");
    lab.good(&["down"]);
    assert!(event(&mut live, "end").contains("The lab has ended"));
}

#[test]
fn serve_refuses_a_name_that_is_neither_a_file_nor_a_lab() {
    let lab = Lab::up(INFINIBAND, "one");
    let output = lab.run(&["serve", "other"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("other is neither a file nor a running lab"), "{said}");
}
