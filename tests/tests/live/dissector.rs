//! A live run of the Zurich hotspot benchmark, dissected by tshark with the project's dissector.

use super::ethernet::captures;
use super::laboratory::{Ended, Running, alone, in_repository};
use dissect::verify::{Settings, verify};
use serve::wireshark::{FILE, SCRIPT, usual_folder};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

const QCN: &str = "[scheme]\nkind = \"qcn\"\ncp_q_sp = \"30 KB\"\nmax_rps = 3\n";
const BCN: &str = "[scheme]\nkind = \"bcn\"\nq_eq = \"30 KB\"\np_sample = 0.05\n";

/// Runs the benchmark with this scheme.
fn live(scheme: &str) -> Ended {
    let text = std::fs::read_to_string(in_repository("tests/tests/live/zhb.toml")).expect("a file");
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("zhb.toml");
    std::fs::write(&file, text + scheme).expect("a file");
    let ended = Running::start(&file, &["--pace", "exact"]).end(60.0);
    assert_eq!(ended.code, Some(0), "{}", ended.talk);
    ended
}

/// The number of frames of each protocol according to tshark; says why and returns `None` without tshark.
/// Every frame must be free of expert findings, and every RoCE frame must have a valid ICRC.
fn named(capture: &Path) -> Option<BTreeMap<String, usize>> {
    let home = tempfile::tempdir().expect("a folder");
    let plugins = usual_folder(home.path());
    std::fs::create_dir_all(&plugins).expect("a folder");
    std::fs::write(plugins.join(FILE), SCRIPT).expect("a file");
    let mut tshark = Command::new("tshark");
    tshark.env("HOME", home.path()).env_remove("XDG_CONFIG_HOME");
    tshark.args(["-n", "-T", "fields", "-E", "separator=;", "-r"]).arg(capture);
    // tshark's heuristic for SEND Only payloads is wrong and reports them as malformed.
    tshark.args(["--disable-heuristic", "rpcrdma_infiniband"]);
    for field in
        ["_ws.col.Protocol", "pausebed.check.icrc.status", "_ws.malformed", "_ws.expert.message"]
    {
        tshark.args(["-e", field]);
    }
    let Ok(output) = tshark.output() else {
        skip::because!("tshark is not installed");
        return None;
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut protocols = BTreeMap::new();
    for row in String::from_utf8(output.stdout).expect("fields are text").lines() {
        let [protocol, icrc, malformed, complaint] =
            row.split(';').collect::<Vec<_>>().try_into().expect("four fields");
        assert_eq!((malformed, complaint), ("", ""), "{row}");
        let right = if protocol == "RRoCE" { "1" } else { "" };
        assert_eq!(icrc, right, "{row}");
        *protocols.entry(protocol.to_owned()).or_default() += 1;
    }
    Some(protocols)
}

#[test]
fn every_frame_of_a_live_benchmark_is_named_and_verified() {
    let _alone = alone();
    for (scheme, message) in [(QCN, "CNM"), (BCN, "BCN")] {
        let ended = live(scheme);
        let mut all = BTreeMap::new();
        for capture in captures(&ended) {
            let file = std::fs::File::open(&capture).expect("the run wrote the capture");
            let report = verify(std::io::BufReader::new(file), "live", &Settings::default(), 9)
                .expect("a capture");
            assert_eq!((report.findings, report.error), (vec![], None), "{}", capture.display());
            let Some(protocols) = named(&capture) else { return };
            for (protocol, frames) in protocols {
                *all.entry(protocol).or_insert(0) += frames;
            }
        }
        println!("{message}: {all:?}");
        let known = ["TEST", "RRoCE", "MAC CTRL", message];
        assert!(all.keys().all(|protocol| known.contains(&&protocol[..])), "{all:?}");
        for expected in ["TEST", "RRoCE", message] {
            assert!(all.contains_key(expected), "{expected} is missing: {all:?}");
        }
    }
}
