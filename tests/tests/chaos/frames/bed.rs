//! A switch in a worker, its neighbours' adapters in another, and the hostile far end of its third port: real sockets,
//! threads of this process.

use super::cables::Cables;
use super::forge::{Forge, Line, counted};
use super::laboratory::pause;
use emulation::cable::exchange::Exchange;
use emulation::cable::lines::Lines;
use emulation::cable::shim::SendingEnd;
use emulation::clock::{Clock, monotonic_ns};
use emulation::driver::{Assignment, Beat, Report, Supervisor, Worker, impairers};
use emulation::recorder::{Recorder, RecordingPlan};
use emulation::timer::{self, Priority};
use emulation::wiring::Wiring;
use proto::device::Device;
use proto::link::FlowControlConfig;
use proto::random::Random;
use proto::technology::Technology;
use proto::units::{Duration, Instant};
use scenario::Scenario;
use scenario::render::{Lab, render};
use std::io;
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// What carries the frames of the attacked port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carrier {
    Udp,
    Unix,
    InfinibandVeth,
    EthernetVeth,
    Interface,
    Program,
}

impl Carrier {
    pub const ALL: [Carrier; 6] = [
        Carrier::Udp,
        Carrier::Unix,
        Carrier::InfinibandVeth,
        Carrier::EthernetVeth,
        Carrier::Interface,
        Carrier::Program,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Carrier::Udp => "udp",
            Carrier::Unix => "unix",
            Carrier::InfinibandVeth => "infiniband-veth",
            Carrier::EthernetVeth => "ethernet-veth",
            Carrier::Interface => "interface",
            Carrier::Program => "program",
        }
    }

    pub const fn technology(self) -> Technology {
        match self {
            Carrier::Udp | Carrier::Unix | Carrier::InfinibandVeth => Technology::Infiniband,
            Carrier::EthernetVeth | Carrier::Interface | Carrier::Program => Technology::Ethernet,
        }
    }

    /// Whether the port is attached to something outside the fabric.
    pub const fn is_attached(self) -> bool {
        matches!(self, Carrier::Interface | Carrier::Program)
    }

    /// Whether its frames, and those of the neighbours, are on interfaces.
    pub const fn has_interfaces(self) -> bool {
        matches!(self, Carrier::InfinibandVeth | Carrier::EthernetVeth | Carrier::Interface)
    }

    /// Whether a shim is before each frame of the attacked port.
    pub const fn has_shim(self) -> bool {
        matches!(self, Carrier::Udp | Carrier::Unix | Carrier::InfinibandVeth)
    }
}

/// The rate at which a full frame takes 0.8 ms on the line.
const RATE: &str = "20 Mbps";

/// Two adapters that send to each other by a switch, and a third port.
const SCENARIO: &str = r#"
schema = 1
name   = "hostile-frames"
run    = { seed = 1, duration = "3600 s", backend = "netns" }
fabric = { technology = "TECHNOLOGY", shape = "star", hosts = HOSTS, mtu = "2048 B", link = { rate = "RATE", delay = "1 us" PAUSE } MEMORY }
ATTACH
[[traffic]]
name = "there"
from = "h0"
to   = "h1"
load = 0.5
arrivals = "paced"
size = "2048 B"
[[traffic]]
name = "back"
from = "h1"
to   = "h0"
load = 0.2
arrivals = "paced"
size = "2048 B"
"#;

/// Room for what the neighbours send while this host stands still for half a second.
const MEMORY: &str = r#", switch = { memory = "shared-pool", headroom = "4 MB", pool = { size = "64 MB", threshold = "100 KB" } }"#;

pub const EPOCH: u32 = 0x0bad_cafe;
/// Physical lanes of an InfiniBand link. With so many its watchdog lasts longer than this host ever stands still.
pub const LANES: u8 = u8::MAX;

/// The configuration of the devices, by kind of the third port and rate of the links.
pub fn lab(carrier: Carrier, rate: &str) -> Lab {
    let is_ethernet = carrier.technology() == Technology::Ethernet;
    let attach = match carrier {
        Carrier::Interface => "[lab]\nattach = [{ port = \"s0:3\", iface = \"near\" }]",
        Carrier::Program => "[lab]\nattach = [{ port = \"s0:3\", socket = \"far\" }]",
        _ => "",
    };
    let text = SCENARIO
        .replace("TECHNOLOGY", carrier.technology().name())
        .replace("RATE", rate)
        .replace("HOSTS", if carrier.is_attached() { "2" } else { "3" })
        .replace("PAUSE", if is_ethernet { ", pause = \"pfc\"" } else { "" })
        .replace("MEMORY", if is_ethernet { MEMORY } else { "" })
        .replace("ATTACH", attach);
    let scenario = Scenario::parse(&text, &[]).unwrap_or_else(|why| panic!("{why:?}"));
    let mut lab = render(&scenario);
    let ports = lab.switches.iter_mut().flat_map(|switch| &mut switch.ports);
    let links = ports.map(|port| &mut port.link);
    for link in links.chain(lab.nics.iter_mut().map(|nic| &mut nic.link)) {
        if let FlowControlConfig::Credit(credit) = &mut link.control {
            credit.lanes = LANES;
        }
    }
    lab
}

/// The index of the link of the attacked port.
pub const HOSTILE_LINK: u32 = 2;

/// The most frames in a burst: the socket holds them while the worker sleeps.
const BURST_MAX: u64 = 200;

/// The processes: the switch, the neighbours' adapters, and the hostile far end, if it is part of the fabric.
pub const SWITCH: usize = 0;
pub const NEIGHBOURS: usize = 1;
pub const HOSTILE: usize = 2;

/// The process of each node.
pub fn hosts(wiring: &Wiring) -> Vec<usize> {
    let adapters = wiring.nodes.len() - 1;
    let of_adapter = |adapter| if adapter < 2 { NEIGHBOURS } else { HOSTILE };
    (0..adapters).map(of_adapter).chain([SWITCH]).collect()
}

/// The end of the hostile link at which the hostile far end is; attached ones are outside.
pub fn hostile_end(wiring: &Wiring) -> SendingEnd {
    let link = wiring.links.get(HOSTILE_LINK as usize);
    let is_a = link.is_some_and(|link| link.a.node != wiring.nodes.len() - 1);
    if is_a { SendingEnd::A } else { SendingEnd::B }
}

/// Makes hostile frames of a seed for the third port.
pub fn forge(carrier: Carrier, seed: u64, wiring: &Wiring) -> Forge {
    let random = Random::stream(seed, "hostile", carrier.name());
    let line = Line { link: HOSTILE_LINK, end: hostile_end(wiring), epoch: EPOCH };
    Forge::new(carrier.technology(), carrier.has_shim().then_some(line), random)
}

/// Counts the turns of a worker, so that the attack waits for it.
#[derive(Default)]
struct Watch {
    turns: AtomicU64,
    stop: AtomicBool,
    ended: AtomicBool,
}

impl Supervisor for Watch {
    fn stop_requested(&self) -> bool {
        self.turns.fetch_add(1, Ordering::Relaxed);
        self.stop.load(Ordering::Relaxed)
    }

    fn beat(&self, _: Beat) {}
}

impl Watch {
    /// Waits until the worker has emptied its sockets: it reads them once a turn.
    fn await_turns(&self, turns: u64) {
        let begin = self.turns.load(Ordering::Relaxed);
        while self.turns.load(Ordering::Relaxed) < begin + turns
            && !self.ended.load(Ordering::Relaxed)
        {
            timer::wait(None, monotonic_ns() + 20_000);
        }
    }
}

/// Notes the end of a worker, by a panic too.
struct NoteEnd<'a>(&'a Watch);

impl Drop for NoteEnd<'_> {
    fn drop(&mut self) {
        self.0.ended.store(true, Ordering::Relaxed);
    }
}

/// The longest time in nanoseconds for which a thread that wants to run every 10 ms did not run, until a worker ends.
fn longest_stillness_ns(watch: &Watch) -> u64 {
    const EVERY_NS: u64 = 10_000_000;
    let mut longest = 0;
    while !watch.ended.load(Ordering::Relaxed) {
        let begin_ns = monotonic_ns();
        timer::wait(None, begin_ns + EVERY_NS);
        longest = longest.max(monotonic_ns() - begin_ns - EVERY_NS);
    }
    longest
}

/// What an attack has sent.
#[derive(Default)]
pub struct Sent {
    /// Frames that the kernel took, and those that it refused.
    pub taken: u64,
    pub refused: u64,
    /// The counts that those which it took must have caused.
    pub due: u64,
    /// The longest time for which the host stood still, in nanoseconds.
    pub still_ns: u64,
}

/// The outcome of an attack.
pub struct Attacked {
    /// The reports of the switch and of the neighbours.
    pub reports: [Report; 2],
    pub sent: Sent,
    /// The hostile end of its link.
    pub end: SendingEnd,
}

/// The assignment of a process.
fn assignment(
    process: usize,
    lab: &Lab,
    devices: Vec<Box<dyn Device>>,
    clock: &Clock,
    lines: Lines,
    exchange: Exchange,
) -> Assignment {
    let wiring = &lab.fabric.wiring;
    let plan = RecordingPlan {
        tau: lab.plan.tau,
        stop: Instant::NEVER,
        bin: Duration::from_us(10_000_000),
        edges: Vec::new(),
        measured: Vec::new(),
        all_events: false,
        named: Vec::new(),
        watched: false,
    };
    let hosts = hosts(wiring);
    let nodes = (0..hosts.len()).filter(|node| hosts[*node] == process).collect();
    Assignment {
        process,
        processes: 2,
        clock: clock.clone(),
        begin: Instant::ZERO,
        recorder: Recorder::new(plan.clone(), wiring, nodes),
        plan,
        devices,
        impairers: impairers(wiring, 1),
        exchange,
        lines,
    }
}

/// Sends `frames` hostile frames of a seed to the third port while the neighbours talk.
///
/// # Errors
/// Where the test may not make namespaces.
pub fn attack(carrier: Carrier, seed: u64, frames: u64) -> io::Result<Attacked> {
    let lab = lab(carrier, RATE);
    let wiring = &lab.fabric.wiring;
    let mut cables = Cables::new(carrier, seed, wiring)?;
    let clock = Clock::new(monotonic_ns() + 20_000_000, NonZeroU64::MIN);
    let mut devices = launch::virtual_clock::devices(&lab).expect("good configurations");
    let switch = devices.pop().expect("the last node");
    devices.truncate(2);
    let mut give = |process, devices| {
        let lines = Lines::new(wiring, &hosts(wiring), process, false).expect("a good wiring");
        let exchange = cables.exchange(process, carrier, &clock, &lines);
        assignment(process, &lab, devices, &clock, lines, exchange)
    };
    let assignments = [give(SWITCH, vec![switch]), give(NEIGHBOURS, devices)];
    let mut forge = forge(carrier, seed, wiring);
    let watches = [Watch::default(), Watch::default()];
    let (sent, reports) = std::thread::scope(|scope| {
        let start = |(run, watch): (Assignment, _)| {
            scope.spawn(move || {
                let _end = NoteEnd(watch);
                Worker::new(run, Priority::Normal).run(watch)
            })
        };
        let stillness = scope.spawn(|| longest_stillness_ns(&watches[NEIGHBOURS]));
        let workers: Vec<_> = assignments.into_iter().zip(&watches).map(start).collect();
        // Until the neighbours' links are trained.
        pause(0.2);
        let mut random = Random::stream(seed, "bursts", carrier.name());
        let mut sent = Sent::default();
        let does_read = random.chance(3, 4);
        while sent.taken < frames
            && !watches.iter().any(|watch| watch.ended.load(Ordering::Relaxed))
        {
            for _ in 0..(1 + random.below(BURST_MAX)).min(frames - sent.taken) {
                let forged = forge.next(clock.now());
                if cables.enemy.send(&forged.octets, forged.foreign) {
                    sent.taken += 1;
                    sent.due += counted(&forged, carrier.has_shim());
                } else {
                    sent.refused += 1;
                }
            }
            if does_read {
                cables.enemy.read();
            }
            watches[SWITCH].await_turns(2);
        }
        pause(0.1);
        watches.iter().for_each(|watch| watch.stop.store(true, Ordering::Relaxed));
        let mut reports = workers.into_iter().map(|worker| worker.join().expect("no panic"));
        sent.still_ns = stillness.join().expect("no panic");
        (sent, [(); 2].map(|()| reports.next().expect("two workers")))
    });
    Ok(Attacked { sent, reports, end: hostile_end(wiring) })
}
