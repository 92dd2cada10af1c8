//! Interfaces attached to ports of a switch: the kernel's TCP/IP at both far ends, and captures
//! replayed by tcpreplay and recorded by tcpdump.

use super::laboratory::{alone, eventually, in_repository, pausebed};
use super::permitted;
use emulation::cable::interface::{PairEnd, address_of};
use emulation::cable::namespace::{Namespace, within};
use emulation::cable::packet_socket::PacketSocket;
use emulation::cable::shim::SendingEnd;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use std::fs;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use tempfile::TempDir;

/// MTU of the hosts' interfaces, in octets: jumbo frames.
const MTU: u32 = 9_000;
/// The unit of times in `/proc`, on every architecture.
const TICKS_A_SECOND: f64 = 100.0;
/// The scenario of a switch with two attached ports.
const TWO: &str = "tests/tests/netns/attach.toml";

/// Two hosts (namespaces 0 and 1), each with an `eth0`, and a switch between `a` and `b` in namespace 2.
pub struct Bench {
    namespaces: Vec<Namespace>,
    switch: Option<Child>,
    /// Folder for files of the test.
    pub folder: TempDir,
    /// Of a switch that has ended, with its daemons.
    pub cpu_seconds: f64,
    /// True if the hosts have VLAN 5, which some kernels do not support.
    has_vlan: bool,
}

impl Bench {
    /// Creates the namespaces and their cables.
    pub fn new() -> Bench {
        let namespaces = Namespace::make(3).expect("three namespaces");
        for (host, port) in ["a", "b"].into_iter().enumerate() {
            let end = |name, of: usize, end| PairEnd {
                name,
                address: address_of(host as u32, end),
                namespace: namespaces[of].as_fd(),
            };
            let [near, far] = [end("eth0", host, SendingEnd::A), end(port, 2, SendingEnd::B)];
            namespaces[host].interfaces.make_pair(near, far, MTU).expect("a pair");
            namespaces[2].interfaces.switch_on(port, "a port of a test").expect("one end");
        }
        let folder = tempfile::tempdir().expect("a folder");
        let bench = Bench { namespaces, switch: None, folder, cpu_seconds: 0.0, has_vlan: false };
        for host in 0..2 {
            bench.namespaces[host]
                .interfaces
                .switch_on("eth0", "a host of a test")
                .expect("the interface exists");
        }
        bench
    }

    /// Gives both hosts addresses of both versions of IP, and VLAN 5.
    pub fn with_addresses(mut self) -> Bench {
        for host in 0..2 {
            let number = host + 1;
            let lines = [
                "ip link set lo up".to_owned(),
                "sysctl -qw net.ipv6.conf.all.disable_ipv6=0 net.ipv6.conf.eth0.disable_ipv6=0"
                    .to_owned(),
                format!("ip addr add 198.18.0.{number}/24 dev eth0"),
                format!("ip addr add 2001:db8::{number}/64 dev eth0 nodad"),
            ];
            for line in lines {
                self.succeeds(host, &line);
            }
            let vlan = "ip link add link eth0 name eth0.5 type vlan id 5";
            self.has_vlan = self.output(host, vlan).status.success();
            if self.has_vlan {
                self.succeeds(host, &format!("ip addr add 198.18.5.{number}/24 dev eth0.5"));
                self.succeeds(host, "ip link set eth0.5 up");
            } else {
                skip::because!("CONFIG_VLAN_8021Q: no interface of VLAN 5");
            }
        }
        self
    }

    /// The file of namespace `of`.
    pub fn path(&self, of: usize) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.namespaces[of].descriptor())
    }

    /// A command line that runs in namespace `of`.
    pub fn command(&self, of: usize, line: &str) -> Command {
        let path = self.path(of);
        let mut command = Command::new("nsenter");
        command.arg(format!("--net={path}")).args(line.split_whitespace());
        command.stdin(Stdio::null());
        command
    }

    /// Runs a command line in namespace `of` to its end.
    pub fn output(&self, of: usize, line: &str) -> Output {
        self.command(of, line).output().expect("nsenter, of util-linux, is installed")
    }

    /// Standard output of a command line in namespace `of`, which must succeed.
    pub fn succeeds(&self, of: usize, line: &str) -> String {
        let output = self.output(of, line);
        let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        assert!(output.status.success(), "{line}: {said}");
        said
    }

    /// Starts the switch of a scenario with further arguments and waits until its ports are open.
    pub fn start(&mut self, scenario: &str, words: &[&str]) {
        for name in ["tmp", "run"] {
            fs::create_dir_all(self.folder.path().join(name)).expect("a folder");
        }
        let file_of = |name: &str| fs::File::create(self.folder.path().join(name)).expect("a file");
        let (talk, data) = (file_of("stderr"), file_of("stdout"));
        let mut command = self.command(2, "");
        command
            .arg(pausebed())
            .arg("run")
            .arg(in_repository(scenario))
            .args(["--no-report", "--json"])
            .args(words)
            .env("TMPDIR", self.folder.path().join("tmp"))
            .env("XDG_RUNTIME_DIR", self.folder.path().join("run"))
            .stdout(data)
            .stderr(talk);
        self.switch = Some(command.spawn().expect("the program starts"));
        // The first reply shows that both ports forward; the switch learns addresses from it.
        let answers =
            eventually(20.0, || self.output(0, "ping -c 1 -W 1 198.18.0.2").status.success());
        let talk = fs::read_to_string(self.folder.path().join("stderr")).unwrap_or_default();
        assert!(answers, "no answer through the switch\n{talk}");
    }

    /// Kills the switch process.
    fn kill(&mut self) {
        let mut switch = self.switch.take().expect("the switch was started");
        switch.kill().expect("the test may signal the process");
        switch.wait().expect("the process is a child of the test");
    }

    /// Waits for the end of the run and returns its JSON.
    pub fn finish(&mut self) -> Value {
        let mut switch = self.switch.take().expect("the switch was started");
        let mut ended = false;
        // A process that has ended keeps its times until it is waited for.
        let account = || {
            let stat = fs::read_to_string(format!("/proc/{}/stat", switch.id())).expect("a child");
            let fields = stat.rsplit_once(')').map(|(_, fields)| fields).unwrap_or_default();
            let fields: Vec<&str> = fields.split_whitespace().collect();
            ended = fields[0] == "Z";
            let ticks = fields[11..15].iter().filter_map(|field| field.parse::<f64>().ok());
            self.cpu_seconds = ticks.sum::<f64>() / TICKS_A_SECOND;
            ended
        };
        if !eventually(60.0, account) {
            let _ = kill(Pid::from_raw(switch.id() as i32), Signal::SIGKILL);
        }
        let status = switch.wait().expect("the process is a child of the test");
        let talk = fs::read_to_string(self.folder.path().join("stderr")).unwrap_or_default();
        assert!(ended && status.success(), "{status}: {talk}");
        let text = fs::read_to_string(self.folder.path().join("stdout")).expect("a file");
        let run: Value = serde_json::from_str(&text).expect("JSON");
        run.get(0).cloned().unwrap_or(run)
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        if let Some(switch) = &mut self.switch {
            // The process still runs only after a failed test.
            let _ = switch.kill();
            let _ = switch.wait();
        }
    }
}

/// True if the tool is installed; says why otherwise.
pub fn has(tool: &str) -> bool {
    let found = Command::new("sh").args(["-c", &format!("command -v {tool}")]).output();
    let found = found.is_ok_and(|output| output.status.success());
    if !found {
        skip::because!("{tool} is not installed");
    }
    found
}

/// Asserts that the run passed, every frame left or is counted, no frame was lost, and lateness is reported where
/// ports have rates.
pub fn assert_clean(run: &Value, has_rates: bool) {
    assert_eq!(run["verdict"], "pass", "{run:#}");
    assert_eq!(run["dilation"], 1);
    assert_eq!(run["fidelity"]["transport_lost"], 0);
    let late = &run["fidelity"]["lateness_p99_frames"];
    assert!(if has_rates { late.is_number() } else { late.is_null() }, "{late}");
    assert_eq!(run["cables"]["attached"], 2);
    assert_eq!(run["refused"]["unfinished"], 0, "{:#}", run["refused"]);
    let dropped = run["conservation"]["dropped"].as_object().expect("by reason");
    let dropped: u64 = dropped.values().filter_map(Value::as_u64).sum();
    assert_eq!(dropped, 0, "{:#}", run["conservation"]);
}

/// Two benches at once: a switch that sends by a ring of AF_XDP, and one that sends by its socket.
pub fn both_ways_to_send(test: impl Fn(&str) + Sync) {
    std::thread::scope(|scope| {
        scope.spawn(|| test("ring"));
        test("socket");
    });
}

#[test]
fn two_kernels_ping_each_other_through_a_switch_alone() {
    if !permitted() || !has("ping") {
        return;
    }
    both_ways_to_send(|send| {
        let mut bench = Bench::new().with_addresses();
        let port = |number, iface| format!("{{port='s1:{number}',iface='{iface}',send='{send}'}}");
        let attach = format!("lab.attach=[{},{}]", port(1, "a"), port(2, "b"));
        bench.start(TWO, &["--set", "run.duration=\"6 s\"", "--set", &attach]);
        let targets = ["198.18.0.2", "-6 2001:db8::2", "-s 8000 -M do 198.18.0.2"];
        for target in targets.into_iter().chain(bench.has_vlan.then_some("198.18.5.2")) {
            let said = bench.succeeds(0, &format!("ping -c 5 -i 0.05 -W 2 {target}"));
            assert!(said.contains(" 0% packet loss"), "{target}: {said}");
        }
        assert_clean(&bench.finish(), false);
    });
}

#[test]
fn a_killed_switch_leaves_no_send_ring_and_no_changed_interface() {
    if !permitted() || !has("ping") {
        return;
    }
    let mut bench = Bench::new().with_addresses();
    let path = PathBuf::from(format!("/proc/self/fd/{}", bench.namespaces[2].descriptor()));
    let ring_on = |name: &str| {
        let give = || PacketSocket::open(name)?.give_send_ring();
        within(Some(&path), give).map_err(|error| error.raw_os_error())
    };
    if let Err(error) = ring_on("a") {
        skip::because!("CONFIG_XDP_SOCKETS: no AF_XDP send ring: {error:?}");
        return;
    }
    let settings = |bench: &Bench| has("ethtool").then(|| bench.succeeds(0, "ethtool -k eth0"));
    let before = settings(&bench);
    // The kernel removes a ring shortly after its last owner has ended.
    let is_free = |name: &str| eventually(10.0, || ring_on(name).is_ok());
    assert!(is_free("a"), "the ring of this test is removed");
    bench.start(TWO, &[]);
    for name in ["a", "b"] {
        assert_eq!(ring_on(name), Err(Some(libc::EBUSY)), "the switch owns the ring of {name}");
        let shown = bench.succeeds(2, &format!("ip -d link show dev {name}"));
        assert!(!shown.contains("xdp"), "no program is attached: {shown}");
    }
    assert_eq!(settings(&bench), before, "the offload settings of the host are unchanged");
    bench.kill();
    assert!(is_free("a") && is_free("b"), "the rings of a killed switch are removed");
}

#[test]
fn bulk_tcp_over_ipv4_and_ipv6_passes_without_loss() {
    if !permitted() || !has("ping") || !has("iperf3") {
        return;
    }
    let _alone = alone();
    let mut bench = Bench::new().with_addresses();
    bench.start(TWO, &["--set", "run.duration=\"12 s\""]);
    let mut server = bench.command(1, "iperf3 -s").stdout(Stdio::null()).spawn().expect("iperf3");
    let listens = eventually(5.0, || {
        bench.output(1, "ss -Hltn sport = :5201").stdout.windows(4).any(|octets| octets == b"5201")
    });
    let mut rates = Vec::new();
    let targets = ["198.18.0.2", "2001:db8::2", "198.18.0.2 -M 1400 -R"];
    for target in targets.into_iter().chain(bench.has_vlan.then_some("198.18.5.2")) {
        let output = bench.output(0, &format!("iperf3 -J -t 1 -c {target}"));
        let said: Value = serde_json::from_slice(&output.stdout).expect("iperf3 -J prints JSON");
        let rate = said["end"]["sum_received"]["bits_per_second"].as_f64().unwrap_or(0.0);
        rates.push((target, rate, said["end"]["sum_sent"]["retransmits"].as_u64()));
    }
    server.kill().expect("the test may signal the process");
    server.wait().expect("the process is a child of the test");
    assert!(listens, "the iperf3 server did not listen");
    let run = bench.finish();
    for (target, rate, retransmits) in rates {
        eprintln!("{target}: {:.3} Gb/s, {retransmits:?} segments sent again", rate / 1e9);
        // A sender may retransmit segments that are only late on a busy host; the switch's frame balance shows losses.
        assert!(rate > 0.0, "{target}: no data was transferred");
    }
    let came = run["measures"]["came"].as_f64().expect("attached ports are measured");
    assert!(came > 0.0, "no frame entered by the attached ports");
    assert_clean(&run, false);
}

/// tcpreplay and tcpdump run on the hosts; the switch has no configuration for them.
#[test]
fn a_replayed_capture_leaves_by_another_port_unchanged() {
    let tools = ["tcpreplay", "tcpdump", "ping"];
    if !permitted() || !tools.iter().all(|tool| has(tool)) {
        return;
    }
    let Some(capture) = rocev2_capture() else { return };
    let mut bench = Bench::new();
    for (host, number) in [(0, 1), (1, 2)] {
        bench.succeeds(host, &format!("ip addr add 198.18.0.{number}/24 dev eth0"));
    }
    // Both ends of the conversation enter by one port, so the switch floods every frame.
    let words = [
        "--set",
        "run.duration=\"8 s\"",
        "--set",
        "fabric.switch.table={learned_max=0,flood_gap=\"0 us\"}",
    ];
    bench.start(TWO, &words);
    let seen = bench.folder.path().join("seen.pcap");
    let line = format!("tcpdump -i eth0 -U -Q in -w {} udp port 4791", seen.display());
    let mut witness =
        bench.command(1, &line).stderr(Stdio::null()).spawn().expect("tcpdump starts");
    let ready = eventually(5.0, || fs::metadata(&seen).is_ok_and(|file| file.len() >= 24));
    let said = bench.succeeds(0, &format!("tcpreplay -q -p 2000 -i eth0 {}", capture.display()));
    let sent = frames_of(&capture);
    let complete = eventually(5.0, || frames_of(&seen).len() >= sent.len());
    kill(Pid::from_raw(witness.id() as i32), Signal::SIGINT)
        .expect("the test may signal the process");
    witness.wait().expect("the process is a child of the test");
    let seen = frames_of(&seen);
    assert!(ready && complete, "{} of {} frames: {said}", seen.len(), sent.len());
    assert_eq!(seen, sent);
    assert_clean(&bench.finish(), false);
}

/// A third-party capture with RoCEv2 only; says why and returns `None` without captures.
fn rocev2_capture() -> Option<PathBuf> {
    let captures = std::env::var_os("PAUSEBED_CAPTURES").map(PathBuf::from);
    let captures = captures.unwrap_or_else(|| in_repository("../shared/captures"));
    let file = captures.join("rocev2");
    let mut all: Vec<_> =
        fs::read_dir(&file).into_iter().flatten().flatten().map(|e| e.path()).collect();
    all.sort();
    let found = all.into_iter().find(|file| {
        file.extension().is_some_and(|ending| ending == "pcap") && !frames_of(file).is_empty()
    });
    if found.is_none() {
        skip::because!("no captures in {}", file.display());
    }
    found
}

/// The RoCEv2 frames of a capture, in order.
fn frames_of(file: &std::path::Path) -> Vec<Vec<u8>> {
    use capture::reader::CaptureReader;
    let Ok(opened) = fs::File::open(file) else { return Vec::new() };
    let Ok(reader) = CaptureReader::new(std::io::BufReader::new(opened)) else { return Vec::new() };
    // A capture in progress can end in the middle of a frame.
    let frames = reader.map_while(Result::ok).map(|captured| captured.frame.octets.to_vec());
    let is_rocev2 = |octets: &Vec<u8>| {
        const PORT: [u8; 2] = 4791u16.to_be_bytes();
        octets.get(12..14) == Some(&[0x08, 0x00])
            && octets.get(23) == Some(&17)
            && [34..36, 36..38].into_iter().any(|at| octets.get(at) == Some(&PORT))
    };
    frames.filter(is_rocev2).collect()
}
