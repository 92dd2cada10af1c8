//! ROCE: RoCEv2: ECN, CNP, DCQCN.
//!
//! What switches mark is judged in [`marking`] and what that leaves right in [`passage`], what receivers
//! return and refuse in [`notices`], how senders obey in [`sender`] (beside a second writing-down of the
//! rules, [`reference`]).

use crate::case::cases;
use crate::ethernet::{roomy, star};
use crate::prelude::*;

mod marking;
mod notices;
mod packets;
mod passage;
mod reference;
mod sender;

cases! { "ROCE", "RoCEv2: ECN, CNP, DCQCN";
    "ROCE-01" both(marking::below_and_above), "Below Kmin no mark, above Kmax all marked",
        "torvalds/linux mlxsw/sch_red_core.sh ecn_test_common",
        "Kmin and Kmax are 30 and 31 frames, held at 20 and 47. The queue that a frame finds holds the frame itself.";
    "ROCE-02" engine(marking::curve), "Marking curve",
        "docs/testplan/ecn/ECN_ACCURACY_README.md",
        "A frame over IPv4 is 62 octets and whole words: 1002 octets are the nearest to 1 KB. Marks are judged when a frame leaves, by what stands there then. Fixed seed: the same χ² each time.";
    "ROCE-03" live(marking::marked_share), "Marked share in a burst",
        "sai_qos_tests.py DscpEcnSend",
        "The chance grows with the queue: the burst of 2047 (L) goes through a queue that stands just below Kmax, where it is Pmax.";
    "ROCE-04" both(marking::code_points), "ECT codepoints",
        "RFC 3168 §5",
        "A switch marks by the IP header alone, so an acknowledgement that says ECT is marked too, as adapters exist that send it so; ours do not. CNPs are never marked (ROCE-06).";
    "ROCE-05" both(passage::integrity), "CE leaves ICRC valid",
        "Annex A17 ICRC rule",
        "Our switches are bridges and leave TTL alone; the case lowers it between them, as a router would, and sums the checksum by itself. Where scapy is installed it computes ICRC and checksum behind every hop too. On L from NIC to NIC, the mark set at the first switch, TTL left alone.";
    "ROCE-06" both(notices::class_of_cnp), "CNP is never marked and has its class",
        "SONiC snappi rocev2 cnp {ecn_value: non_ect}; NIC vendor default DSCP 48",
        "Ours are sent Not-ECT and left unmarked even if somebody sends them ECT. “Not delayed” is: by no more than the frame on the line, with priorities of equal weight; by nothing if data is paused.";
    "ROCE-07" both(notices::marks_on_answers), "CE on CNP/ACK does not trigger CNP",
        "loop avoidance; Annex A17 §17.9",
        "The rule for ACKs: a mark on one draws nothing and is not counted as a mark on data (np_ecn_marked_roce_packets). Annex A17 speaks of marked packets without exception; a CNP for an ACK would slow down the other direction.";
    "ROCE-08" both(notices::pacing), "CNP pacing",
        "DCQCN (SIGCOMM’15) NP; vendor min_time_between_cnps",
        "A flow is a queue pair: two of one adapter are paced apart. On L N = 20 ms.";
    "ROCE-09" engine(sender::cut), "RP cut",
        "DCQCN SIGCOMM’15 §3; alibaba-edu/High-Precision-Congestion-Control#52",
        "Variants cnp_order = cut-alpha (default, as in the paper) and alpha-cut. Rates are whole bit/s, each step rounded: traces may be 2 bit/s off a reference that does not round. Between t0 and t0 + 60 µs α has fallen once and the rate has recovered one stage.";
    "ROCE-10" engine(sender::alpha_decay), "Alpha decay",
        "DCQCN SIGCOMM’15",
        "Seen from outside: by the share that a CNP k·55 µs later takes off the rate.";
    "ROCE-11" engine(sender::recovery), "Recovery stages",
        "DCQCN SIGCOMM’15",
        "With B = 10 MB and T = 55 µs the rate is back at the line before the byte counter has counted five: hyper increase is shown with B = 50 KB. Of one instant, octets count before the timer; a frame on the line when a CNP comes was sent before it.";
    "ROCE-12" both(sender::first_cnp), "First CNP behaviour is declared",
        "alibaba-edu/High-Precision-Congestion-Control#11",
        "Declared as cut, alpha_timer and first_cnp_rate of scheme dcqcn: profile paper halves at once (α begins at 1); cx and hpcc set α to 1, the rate to first_cnp_rate of what it was (1: keep), and cut at the end of the first 4 µs. On L paper, and cx with first_cnp_rate = 0.25 and a cut after 200 ms, read off the line.";
    "ROCE-13" both(sender::rate_limiter), "Rate limiter conforms",
        "token bucket definition",
        "On E over 200 frames of two sizes: any window there is, from the first bit of one to the last of another. Octets are DA to FCS. On L 6, 3 and 2 s for 1, 10 and 50 %: the mean is taken over whole gaps.";
    "ROCE-14" both(passage::two_flows), "Two-flow fairness",
        "DCQCN SIGCOMM’15; seed 004",
        "On E over 10 to 60 ms, with the paper's numbers on the line they are for: 40 Gb/s, frames of 1 KiB payload. The second sender joins after 0.5 ms. On L 8 ms of it, slowed down 4000 times, the second half judged; both begin at once.";
    "ROCE-15" both(notices::bad_icrc), "Bad ICRC at receiver",
        "Annex A17; rxe_icrc.c";
    "ROCE-16" both(notices::not_roce), "Wrong UDP port / short UDP length / fragmented IP",
        "Annex A17",
        "What is no RoCE passes a switch as plain IP and ends in a NIC as not_roce; what contradicts itself ends at the first port that reads it.";
}

/// The last port of the switches here: the way out.
const OUT: u8 = 4;

/// The table `[scheme]` of DCQCN with these parameters, a line each.
fn dcqcn(params: &str) -> String {
    format!("[scheme]\nkind = \"dcqcn\"\n{params}\n")
}

/// A switch of four ports with room for everything, under DCQCN with these parameters.
fn bench_of_switch(params: &str) -> Result<Bench, Failure> {
    let rest = roomy("") + &dcqcn(params);
    Stage::new(Level::Engine, &star(OUT, "1 s", "", &rest), "s0")?.bench()
}
