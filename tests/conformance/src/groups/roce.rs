//! ROCE: RoCEv2: ECN, CNP, DCQCN.
//!
//! What switches mark is tested in [`marking`] and what that leaves right in [`passage`], what receivers
//! return in [`notices`] and refuse in [`refusal`], how senders obey in [`sender`] (beside a second
//! writing-down of the rules, [`reference`]) and [`pacing`], and what comes of it all in [`fairness`].

use crate::bench::Bench;
use crate::bench::devices::ethernet::{roomy, switch};
use crate::case::{Case, Failure, Group, Run};
use crate::live::roce as live;
use nicd::config::NicConfig;
use nicd::nic::Nic;
use proto::congestion::SchemeConfig;
use switchd::switch::Switch;

mod fairness;
pub mod marking;
pub mod notices;
mod pacing;
mod passage;
mod reference;
pub mod refusal;
mod sender;

/// The group.
pub const GROUP: Group = Group { name: "ROCE", subject: "RoCEv2: ECN, CNP, DCQCN", cases: CASES };

const CASES: &[Case] = &[
    Case {
        id: "ROCE-01",
        title: "Below Kmin no mark, above Kmax all marked",
        source: "torvalds/linux mlxsw/sch_red_core.sh ecn_test_common",
        note: "Kmin and Kmax are 30 and 31 frames, held at 20 and 47. The queue that a frame finds holds the frame itself.",
        runs: &[Run::engine(marking::below_and_above), Run::live(live::marking::below_and_above)],
    },
    Case {
        id: "ROCE-02",
        title: "Marking curve",
        source: "docs/testplan/ecn/ECN_ACCURACY_README.md",
        note: "A frame over IPv4 is 62 octets and whole words: 1002 octets are the nearest to 1 KB. Marks are judged when a frame leaves, by what stands there then. Fixed seed: the same χ² each time.",
        runs: &[Run::engine(marking::curve)],
    },
    Case {
        id: "ROCE-03",
        title: "Marked share in a burst",
        source: "sai_qos_tests.py DscpEcnSend",
        note: "The chance grows with the queue: the burst of 2047 (L) goes through a queue that stands just below Kmax, where it is Pmax.",
        runs: &[Run::live(live::marking::marked_share)],
    },
    Case {
        id: "ROCE-04",
        title: "ECT codepoints",
        source: "RFC 3168 §5",
        note: "A switch marks by the IP header alone, so an acknowledgement that says ECT is marked too, as adapters exist that send it so; ours do not. CNPs are never marked (ROCE-06).",
        runs: &[Run::engine(marking::code_points), Run::live(live::marking::code_points)],
    },
    Case {
        id: "ROCE-05",
        title: "CE leaves ICRC valid",
        source: "Annex A17 ICRC rule",
        note: "Our switches are bridges and leave TTL alone; the case lowers it between them, as a router would, and sums the checksum by itself. Where scapy is installed it computes ICRC and checksum behind every hop too. On L from NIC to NIC, the mark set at the first switch, TTL left alone.",
        runs: &[Run::engine(passage::integrity), Run::live(live::passage::integrity)],
    },
    Case {
        id: "ROCE-06",
        title: "CNP is never marked and has its class",
        source: "SONiC snappi rocev2 cnp {ecn_value: non_ect}; NIC vendor default DSCP 48",
        note: "Ours are sent Not-ECT and left unmarked even if somebody sends them ECT. “Not delayed” is: by no more than the frame on the line, with priorities of equal weight; by nothing if data is paused.",
        runs: &[Run::engine(notices::class_of_cnp), Run::live(live::notices::class_of_cnp)],
    },
    Case {
        id: "ROCE-07",
        title: "CE on CNP/ACK does not trigger CNP",
        source: "loop avoidance; Annex A17 §17.9",
        note: "The rule for ACKs: a mark on one draws nothing and is not counted as a mark on data (np_ecn_marked_roce_packets). Annex A17 speaks of marked packets without exception; a CNP for an ACK would slow down the other direction.",
        runs: &[Run::engine(notices::marks_on_answers), Run::live(live::notices::marks_on_answers)],
    },
    Case {
        id: "ROCE-08",
        title: "CNP pacing",
        source: "DCQCN (SIGCOMM’15) NP; vendor min_time_between_cnps",
        note: "A flow is a queue pair: two of one adapter are paced apart. On L N = 20 ms.",
        runs: &[Run::engine(notices::pacing), Run::live(live::notices::pacing)],
    },
    Case {
        id: "ROCE-09",
        title: "RP cut",
        source: "DCQCN SIGCOMM’15 §3; alibaba-edu/High-Precision-Congestion-Control#52",
        note: "Variants cnp_order = cut-alpha (default, as in the paper) and alpha-cut. Rates are whole bit/s, each step rounded: traces may be 2 bit/s off a reference that does not round. Between t0 and t0 + 60 µs α has fallen once and the rate has recovered one stage.",
        runs: &[Run::engine(sender::cut)],
    },
    Case {
        id: "ROCE-10",
        title: "Alpha decay",
        source: "DCQCN SIGCOMM’15",
        note: "Seen from outside: by the share that a CNP k·55 µs later takes off the rate.",
        runs: &[Run::engine(sender::alpha_decay)],
    },
    Case {
        id: "ROCE-11",
        title: "Recovery stages",
        source: "DCQCN SIGCOMM’15",
        note: "With B = 10 MB and T = 55 µs the rate is back at the line before the byte counter has counted five: hyper increase is shown with B = 50 KB. Of one instant, octets count before the timer; a frame on the line when a CNP comes was sent before it.",
        runs: &[Run::engine(sender::recovery)],
    },
    Case {
        id: "ROCE-12",
        title: "First CNP behaviour is declared",
        source: "alibaba-edu/High-Precision-Congestion-Control#11",
        note: "Declared as cut, alpha_timer and first_cnp_rate of scheme dcqcn: profile paper halves at once (α begins at 1); cx and hpcc set α to 1, the rate to first_cnp_rate of what it was (1: keep), and cut at the end of the first 4 µs. On L paper, and cx with first_cnp_rate = 0.25 and a cut after 200 ms, read off the line.",
        runs: &[Run::engine(sender::first_cnp), Run::live(live::sender::first_cnp)],
    },
    Case {
        id: "ROCE-13",
        title: "Rate limiter conforms",
        source: "token bucket definition",
        note: "On E over 200 frames of two sizes: any window there is, from the first bit of one to the last of another. Octets are DA to FCS. On L 6, 3 and 2 s for 1, 10 and 50 %: the mean is taken over whole gaps.",
        runs: &[Run::engine(pacing::rate_limiter), Run::live(live::sender::rate_limiter)],
    },
    Case {
        id: "ROCE-14",
        title: "Two-flow fairness",
        source: "DCQCN SIGCOMM’15; seed 004",
        note: "On E over 10 to 60 ms, with the paper's numbers on the line they are for: 40 Gb/s, frames of 1 KiB payload. The second sender joins after 0.5 ms. On L 8 ms of it, slowed down 4000 times, the second half judged; both begin at once.",
        runs: &[Run::engine(fairness::two_flows), Run::live(live::passage::two_flows)],
    },
    Case {
        id: "ROCE-15",
        title: "Bad ICRC at receiver",
        source: "Annex A17; rxe_icrc.c",
        note: "",
        runs: &[Run::engine(refusal::bad_icrc), Run::live(live::notices::bad_icrc)],
    },
    Case {
        id: "ROCE-16",
        title: "Wrong UDP port / short UDP length / fragmented IP",
        source: "Annex A17",
        note: "What is no RoCE passes a switch as plain IP and ends in a NIC as not_roce; what contradicts itself ends at the first port that reads it.",
        runs: &[Run::engine(refusal::not_roce), Run::live(live::notices::not_roce)],
    },
];

/// The last port of the switches here: the way out.
const OUT: u8 = 4;

fn dcqcn(params: &str) -> Result<SchemeConfig, Failure> {
    let params = params.parse().map_err(|error| format!("{params}: {error}"))?;
    Ok(SchemeConfig { kind: "dcqcn".to_owned(), params })
}

/// A switch of four ports with room for everything, under dcqcn with these parameters.
fn bench_of_switch(params: &str) -> Result<Bench<Switch>, Failure> {
    let mut config = roomy(switch(OUT));
    config.scheme = dcqcn(params)?;
    Ok(Bench::ethernet(Switch::new(config).map_err(|error| error.to_string())?))
}

/// A NIC of this configuration, under dcqcn with these parameters.
fn bench_of_nic(config: NicConfig, params: &str) -> Result<Bench<Nic>, Failure> {
    let config = NicConfig { scheme: dcqcn(params)?, ..config };
    Ok(Bench::ethernet(Nic::new(config).map_err(|error| error.to_string())?))
}
