//! What `[[host]]` says, and what is refused.

use crate::Scenario;
use crate::host::{ExpectedExit, HostKind};
use crate::measure::At;
use crate::render::render;
use emulation::wiring::SocketPair;
use proto::units::{BitRate, Bytes};
use proto::wire::ethernet::MacAddress;
use std::net::IpAddr;
use std::path::PathBuf;

/// A switch with hosts, on a backend.
fn scenario(backend: &str, hosts: &str) -> Result<Scenario, String> {
    let text = format!(
        r#"
        schema = 1
        name = "hosts"
        [run]
        duration = "1 s"
        backend = "{backend}"
        [fabric]
        technology = "ethernet"
        nodes = [{{ name = "s1", kind = "switch" }}, {{ name = "h0", kind = "nic" }}]
        links = [{{ a = "h0:1", b = "s1:1" }}]
        link = {{ pause = "pfc" }}
        switch = {{ buffer = "64 MB", headroom = "2 MB" }}
        {hosts}
        "#
    );
    Scenario::parse(&text, &[]).map_err(|problems| problems.in_file("hosts.toml"))
}

const ONE: &str = r#"
    [[host]]
    name = "v1"
    port = "s1:4"
    address = ["198.18.1.1/16", "2001:db8::11/64"]
    rate = "200 Mbps"
    run = "rping -s -a '198.18.1.1' -C 100"
    start = "10 ms"
"#;

/// A host with these keys instead of those of [`ONE`].
fn with(keys: &str) -> String {
    format!("[[host]]\nname = \"v2\"\nport = \"s1:5\"\n{keys}\n")
}

fn refused(backend: &str, hosts: &str) -> String {
    scenario(backend, hosts).expect_err("it is refused")
}

#[test]
fn a_machine_is_a_host_behind_a_pair_of_sockets() {
    let scenario = scenario("udp", ONE).expect("it is valid");
    assert_eq!(scenario.warnings, []);
    let lab = render(&scenario);
    let host = &lab.fabric.hosts[0];
    assert_eq!((host.name.as_str(), host.kind, host.mtu), ("v1", HostKind::Vm, Bytes::new(9_000)));
    assert_eq!(host.memory, None);
    let address: IpAddr = "2001:db8::11".parse().expect("an address");
    assert_eq!(host.addresses[1], (address, 64));
    assert_eq!(host.mac.octets()[..2], [0x02, 0x68]);
    let command = host.command.as_ref().expect("it runs something");
    assert_eq!(command.words, ["rping", "-s", "-a", "198.18.1.1", "-C", "100"]);
    assert_eq!((command.start.as_ps(), command.exit), (10_000_000_000, ExpectedExit::Code(0)));
    let attached = &lab.fabric.wiring.attached[0];
    assert_eq!((attached.interface.as_str(), attached.is_host), ("v1", true));
    let [local, remote] = ["v1.lab", "v1.peer"].map(PathBuf::from);
    assert_eq!(attached.socket, Some(SocketPair::Unix { local, remote }));
    assert_eq!(lab.switches[0].ports[3].link.rate, BitRate::mbps(200));
    let drawn = scenario.fabric.drawn_topology();
    assert_eq!(drawn.nodes.last().map(|node| node.name.as_str()), Some("v1"));
}

#[test]
fn programs_are_behind_an_interface_that_the_lab_makes() {
    let keys = "kind = \"netns\"\naddress = \"10.0.0.1/24\"\nmtu = \"1500 B\"\nsend = \"socket\"";
    let namespace =
        with(&format!("{keys}\nmac = \"02:aa:00:00:00:01\"\nrun = \"a\"\nexit = \"any\""));
    let scenario = scenario("netns", &namespace).expect("it is valid");
    assert_eq!(scenario.warnings, []);
    let attached = &render(&scenario).fabric.wiring.attached[0];
    assert!(attached.is_host && attached.socket.is_none());
    let host = &scenario.fabric.hosts[0];
    assert_eq!(host.mac, MacAddress::from_number(0x02aa_0000_0001));
    assert_eq!(host.command.as_ref().map(|command| command.exit), Some(ExpectedExit::Any));
    let container = with("kind = \"container\"\naddress = \"10.0.0.1/24\"\nimage = \"alpine:3\"");
    let scenario = self::scenario("netns", &container).expect("it is valid");
    assert_eq!(scenario.fabric.hosts[0].image.as_deref(), Some("alpine:3"));
}

#[test]
fn backends_and_dilations_that_hosts_cannot_have_are_refused() {
    for backend in ["virtual", "compose", "remote"] {
        let text = refused(backend, ONE);
        assert!(text.contains("has no hosts of the kind vm"), "{text}");
    }
    let text = refused("udp", &with("kind = \"netns\"\naddress = \"10.0.0.1/24\""));
    assert!(text.contains("has no hosts of the kind netns"), "{text}");
    let slow = ["run.dilate=10".to_owned()];
    let text = scenario("udp", ONE).expect("it is valid").text;
    let text = Scenario::parse(&text, &slow).expect_err("it is refused").in_file("x");
    assert!(text.contains("hosts run in real time"), "{text}");
}

#[test]
fn names_and_addresses_are_unique_and_usable() {
    let address = |address: &str| with(&format!("address = {address}"));
    let bad = [
        "198.18.1.2",
        "198.18.1.2/33",
        "0.0.0.0/8",
        "127.0.0.1/8",
        "224.0.0.1/4",
        "10.0.0.0/24",
        "10.0.0.255/24",
        "::1/64",
        "ff02::1/64",
        "2001:db8::2/129",
        "v1/24",
        "::ffff:10.0.0.1/96",
    ];
    for bad in bad {
        let text = refused("udp", &address(&format!("{bad:?}")));
        assert!(text.contains("address"), "{bad}: {text}");
    }
    let text = refused("udp", &address("[]"));
    assert!(text.contains("0 addresses"), "{text}");
    let text = refused("udp", &address("[\"10.0.0.1/8\", \"10.0.0.1/16\"]"));
    assert!(text.contains("twice"), "{text}");
    let text = refused("udp", &format!("{ONE}{}", address("\"198.18.1.1/24\"")));
    assert!(text.contains("an address of host v1"), "{text}");
    for of_h0 in ["198.18.0.1/16", "2001:db8::1/64"] {
        let number = scenario("udp", ONE).expect("it is valid").fabric.topology.nodes[0].lid;
        assert_eq!(number.get(), 1);
        let text = refused("udp", &address(&format!("{of_h0:?}")));
        assert!(text.contains("is the address of h0"), "{text}");
    }
    for name in ["", "-v", "a,b", "a/b", "a b", "../a", "s1", "v\u{e9}", &"v".repeat(25)] {
        let host = ONE.replace("\"v1\"", &format!("{name:?}"));
        let text = refused("udp", &host);
        assert!(text.contains("name"), "{name:?}: {text}");
    }
    let text = refused("udp", &format!("{ONE}{}", ONE.replace("s1:4", "s1:5")));
    assert!(text.contains("the name of two hosts"), "{text}");
    let text = refused(
        "udp",
        &format!(
            "{ONE}{}",
            ONE.replace("v1", "v2").replace(".1.1/", ".1.2/").replace("::11/", "::12/")
        ),
    );
    assert!(text.contains("has a cable"), "{text}");
    for mac in ["01:00:00:00:00:01", "00:00:00:00:00:00", "02:00:00:00:00:01", "v1"] {
        let host = with(&format!("address = \"10.0.0.1/24\"\nmac = {mac:?}"));
        assert!(refused("udp", &host).contains("mac"), "{mac}");
    }
}

#[test]
fn commands_images_and_memory_are_checked() {
    let host = |keys: &str| with(&format!("address = \"10.0.0.1/24\"\n{keys}"));
    for run in ["", "   ", "a 'b", "'' a"] {
        let text = refused("udp", &host(&format!("run = {run:?}")));
        assert!(text.contains("no command"), "{run:?}: {text}");
    }
    let text = refused("udp", &host("run = \"a\"\nstart = \"1 s\""));
    assert!(text.contains("the run has ended by then"), "{text}");
    assert!(refused("udp", &host("run = \"a\"\nexit = 256")).contains("exit"));
    let text = refused("udp", &host("memory = \"16 MiB\""));
    assert!(text.contains("more memory"), "{text}");
    let text = refused("netns", &host("kind = \"container\""));
    assert!(text.contains("needs an image"), "{text}");
    for image in ["-v /:/host alpine", "--privileged", "a,b", "a b"] {
        let text = refused("netns", &host(&format!("kind = \"container\"\nimage = {image:?}")));
        assert!(text.contains("no image"), "{image}: {text}");
    }
    let idle = scenario("udp", &host("image = \"alpine\"\nstart = \"1 ms\"")).expect("it is valid");
    assert_eq!(idle.warnings.len(), 2, "{:?}", idle.warnings);
}

#[test]
fn a_measure_reads_a_number_in_the_output_of_a_host() {
    let measure = |keys: &str| format!("{ONE}[[measure]]\nname = \"m\"\nof = \"output\"\n{keys}\n");
    let good = measure("host = \"v1\"\nmatch = \"([0-9.]+) Mb/s\"");
    let good = scenario("udp", &good).expect("it is valid");
    let measure_of = &good.measures[0];
    assert_eq!(measure_of.at, At::Output(0, "([0-9.]+) Mb/s".to_owned()));
    assert_eq!(measure_of.named, ["v1"]);
    assert_eq!(render(&good).plan.edges, []);
    let bad = [
        ("host = \"v1\"", "the expression is missing"),
        ("match = \"(a)\"", "the host is missing"),
        ("host = \"v2\"\nmatch = \"(a)\"", "no host is called"),
        ("host = \"v1\"\nmatch = \"a\"", "0 groups"),
        ("at = \"s1:4\"\nhost = \"v1\"\nmatch = \"(a)\"", "taken on a host"),
    ];
    for (keys, why) in bad {
        let text = refused("udp", &measure(keys));
        assert!(text.contains(why), "{keys}: {text}");
    }
    let silent = measure("host = \"v1\"\nmatch = \"(a)\"").replace("run =", "kernel =");
    let text = refused("udp", &silent.replace("start = \"10 ms\"", ""));
    assert!(text.contains("runs nothing"), "{text}");
    let text = refused("udp", "[[measure]]\nname = \"m\"\nof = \"queue\"");
    assert!(text.contains("the place is missing"), "{text}");
}
