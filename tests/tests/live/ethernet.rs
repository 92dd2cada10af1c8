//! Live runs of Ethernet: captures that other tools read, foreign datagrams during a lossless flow, and
//! cables that corrupt frames.

use super::hostile::Pace;
use super::laboratory::{Ended, Running, alone, in_repository};
use super::{assert_honest, assert_passes_or_host_is_busy, besieged, repeated};
use dissect::verify::{Pausing, Settings, verify};
use proto::units::Duration;
use proto::wire::classify::PriorityMap;
use std::path::{Path, PathBuf};
use std::process::Command;

fn scenario() -> PathBuf {
    in_repository("tests/tests/live/ethernet.toml")
}

/// The number of packets that a display filter matches; says why and returns `None` without tshark.
fn shown(capture: &Path, filter: &str) -> Option<usize> {
    let sums = ["-o", "ip.check_checksum:TRUE", "-o", "udp.check_checksum:TRUE"];
    let mut tshark = Command::new("tshark");
    let Ok(output) =
        tshark.arg("-n").arg("-r").arg(capture).args(sums).args(["-Y", filter]).output()
    else {
        skip::because!("tshark is not installed");
        return None;
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(output.stdout.split(|octet| *octet == b'\n').filter(|line| !line.is_empty()).count())
}

/// The captures of a run, one for each process.
pub fn captures(ended: &Ended) -> Vec<PathBuf> {
    let files = std::fs::read_dir(ended.out()).expect("a run directory").flatten();
    let files = files.map(|entry| entry.path());
    files.filter(|file| file.extension().is_some_and(|end| end == "pcapng")).collect()
}

#[test]
fn a_live_capture_opens_in_tshark_and_passes_verify() {
    let _alone = alone();
    let words = ["--set", "run.capture=[\"s0:*\",\"h*:1\"]"];
    let ended = repeated(|| Running::start(&scenario(), &words).end(40.0));
    assert_passes_or_host_is_busy(&ended);
    let captures = captures(&ended);
    assert_eq!(captures.len(), 2, "one capture for each process: {captures:?}");
    let jitter = Duration::from_us(20);
    let pause = Some(Pausing {
        priorities: Some(PriorityMap::BY_DSCP),
        obeyed: u8::MAX,
        response: Some(jitter),
    });
    let mut pauses = 0;
    for capture in &captures {
        let file = std::fs::File::open(capture).expect("the run wrote the capture");
        let settings = Settings { pause, ..Settings::default() };
        let report =
            verify(std::io::BufReader::new(file), "live", &settings, 9).expect("a capture");
        assert_eq!((report.findings, report.error), (vec![], None), "{}", capture.display());
        pauses += report.tally.checked.get("pauses heard").copied().unwrap_or(0);

        let Some(malformed) = shown(capture, "_ws.malformed || _ws.expert.severity == error")
        else {
            return;
        };
        let undissected =
            "!(macc || infiniband.bth) || ip.checksum.status == 0 || (ip && !infiniband)";
        assert_eq!((malformed, shown(capture, undissected)), (0, Some(0)), "{}", capture.display());
        // Each of these frames passes both processes.
        for (what, filter) in [
            ("PFC that pauses priority 3", "macc.cbfc.pause_time.c3 == 65535"),
            ("PFC that ends the pause", "macc.cbfc.enbv.c3 == 1 && macc.cbfc.pause_time.c3 == 0"),
            ("marked data", "ip.dsfield.ecn == 3 && infiniband.bth.opcode < 5"),
            ("data", "infiniband.bth.opcode == 0 || infiniband.bth.opcode == 4"),
            ("acknowledgements", "infiniband.bth.opcode == 17"),
            ("CNPs", "infiniband.bth.opcode == 0x81 && ip.dsfield.dscp == 48"),
        ] {
            assert!(shown(capture, filter) > Some(0), "{}: no {what}", capture.display());
        }
    }
    assert!(pauses > 8, "adapters and switch received {pauses} pauses");
}

/// Cable faults reduce the flows' throughput, so the test checks the frame balance only.
#[test]
fn a_frame_corrupted_on_a_live_cable_is_dropped_at_the_next_port() {
    let _alone = alone();
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("damaged.toml");
    let faults =
        "\n[[impairment]]\nfrom = [\"h0:1\", \"s0:*\"]\naction = \"corrupt\"\nchance = 0.05\n";
    let text = scenario::files::read(&scenario()).expect("the scenario file is readable").text;
    std::fs::write(&file, text + faults).expect("a writable folder");
    let ended = Running::start(&file, &[]).end(40.0);
    assert_honest(&ended);
    let dropped = |reason: &str| ended.number(&format!("/conservation/dropped/{reason}"));
    assert!(dropped("aborted") > 5.0, "{:#}", ended.json()["conservation"]);
    for reason in ["icrc", "malformed", "pktlen", "checksum", "not_for_us", "queue_pair"] {
        assert_eq!(dropped(reason), 0.0, "{reason}: a corrupted frame passed a port");
    }
}

#[test]
#[ignore = "slow: run with ./test.sh --slow"]
fn a_million_foreign_datagrams_cost_a_lossless_ethernet_flow_no_frame() {
    let ended = besieged(&scenario(), Pace::PerSecond(20_000), 50.0, 1_000_000);
    assert_eq!(ended.number("/measures/drops_lossless"), 0.0);
}
