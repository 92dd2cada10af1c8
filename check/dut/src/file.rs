//! A DUT file: what a device is, how it is reached, what it claims, and its tolerances.

use proto::params::{Key, KeyTable, Kind, Millionths, Params, Scale};
use proto::units::{Bytes, Duration};
use proto::wire::ethernet::MacAddress;
use scenario::keyfile::document;
use scenario::keyfile::fields::Fields;
use scenario::keyfile::problem::{Complaint, Problems};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

proto::words! {
    /// What a device is.
    pub enum DutKind {
        /// A switch of Ethernet.
        Switch = "ethernet-switch",
        /// A NIC with RoCE v2 and an agent.
        Nic = "roce-nic",
    }
    /// How the suite gets at a device.
    pub enum Reach {
        /// It starts a lab from a scenario file; ports are sockets of `[lab] attach`.
        Lab = "lab",
        /// It makes a Linux bridge in a network namespace of its own; ports are names of veth ends.
        Bridge = "bridge",
        /// It starts a virtual machine. Its soft-RoCE has one port; ports of a switch in it are S-tags on its cable, 101 for port 1.
        Vm = "vm",
        /// The device is there; ports are interfaces of this host that are cabled to it.
        Interfaces = "interfaces",
        /// The device is there; ports are pairs of socket files LOCAL=REMOTE.
        Sockets = "sockets",
    }
    /// Where a hook runs.
    pub enum HookPlace {
        /// On this host, only with --allow-hooks.
        Host = "host",
        /// In the virtual machine.
        Vm = "vm",
        /// In the lab that the suite has started: `run` is a switch or a port of it, and settings KEY=VALUE, as `pausebed set switch` takes them.
        Lab = "lab",
    }
    /// When a hook runs.
    pub enum When {
        /// Before the first case.
        Start = "start",
        /// In cases about marks with a probability.
        Red = "red",
        /// In cases in which weights change.
        Reweigh = "reweigh",
    }
}

/// What devices can claim.
const CLAIMS: [&str; 24] = [
    "rate",
    "ageing",
    "pause",
    "pfc",
    "lossless",
    "cn-tag",
    "jumbo",
    "ecn",
    "wred",
    "red",
    "strict",
    "ets",
    "reweigh",
    "lag",
    "ud",
    "uc",
    "read",
    "write",
    "atomic",
    "immediate",
    "cnp",
    "cnp-obeyed",
    "cm",
    "migreq",
];

proto::params! {
    /// `[dut]`
    pub struct Dut {
        /// Name in results.
        name: String = Text, Required;
        /// What it is.
        kind: DutKind = DutKind::KIND, Required;
        /// A sentence about it.
        about: String = Text, Default("");
        /// What it supports. A case that needs something else is NOT-IMPLEMENTED, not FAIL.
        claims: Vec<String> = List(&Word(|| CLAIMS.to_vec())), Default("[]");
    }
}

proto::params! {
    /// `[device]`
    pub struct Device {
        /// How the suite gets at it.
        reach: Reach = Reach::KIND, Required;
        /// The scenario file of a lab, beside this file.
        file: Option<String> = Text, Optional;
        /// Its ports, the first being port 1; `reach` says what the words mean.
        ports: Vec<String> = UpTo(32, &Text), Required;
        /// The release of the kernel of a virtual machine; the default image without it.
        kernel: Option<String> = Text, Optional;
        /// The agent of a NIC: node:NAME of the lab, or unix:PATH. A virtual machine has its own.
        agent: Option<String> = Text, Optional;
        /// The device that the agent opens; its first without a name.
        rdma: Option<String> = Text, Optional;
        /// The IPv4 address of a NIC.
        address: Option<String> = Text, Optional;
        /// The MAC address of a NIC.
        mac: Option<String> = Text, Optional;
        /// The port at which a program on a NIC's host accepts connections of RDMA CM, for devices that claim `cm`.
        cm_port: Option<u16> = Whole(1, 65_535), Optional;
        /// The IPv4 address of the tester, in the same network.
        peer: String = Text, Default("198.18.0.250");
        /// The largest payload of a frame.
        mtu: Bytes = Octets, Default("1500 B");
    }
}

proto::params! {
    /// `[tolerance]`
    pub struct Tolerance {
        /// The device has handled a frame after this time: what has not come out by then does not come.
        quiet: Duration = Span, Default("20 ms");
        /// The longest wait for something that must come.
        patience: Duration = Span, Default("2 s");
        /// The longest time of one case, after which it is INCONCLUSIVE.
        case: Duration = Span, Default("30 s");
        /// How long a switch keeps an address that is silent.
        ageing: Option<Duration> = Span, Optional;
        /// The port that obeys PAUSE, for devices that claim it.
        pause_port: u8 = Whole(1, 32), Default("2");
        /// The port that obeys PFC, for devices that claim it.
        pfc_port: u8 = Whole(1, 32), Default("2");
        /// The rate in Mbit/s whose bit times quanta of these ports count.
        pause_rate: u64 = Whole(1, 1_000_000), Default("1000");
        /// The port whose rate is measured, for devices that claim `rate`.
        line_port: u8 = Whole(1, 32), Default("1");
        /// The rate of its line in Mbit/s.
        line_rate: u64 = Whole(1, 1_000_000), Default("1000");
        /// The latency of a frame on an idle switch, in the median.
        latency: Option<Duration> = Span, Optional;
        /// By how much one frame in a hundred may take longer.
        jitter: Option<Duration> = Span, Optional;
        /// Random frames that a switch must endure, as far as a third of the time of a case suffices.
        hostile: u64 = Whole(1, 1_000_000_000), Default("1000000");
    }
}

proto::params! {
    /// `[queue]`
    pub struct Queue {
        /// The port that marks frames with CE.
        mark_port: u8 = Whole(1, 32), Default("2");
        /// Octets of frames without FCS in its queue above which all are marked.
        mark_at: Option<Bytes> = Octets, Optional;
        /// The DSCP of frames that it marks.
        mark_dscp: u8 = Whole(0, 63), Default("26");
        /// With the hooks of `red`: octets in the queue above which the first frames are marked.
        red_from: Option<Bytes> = Octets, Optional;
        /// Octets up to which the probability rises in proportion.
        red_to: Option<Bytes> = Octets, Optional;
        /// The probability there.
        red_top: Option<Millionths> = Real(0.0, 1.0), Optional;
        /// The port that shares its rate among classes.
        share_port: u8 = Whole(1, 32), Default("2");
        /// Classes that share it by weights, as words DSCP=WEIGHT.
        shares: Option<Vec<String>> = UpTo(8, &Text), Optional;
        /// With the hooks of `reweigh`: the shares of the same classes.
        reweighed: Option<Vec<String>> = UpTo(8, &Text), Optional;
        /// The DSCP of the class that goes before all others.
        strict_dscp: Option<u8> = Whole(0, 63), Optional;
        /// The first of the two ports that are one group of links, as the last ports of the device.
        lag_port: Option<u8> = Whole(1, 31), Optional;
    }
}

proto::params! {
    /// One `[[hook]]`.
    pub struct Hook {
        /// The program and its arguments. No shell reads them.
        run: Vec<String> = UpTo(64, &Text), Required;
        /// The program that undoes it.
        undo: Option<Vec<String>> = UpTo(64, &Text), Optional;
        /// Where.
        place: HookPlace = HookPlace::KIND, Default("host");
        /// When.
        when: When = When::KIND, Default("start");
    }
}

static DUT: KeyTable = KeyTable::new("what is tested", Dut::KEYS);
static DEVICE: KeyTable = KeyTable::new("how it is reached", Device::KEYS);
static TOLERANCE: KeyTable = KeyTable::new("times that the device may take", Tolerance::KEYS);
static QUEUE: KeyTable = KeyTable::new("queues of a switch", Queue::KEYS);
static HOOK: KeyTable = KeyTable::new("a command that sets up a feature", Hook::KEYS);

/// The keys of a DUT file.
pub static KEYS: KeyTable = KeyTable::new(
    "a device under test",
    &[
        Key::required("dut", Kind::Table(&DUT), "What is tested."),
        Key::required("device", Kind::Table(&DEVICE), "How it is reached."),
        Key::new("tolerance", Kind::Table(&TOLERANCE), "{}", "Times that the device may take."),
        Key::new("queue", Kind::Table(&QUEUE), "{}", "Queues of a switch that are measured."),
        Key::optional("hook", Kind::Tables(&HOOK), "Commands before, and after in reverse order."),
    ],
);

/// A DUT file.
#[derive(Clone, Debug, PartialEq)]
pub struct DutFile {
    /// `[dut]`
    pub dut: Dut,
    /// `[device]`
    pub device: Device,
    /// `[tolerance]`
    pub tolerance: Tolerance,
    /// `[queue]`
    pub queue: Queue,
    /// `[[hook]]`
    pub hooks: Vec<Hook>,
    /// The MAC and IPv4 address of a NIC.
    pub station: Option<(MacAddress, Ipv4Addr)>,
    /// The IPv4 address of the tester.
    pub peer: Ipv4Addr,
    /// The folder that relative files are in.
    pub folder: PathBuf,
}

impl DutFile {
    /// Reads a file.
    ///
    /// # Errors
    /// Every fault of the file, ready to be printed.
    pub fn load(file: &Path) -> Result<DutFile, String> {
        let name = file.display().to_string();
        let text = std::fs::read_to_string(file).map_err(|error| format!("{name}: {error}"))?;
        let folder = file.parent().unwrap_or(Path::new(".")).to_owned();
        DutFile::parse(&text, folder).map_err(|faults| faults.in_file(&name))
    }

    /// Reads the text of a file in `folder`.
    ///
    /// # Errors
    /// Every fault.
    pub fn parse(text: &str, folder: PathBuf) -> Result<DutFile, Problems> {
        let mut table = document::parse(text)?;
        let read = |root: &Fields<'_>| DutFile::read(root, folder);
        let (file, _) =
            scenario::keyfile::read(&mut table, &KEYS, Scale::ABSOLUTE, Problems::default(), read)?;
        Ok(file)
    }

    fn read(root: &Fields<'_>, folder: PathBuf) -> Option<DutFile> {
        let dut = root.table("dut").and_then(|fields| fields.params::<Dut>());
        let fields = root.table("device")?;
        let device = fields.params::<Device>();
        let tolerance = root.table("tolerance")?.params::<Tolerance>();
        let hooks =
            root.each::<Hook>("hook").into_iter().map(|(fields, hook)| check_hook(&fields, hook));
        let hooks = hooks.collect();
        let queue = root.table("queue")?.params::<Queue>();
        let (dut, device, tolerance, queue) = (dut?, device?, tolerance?, queue?);
        check_device(&fields, dut.kind, &device);
        let peer = fields.accept("peer", ipv4(&device.peer))?;
        let station = match (dut.kind, &device.mac, &device.address) {
            (DutKind::Switch, ..) | (DutKind::Nic, None, _) | (DutKind::Nic, _, None) => None,
            (DutKind::Nic, Some(mac), Some(address)) => {
                let mac = mac.parse::<MacAddress>().map_err(|error| {
                    Complaint::new(format!("{mac:?}: {error}"), "such as 02:00:00:00:00:01")
                });
                Some((fields.accept("mac", mac)?, fields.accept("address", ipv4(address))?))
            }
        };
        Some(DutFile { dut, device, tolerance, queue, hooks, station, peer, folder })
    }

    /// Whether the device claims this.
    pub fn claims(&self, what: &str) -> bool {
        self.dut.claims.iter().any(|claim| claim == what)
    }
}

fn ipv4(text: &str) -> Result<Ipv4Addr, Complaint> {
    let parsed = text.parse::<Ipv4Addr>();
    parsed.map_err(|_| Complaint::new(format!("{text:?} is not an IPv4 address"), "198.18.0.1"))
}

/// Hooks of a case are undone with it, those of the start only on this host.
fn check_hook(fields: &Fields<'_>, hook: Hook) -> Hook {
    match (hook.place, hook.when) {
        (HookPlace::Lab, When::Start) => {
            fields.error("when", "a lab starts with its settings", "red or reweigh");
        }
        (HookPlace::Host, When::Red | When::Reweigh) => {
            fields.error("place", "no case changes this host", "vm or lab");
        }
        _ => {}
    }
    hook
}

/// Reports keys that are missing or do not go together.
fn check_device(fields: &Fields<'_>, kind: DutKind, device: &Device) {
    let ports = device.ports.len();
    match kind {
        DutKind::Switch if ports < 3 => {
            fields.error(
                "ports",
                format!("a switch is asked at three ports, not {ports}"),
                "three or more",
            );
        }
        DutKind::Nic if ports != 1 => {
            fields.error("ports", format!("a NIC has one port, not {ports}"), "one");
        }
        _ => {}
    }
    if kind == DutKind::Nic {
        for (key, value) in [("mac", &device.mac), ("address", &device.address)] {
            if value.is_none() {
                fields.error(key, "a NIC needs it", "the address that its queue pairs use");
            }
        }
        if device.agent.is_none() && device.reach != Reach::Vm {
            fields.error("agent", "a NIC needs an agent", "node:h1 of a lab, or unix:/PATH");
        }
    }
    if device.reach == Reach::Lab && device.file.is_none() {
        fields.error("file", "a lab needs a scenario", "a file beside this one");
    }
    if (kind, device.reach) == (DutKind::Nic, Reach::Bridge) {
        fields.error("reach", "a bridge is not a NIC", "lab, vm, interfaces or sockets");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<DutFile, String> {
        DutFile::parse(text, PathBuf::new()).map_err(|faults| faults.in_file("x.toml"))
    }

    #[test]
    fn the_files_of_this_repository_are_good() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("devices");
        let files =
            std::fs::read_dir(folder).expect("a folder").flatten().map(|entry| entry.path());
        let is_dut = |file: &PathBuf| {
            let name = file.to_string_lossy().into_owned();
            name.ends_with(".toml") && !name.ends_with(".lab.toml")
        };
        let loaded: Vec<_> = files.filter(is_dut).map(|file| DutFile::load(&file)).collect();
        assert!(loaded.len() >= 4, "{loaded:?}");
        for file in loaded {
            file.unwrap_or_else(|faults| panic!("{faults}"));
        }
    }

    #[test]
    fn faults_are_reported_together_and_with_their_place() {
        let faults = parse(
            "[dut]\nname = \"x\"\nkind = \"roce-nic\"\nclaims = [\"uc\", \"magic\"]\n\
             [device]\nreach = \"interfaces\"\nports = [\"a\", \"b\"]\nmtu = \"9 ms\"\nspeed = 3\n",
        )
        .expect_err("it has faults");
        for part in ["x.toml:4", "magic", "x.toml:8", "speed"] {
            assert!(faults.contains(part), "{part} is not in\n{faults}");
        }
        let faults = parse(
            "[dut]\nname = \"x\"\nkind = \"roce-nic\"\n[device]\nreach = \"interfaces\"\nports = [\"a\", \"b\"]\n",
        )
        .expect_err("it has faults");
        for part in ["one port, not 2", "device.mac", "device.address", "an agent"] {
            assert!(faults.contains(part), "{part} is not in\n{faults}");
        }
    }
}
