//! Linux soft-RoCE (kernel 6.1) between two virtual machines: what `verify` reports of each file, and why.

use super::captures;
use dissect::verify::{Report, Settings, verify};
use std::path::Path;

/// What is expected of a file: rule and frames, without a stated timeout and with `--timeout 14`, which all programs
/// of these captures set but those of the connection manager.
struct Expected {
    file: &'static str,
    frames: u64,
    unstated: &'static [(&'static str, &'static [u64])],
    stated: &'static [(&'static str, &'static [u64])],
    why: &'static str,
}

const NONE: &[(&str, &[u64])] = &[];
/// Numbers that the network lost before the port.
const LOST: &[(&str, &[u64])] = &[("psn-gap", &[126, 244, 261, 694, 830, 838])];

const FILES: [Expected; 13] = [
    clean("atomic_bw.pcap", 241),
    Expected {
        file: "prio_tag_vid0.pcap",
        frames: 515,
        unstated: NONE,
        stated: &[("retry-early", &[454])],
        why: "First and Middle are sent again 7 ms after First; no wait in the file is long enough to exclude that",
    },
    Expected {
        file: "rc_pingpong.pcap",
        frames: 500,
        unstated: &[("retry-early", &[182])],
        stated: &[("retry-early", &[51, 74, 107, 182])],
        why: "the timer is not restarted by acknowledgements: it expires each 67 ms, here 0.7 to 44 ms after a first \
              transmission; that 0.7 ms were too few follows from a wait of 32 ms",
    },
    clean("read_bw.pcap", 200),
    clean("rping_cm.pcap", 125),
    clean("send_bw.pcap", 200),
    clean("tclass_ecn.pcap", 200),
    clean("uc_pingpong.pcap", 250),
    clean("ud_pingpong.pcap", 200),
    Expected {
        file: "vlan100_pcp3.pcap",
        frames: 533,
        unstated: &[("retry-early", &[503])],
        stated: &[("retry-early", &[245, 503])],
        why: "the same timer, 0.6 ms after a first transmission",
    },
    clean("write_bw.pcap", 200),
    Expected {
        file: "write_lat.pcap",
        frames: 851,
        unstated: &[("retry-early", &[54, 200, 246, 334, 432, 498, 554, 588, 700])],
        stated: &[(
            "retry-early",
            &[54, 200, 218, 246, 334, 432, 498, 554, 588, 636, 649, 700, 806],
        )],
        why: "the same timer, 0.4 to 34 ms after a first transmission; a wait of 34 ms excludes what is below 6.8 ms",
    },
    Expected {
        file: "write_loss2pct.pcap",
        frames: 900,
        unstated: LOST,
        stated: LOST,
        why: "losses before the port are not a fault; five repetitions follow NAKs, and one follows a time-out, 69 ms after \
              the last progress",
    },
];

const fn clean(file: &'static str, frames: u64) -> Expected {
    Expected {
        file,
        frames,
        unstated: NONE,
        stated: NONE,
        why: "nothing is repeated and nothing missing",
    }
}

fn report(path: &Path, timeout: Option<u8>) -> Report {
    let octets = std::fs::read(path).expect("a readable file");
    verify(&octets[..], "", &Settings { timeout, ..Settings::default() }, 99).expect("a capture")
}

fn found(report: &Report) -> Vec<(&'static str, u64)> {
    report.findings.iter().map(|finding| (finding.rule, finding.frame)).collect()
}

fn listed(rules: &[(&'static str, &[u64])]) -> Vec<(&'static str, u64)> {
    let each = |(rule, frames): &(&'static str, &[u64])| -> Vec<_> {
        frames.iter().map(|frame| (*rule, *frame)).collect()
    };
    rules.iter().flat_map(each).collect()
}

/// Each file of the folder is in the table, so that a new one is looked at.
#[test]
fn every_finding_in_captures_of_soft_roce_is_explained() {
    let Some(folder) = captures().map(|folder| folder.join("rxe")).filter(|folder| folder.is_dir())
    else {
        skip::because!("no captures of soft-RoCE");
        return;
    };
    let mut files: Vec<_> = std::fs::read_dir(&folder)
        .expect("a folder of captures")
        .map(|entry| entry.expect("a readable folder").file_name().into_string().expect("a name"))
        .filter(|name| name.ends_with(".pcap"))
        .collect();
    files.sort();
    assert_eq!(files, FILES.map(|expected| expected.file));
    for Expected { file, frames, unstated, stated, why } in FILES {
        for (timeout, rules) in [(None, unstated), (Some(14), stated)] {
            let report = report(&folder.join(file), timeout);
            assert_eq!(report.frames, frames, "{file}");
            assert_eq!(found(&report), listed(rules), "{file}, timeout {timeout:?}: {why}");
            let is_clean = rules.iter().all(|(rule, _)| *rule == "psn-gap");
            assert_eq!(report.verdict, if is_clean { "pass" } else { "fail" }, "{file}");
        }
    }
}
