//! The switch's marks reach the kernel's TCP and slow it, without a loss.

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

/// How a transfer went, as its sender saw it.
#[derive(Debug)]
struct Transfer {
    /// Octets of the largest congestion window.
    window: u64,
    resent: u64,
    rate: f64,
}

/// Flags of TCP that tell of congestion. Source: RFC 3168, 6.1.
const ECE: u8 = 0x40;
const CWR: u8 = 0x80;

#[test]
fn marks_of_the_switch_reach_the_kernels_tcp_and_slow_it() {
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
        kill(Pid::from_raw(child.id() as i32), Signal::SIGINT).expect("it is ours");
        child.wait().expect("it is ours");
    }
    let run = bench.finish();
    let (echoed, answered) = echoes(&seen);
    let made = marks_made(&out);
    eprintln!(
        "without {without:?}\nwith {with:?}\n{made} marks made, {received} received, {echoed} segments with ECE, {answered} with CWR"
    );
    assert!(made > 0 && received == made, "{received} of {made} marks reached the far kernel");
    assert!(echoed > 0, "the far TCP says so");
    assert!(answered > 0, "the near TCP has made its window smaller");
    assert_eq!(with.resent, 0, "nothing was lost");
    assert!(with.rate > 0.0 && without.rate > 0.0);
    // Both met the same queue: what stands in it is all that the window has beyond the empty line's.
    assert!(with.window * 2 < without.window, "{with:?} beside {without:?}");
    assert_clean(&run);
}

fn serve(bench: &Bench) -> Child {
    let server = bench.command(1, "iperf3 -s").stdout(Stdio::null()).spawn().expect("iperf3");
    let listens = eventually(5.0, || {
        bench.output(1, "ss -Hltn sport = :5201").stdout.windows(4).any(|octets| octets == b"5201")
    });
    assert!(listens, "the server of iperf3 never listened");
    server
}

/// Whether both hosts' TCP asks for marks.
fn say_ecn(bench: &Bench, ecn: u8) {
    for host in 0..2 {
        bench.succeeds(host, &format!("sysctl -qw net.ipv4.tcp_ecn={ecn}"));
    }
}

/// Reno is in every kernel, and grows its window until it is told, or at the receiver's limit.
fn transfer(bench: &Bench) -> Transfer {
    let text = bench.succeeds(0, "iperf3 -J -t 4 -C reno -c 198.18.0.2");
    let said: Value = serde_json::from_str(&text).expect("iperf3 speaks JSON");
    let sender = &said["end"]["streams"][0]["sender"];
    Transfer {
        window: sender["max_snd_cwnd"].as_u64().expect("a number"),
        resent: sender["retransmits"].as_u64().expect("a number"),
        rate: said["end"]["sum_received"]["bits_per_second"].as_f64().expect("a number"),
    }
}

/// Frames that the switch has marked at the far host's port.
fn marks_made(out: &Path) -> u64 {
    let table = fs::read_to_string(out.join("ports.csv")).expect("a table");
    let mut lines = table.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let names = lines.next().expect("a head");
    let column = |name: &str| names.iter().position(|own| *own == name).expect("a column");
    let (port, marks) = (column("port"), column("marks"));
    let own = lines.filter(|cells| cells[port] == "s1:2");
    own.map(|cells| cells[marks].parse::<u64>().expect("a number")).sum()
}

/// Packets with CE that the far host's IP has received.
fn marks_received(bench: &Bench) -> u64 {
    let table = bench.succeeds(1, "cat /proc/net/netstat");
    let rows: Vec<&str> = table.lines().filter(|line| line.starts_with("IpExt:")).collect();
    let [names, values] = rows[..] else { panic!("no IpExt in {table}") };
    let mut columns = names.split_whitespace().zip(values.split_whitespace());
    let (_, value) = columns.find(|(name, _)| *name == "InCEPkts").expect("every kernel counts it");
    value.parse().expect("a number")
}

/// Writes segments that tell of congestion, but for those that begin a connection.
fn watch(bench: &Bench, file: &Path) -> Child {
    let line = format!("tcpdump -i eth0 -U -s 100 -w {} ", file.display());
    let mut command = bench.command(0, &line);
    command.arg("tcp[13] & 0xc0 != 0 and tcp[13] & 2 = 0").stderr(Stdio::null());
    let witness = command.spawn().expect("tcpdump starts");
    let ready = eventually(5.0, || fs::metadata(file).is_ok_and(|file| file.len() >= 24));
    assert!(ready, "tcpdump never began");
    witness
}

/// Segments with ECE, and with CWR, in a capture of IPv4 without options.
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
