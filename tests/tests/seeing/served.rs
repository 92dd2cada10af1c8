//! `pausebed serve LAB`: looked at by anybody on this host, changed by who has the token.

use crate::laboratory::{alone, eventually};
use crate::{INFINIBAND, Lab};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::time::Duration;

/// A server of a lab's page, until it is dropped.
pub struct Served {
    child: Child,
    /// Where it listens.
    pub address: String,
    token: String,
}

impl Served {
    pub fn of(lab: &Lab) -> Served {
        let mut command = lab.command(&["serve", lab.name, "--listen", "127.0.0.1:0"]);
        let mut child = command.stderr(Stdio::piped()).spawn().expect("the program starts");
        let mut said = BufReader::new(child.stderr.take().expect("it was asked for")).lines();
        let mut line = || said.next().expect("a line").expect("text");
        let (open, changing) = (line(), line());
        let address = open.trim_start_matches("http://").trim_end_matches('/').to_owned();
        let token = changing.split("token=").nth(1).expect("a token");
        let token = token.split(' ').next().expect("a word").to_owned();
        Served { child, address, token }
    }

    /// The stream behind the head of the answer to a request.
    fn open(&self, method: &str, path: &str, body: &str) -> (u16, BufReader<TcpStream>) {
        let mut stream = TcpStream::connect(&self.address).expect("it listens");
        stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a time-out");
        let (host, length) = (&self.address, body.len());
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\
             Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
        )
        .expect("it reads");
        let mut stream = BufReader::new(stream);
        let mut status = String::new();
        stream.read_line(&mut status).expect("an answer in time");
        let number = status.split(' ').nth(1).and_then(|word| word.parse().ok());
        let mut line = String::from("-");
        while !line.trim().is_empty() {
            line.clear();
            stream.read_line(&mut line).expect("a head");
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

    /// Does something with the token.
    fn act(&self, body: &str) -> (u16, String) {
        let (status, said) = self.ask("POST", &format!("/api/act?token={}", self.token), body);
        (status, String::from_utf8(said).expect("text"))
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // Only its own end would make it an error.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads a page's stream until an event of that kind; its data.
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
fn a_lab_is_looked_at_changed_with_the_token_and_its_end_is_told() {
    let _alone = alone();
    let lab = Lab::up(INFINIBAND, "one");
    let served = Served::of(&lab);
    let page = served.text("/");
    assert!(page.contains("Lab one is up") && page.contains("id=\"acts\" hidden"));
    assert!(!page.contains(&served.token), "the page is for everybody on this host");
    assert!(served.text("/api/run").contains("\"stop_ps\":null"));
    let (status, mut live) = served.open("GET", "/api/live", "");
    assert_eq!(status, 200);
    event(&mut live, "hello");
    let bin = event(&mut live, "bin");
    let bin: serde_json::Value = serde_json::from_str(&bin).expect("JSON");
    // Five cables are ten outputs, of two octets each.
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
    assert!(eventually(20.0, || injected() > 0), "frames are lost at the cut");
    assert_eq!(served.act(r#"{"act":"mend","port":"s0:1"}"#).0, 200);
    assert_eq!(served.act(r#"{"act":"stop","item":"even"}"#).1, "traffic stopped on 4 adapters");
    lab.good(&["down"]);
    assert!(event(&mut live, "end").contains("The lab is up no more"));
}

#[test]
fn what_is_neither_file_nor_lab_is_said_to_be_neither() {
    let _alone = alone();
    let lab = Lab::up(INFINIBAND, "one");
    let output = lab.run(&["serve", "other"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("other is no file, and no lab of that name is up"), "{said}");
}
