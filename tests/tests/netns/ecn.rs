//! ECN marks of the switch reach the kernel's TCP and reduce its rate without loss.

use super::attach::{Bench, assert_clean, has};
use super::laboratory::{alone, eventually};
use super::permitted;
use capture::reader::CaptureReader;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use std::fs;
use std::io::BufReader;
use std::path::Path;
use std::process::{Child, Stdio};

/// The result of a transfer, from iperf3's sender.
#[derive(Debug)]
struct Transfer {
    /// Largest congestion window, in octets.
    window: u64,
    resent: u64,
    rate: f64,
}

/// TCP flags ECE and CWR. Source: RFC 3168, 6.1.
const ECE: u8 = 0x40;
const CWR: u8 = 0x80;

#[test]
fn ecn_marks_of_the_switch_slow_the_kernels_tcp() {
    if !permitted() || !["ping", "iperf3", "tcpdump"].iter().all(|tool| has(tool)) {
        return;
    }
    let _alone = alone();
    let mut bench = Bench::new().with_addresses();
    let out = bench.folder.path().join("out");
    let words = ["--set", "run.duration=\"14 s\"", "--out", &out.display().to_string()];
    bench.start("tests/tests/netns/ecn.toml", &words);
    let mut server = serve(&bench);
    say_ecn(&bench, 0);
    let without = transfer(&bench);
    say_ecn(&bench, 1);
    let seen = bench.folder.path().join("ecn.pcap");
    let mut witness = watch(&bench, &seen);
    let before = marks_received(&bench);
    let with = transfer(&bench);
    let received = marks_received(&bench) - before;
    for child in [&mut witness, &mut server] {
        kill(Pid::from_raw(child.id() as i32), Signal::SIGINT)
            .expect("the test may signal the process");
        child.wait().expect("the process is a child of the test");
    }
    let run = bench.finish();
    let (echoed, answered) = echoes(&seen);
    let made = marks_made(&out);
    eprintln!(
        "without {without:?}\nwith {with:?}\n{made} marks made, {received} received, {echoed} segments with ECE, {answered} with CWR"
    );
    assert!(made > 0 && received == made, "{received} of {made} marks reached the far kernel");
    assert!(echoed > 0, "the receiver's TCP echoes ECE");
    assert!(answered > 0, "the sender's TCP reduces its window");
    assert_eq!(with.resent, 0, "nothing was lost");
    assert!(with.rate > 0.0 && without.rate > 0.0);
    // Both transfers pass the same queue. The window beyond that of an empty path is the queue's length.
    assert!(with.window * 2 < without.window, "{with:?} with ECN, {without:?} without");
    assert_clean(&run, true);
}

fn serve(bench: &Bench) -> Child {
    let server = bench.command(1, "iperf3 -s").stdout(Stdio::null()).spawn().expect("iperf3");
    let listens = eventually(5.0, || {
        bench.output(1, "ss -Hltn sport = :5201").stdout.windows(4).any(|octets| octets == b"5201")
    });
    assert!(listens, "the iperf3 server did not listen");
    server
}

/// Sets the use of ECN by both hosts' TCP (sysctl `tcp_ecn`). A tail loss probe (RFC 8985, 7) would repeat a segment that is
/// not lost when the host is late.
fn say_ecn(bench: &Bench, ecn: u8) {
    for host in 0..2 {
        bench.succeeds(host, &format!("sysctl -qw net.ipv4.tcp_ecn={ecn}"));
        bench.succeeds(host, "sysctl -qw net.ipv4.tcp_early_retrans=0");
    }
}

/// Runs a transfer with Reno, which every kernel has and which grows its window until a mark or the receiver's limit.
fn transfer(bench: &Bench) -> Transfer {
    let text = bench.succeeds(0, "iperf3 -J -t 4 -C reno -c 198.18.0.2");
    let said: Value = serde_json::from_str(&text).expect("iperf3 -J prints JSON");
    let sender = &said["end"]["streams"][0]["sender"];
    Transfer {
        window: sender["max_snd_cwnd"].as_u64().expect("a number"),
        resent: sender["retransmits"].as_u64().expect("a number"),
        rate: said["end"]["sum_received"]["bits_per_second"].as_f64().expect("a number"),
    }
}

/// Frames that the switch marked at the receiving host's port.
fn marks_made(out: &Path) -> u64 {
    let table = fs::read_to_string(out.join("ports.csv")).expect("a table");
    let mut lines = table.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let names = lines.next().expect("the table has a header row");
    let column = |name: &str| names.iter().position(|own| *own == name).expect("a column");
    let (port, marks) = (column("port"), column("marks"));
    let own = lines.filter(|cells| cells[port] == "s1:2");
    own.map(|cells| cells[marks].parse::<u64>().expect("a number")).sum()
}

/// CE-marked packets that the receiving host's IP layer counted.
fn marks_received(bench: &Bench) -> u64 {
    let table = bench.succeeds(1, "cat /proc/net/netstat");
    let rows: Vec<&str> = table.lines().filter(|line| line.starts_with("IpExt:")).collect();
    let [names, values] = rows[..] else { panic!("/proc/net/netstat has no IpExt: {table}") };
    let mut columns = names.split_whitespace().zip(values.split_whitespace());
    let (_, value) =
        columns.find(|(name, _)| *name == "InCEPkts").expect("the kernel counts InCEPkts");
    value.parse().expect("a number")
}

/// Starts a capture of segments with ECE or CWR, without SYN segments.
fn watch(bench: &Bench, file: &Path) -> Child {
    let line = format!("tcpdump -i eth0 -U -s 100 -w {} ", file.display());
    let mut command = bench.command(0, &line);
    command.arg("tcp[13] & 0xc0 != 0 and tcp[13] & 2 = 0").stderr(Stdio::null());
    let witness = command.spawn().expect("tcpdump starts");
    let ready = eventually(5.0, || fs::metadata(file).is_ok_and(|file| file.len() >= 24));
    assert!(ready, "tcpdump did not start to capture");
    witness
}

/// The numbers of segments with ECE and with CWR in a capture of IPv4 without options.
fn echoes(file: &Path) -> (usize, usize) {
    const FLAGS: usize = 14 + 20 + 13;
    let opened = fs::File::open(file).expect("the capture");
    let reader = CaptureReader::new(BufReader::new(opened)).expect("a capture");
    let flags: Vec<u8> = reader
        .map_while(Result::ok)
        .filter_map(|captured| captured.frame.octets.get(FLAGS).copied())
        .collect();
    let with = |flag: u8| flags.iter().filter(|flags| **flags & flag != 0).count();
    (with(ECE), with(CWR))
}
