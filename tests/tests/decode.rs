//! Decode and encode on octets from third parties: captures and published vectors.
//!
//! The folder is that of `captures.rs`. Without it the tests are skipped.

use dissect::json::JsonSink;
use dissect::source::{self, Packet, Visitor};
use dissect::{self, Rules};
use proto::technology::Technology;
use serde_json::Value;
use std::io;
use std::path::{Path, PathBuf};

fn captures() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("PAUSEBED_CAPTURES") {
        return Some(PathBuf::from(named));
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/captures");
    if !folder.is_dir() {
        skip::because!("no captures at {}; set PAUSEBED_CAPTURES", folder.display());
        return None;
    }
    Some(folder)
}

/// Decodes every frame, encodes it again, and keeps the decoded JSON objects.
#[derive(Default)]
struct RoundTrip {
    sink: JsonSink,
    frames: Vec<Value>,
}

impl Visitor for RoundTrip {
    fn frame(&mut self, packet: Packet<'_>) -> io::Result<()> {
        let meta = packet.meta;
        let rules = Rules { fcs: packet.fcs, ..Rules::default() };
        self.sink.begin(&meta);
        dissect::decode(&mut self.sink, meta.technology, packet.octets, meta.wire_length, rules);
        let line = std::str::from_utf8(self.sink.finish()).expect("text");
        let encoded = dissect::encode(line).unwrap_or_else(|fault| panic!("{fault}: {line}"));
        assert_eq!(encoded.octets, packet.octets, "{line}");
        assert_eq!(encoded.at_ns, meta.at_ns.unwrap_or(0));
        self.frames.push(serde_json::from_str(line).expect("JSON"));
        Ok(())
    }

    fn unreadable(&mut self, what: &str) {
        panic!("{what}");
    }
}

fn round_trip(input: &[u8], link: Option<Technology>) -> Vec<Value> {
    let mut visitor = RoundTrip::default();
    source::visit(input, link, &mut visitor).expect("every frame is readable");
    visitor.frames
}

fn holds(frame: &Value, check: &str) -> Option<bool> {
    frame.get(check).map(|check| check["ok"].as_bool().expect("a verdict"))
}

#[test]
fn every_captured_frame_round_trips_with_valid_crcs() {
    let Some(folder) = captures() else { return };
    let mut checks =
        [("ib", "icrc", 0), ("ib", "vcrc", 0), ("rocev2", "icrc", 0), ("pause", "fcs", 0)];
    for (kind, check, count) in &mut checks {
        for entry in std::fs::read_dir(folder.join(*kind)).expect("a folder") {
            let path = entry.expect("a readable folder").path();
            if path.extension().is_none_or(|extension| extension != "pcap") {
                continue;
            }
            for frame in round_trip(&std::fs::read(&path).expect("a readable file"), None) {
                assert_eq!(holds(&frame, check), Some(true), "{}: {frame}", path.display());
                assert_eq!(frame.get("error"), None, "{}: {frame}", path.display());
                *count += 1;
            }
        }
    }
    let counts = checks.map(|(_, _, count)| count);
    assert!(counts[0] >= 25 && counts[1] >= 25 && counts[2] >= 337 && counts[3] >= 2, "{counts:?}");
}

#[test]
fn every_vector_round_trips_with_valid_crcs() {
    let Some(folder) = captures() else { return };
    let text = std::fs::read_to_string(folder.join("vectors.json")).expect("vectors.json");
    let file: Value = serde_json::from_str(&text).expect("JSON");
    let vectors = file["vectors"].as_array().expect("a list");
    assert!(vectors.len() >= 25, "found {}", vectors.len());
    for vector in vectors {
        let name = vector["name"].as_str().expect("a name");
        let hex = vector["hex"].as_str().expect("hex");
        let link =
            if name.starts_with("ib-") { Technology::Infiniband } else { Technology::Ethernet };
        let told = round_trip(hex.as_bytes(), Some(link));
        let [frame] = &told[..] else { panic!("{name}: {told:?}") };
        let wants: &[&str] = match name {
            _ if name.starts_with("ib-fcp") => &["lpcrc"],
            _ if name.starts_with("ib-") => &["icrc", "vcrc"],
            _ if name.starts_with("roce") => &["icrc"],
            _ if name.starts_with("pfc") => &[],
            _ => &["fcs"],
        };
        for check in ["icrc", "vcrc", "lpcrc", "fcs"] {
            let expected = wants.contains(&check).then_some(true);
            assert_eq!(holds(frame, check), expected, "{name}: {check}");
        }
        for (check, field) in [("icrc", "icrc_bytes_on_wire"), ("vcrc", "vcrc_bytes_on_wire")] {
            if let Some(octets) = vector["fields"].get(field).and_then(Value::as_str) {
                assert_eq!(frame[check]["value"], format!("0x{octets}"), "{name}");
            }
        }
    }
}

#[test]
fn decode_names_the_fields_of_a_cnp_of_an_adapter() {
    let Some(folder) = captures() else { return };
    let text = std::fs::read_to_string(folder.join("vectors.json")).expect("vectors.json");
    let file: Value = serde_json::from_str(&text).expect("JSON");
    let first = &file["vectors"][0];
    assert_eq!(first["name"], "rocev2-cnp-ipv4-connectx4lx");
    let frame =
        &round_trip(first["hex"].as_str().expect("hex").as_bytes(), Some(Technology::Ethernet))[0];
    assert_eq!(frame["ethernet"]["dst"], first["fields"]["eth_dst"]);
    assert_eq!(frame["ipv4"]["src"], first["fields"]["ip_src"]);
    assert_eq!(frame["ipv4"]["dscp"], first["fields"]["dscp"]);
    assert_eq!(frame["udp"]["dstport"], first["fields"]["udp_dport"]);
    assert_eq!(frame["bth"]["opcode"], 0x81);
    assert_eq!(frame["bth"]["b"], first["fields"]["bth"]["becn"]);
    assert_eq!(frame["payload"], first["fields"]["reserved16"]);
}
