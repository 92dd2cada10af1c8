//! Attached interfaces that go down, lose their carrier, disappear and return under a running switch.

use super::attach::{Bench, both_ways_to_send, has};
use super::laboratory::eventually;
use super::permitted;
use emulation::cable::interface::address_of;
use emulation::cable::shim::SendingEnd;

/// The scenario of a switch with two attached ports.
const TWO: &str = "tests/tests/netns/attach.toml";

fn ping(bench: &Bench) -> bool {
    bench.output(1, "ping -c 1 -W 1 198.18.0.1").status.success()
}

/// Creates `a` of the switch and `eth0` of host 0 again, as the bench has created them.
fn make_again(bench: &Bench) {
    let mac = |end| address_of(0, end).map(|octet| format!("{octet:02x}")).join(":");
    let (near, far) = (mac(SendingEnd::A), mac(SendingEnd::B));
    let host = bench.path(0);
    let pair = format!("ip link add name a address {far} type veth peer name eth0 address {near}");
    bench.succeeds(2, &format!("{pair} netns {host}"));
    for line in ["ip link set eth0 up", "ip addr add 198.18.0.1/24 dev eth0"] {
        bench.succeeds(0, line);
    }
    bench.succeeds(2, "ip link set dev a up");
}

#[test]
fn a_port_survives_all_that_happens_to_its_interface_without_a_busy_loop() {
    if !permitted() || !has("ping") || !has("ip") {
        return;
    }
    both_ways_to_send(|send| {
        let mut bench = Bench::new().with_addresses();
        let port = |number, iface| format!("{{port='s1:{number}',iface='{iface}',send='{send}'}}");
        let attach = format!("lab.attach=[{},{}]", port(1, "a"), port(2, "b"));
        bench.start(TWO, &["--set", "run.duration=\"14 s\"", "--set", &attach]);
        for (of, down, up) in [
            (2, "ip link set dev a down", "ip link set dev a up"),
            (0, "ip link set eth0 down", "ip link set eth0 up"),
        ] {
            bench.succeeds(of, down);
            assert!(!ping(&bench), "{down}");
            bench.succeeds(of, up);
            assert!(eventually(3.0, || ping(&bench)), "{up}");
        }
        bench.succeeds(2, "ip link del dev a");
        assert!(!ping(&bench), "the interface is gone");
        make_again(&bench);
        assert!(eventually(3.0, || ping(&bench)), "the interface is back");
        let run = bench.finish();
        assert_eq!(run["verdict"], "pass", "{run:#}");
        assert_eq!(run["fidelity"]["transport_lost"], 0, "{run:#}");
        let dropped = run["conservation"]["dropped"]["interface_down"].as_u64();
        assert!(dropped.is_some_and(|dropped| dropped > 0), "{:#}", run["conservation"]);
        assert!(bench.cpu_seconds < 6.0, "{} s of CPU time in 14 s", bench.cpu_seconds);
    });
}

#[test]
fn an_interface_belongs_to_one_lab_and_surprises_are_named() {
    if !permitted() || !has("ping") || !has("ip") {
        return;
    }
    let mut bench = Bench::new().with_addresses();
    bench.succeeds(2, "ip link set dev a mtu 1500");
    bench.succeeds(2, "ip addr add 198.18.9.9/24 dev b");
    bench.start(TWO, &["--set", "run.duration=\"8 s\""]);
    let talk = std::fs::read_to_string(bench.folder.path().join("stderr")).expect("a file");
    assert!(talk.contains("interface a at s1:1 has an MTU of 1500 octets"), "{talk}");
    assert!(talk.contains("interface b at s1:2 has the address 198.18.9.9/24"), "{talk}");
    let program = super::laboratory::pausebed().display().to_string();
    let scenario = super::laboratory::in_repository(TWO).display().to_string();
    let second = bench.output(2, &format!("{program} run {scenario} --no-report --json"));
    let said = String::from_utf8_lossy(&second.stderr);
    assert!(!second.status.success(), "two labs share an interface");
    assert!(said.contains("interface a is attached to lab attach-two already"), "{said}");
    bench.finish();
}
