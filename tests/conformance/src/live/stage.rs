//! A daemon on its stage: started as in every run, its neighbours played by a tester.

use super::neighbour::{Credits, Manner, Neighbour};
use super::record::Record;
use super::tester::{Parts, Script, Tester};
use crate::case::Failure;
use capture::CapturePlan;
use emulation::cable::datagram::DatagramSocket;
use emulation::cable::lines::Lines;
use emulation::cable::reconcile::reconcile;
use emulation::cable::shim::SendingEnd;
use emulation::cable::udp;
use emulation::driver::evidence;
use emulation::fidelity::judge;
use emulation::timer;
use emulation::wiring::NodeKind;
use launch::daemons::Cabling;
use launch::daemons::tester::{self, RunStart, TesterRun, TesterSetup};
use launch::placement::Hosting;
use launch::{FailureKind, Job, LaunchError, with_sources};
use proto::link::LinkControl;
use proto::units::{BitRate, Duration, Instant};
use scenario::Scenario;
use scenario::render::{Lab, render};
use std::net::{IpAddr, Ipv4Addr};
use std::num::NonZeroU64;
use switchd::config::SwitchConfig;

/// How often a neighbour repeats its flow-control packets, of the interval that the standard allows
/// as a maximum. Source: IBTA Vol 1, 7.9.4 (65 536 symbol times).
const REFRESH_SYMBOLS: u64 = 16_384;

/// One daemon that hosts one device, and what surrounds it.
#[derive(Debug)]
pub struct Stage {
    /// The scenario that the device is taken from.
    pub scenario: Scenario,
    /// The device's name.
    pub device: &'static str,
    /// Wall time over fabric time.
    pub dilation: u64,
    /// Octets of the daemon's receive buffer, in place of as many as the host grants.
    pub receive_buffer: Option<usize>,
    /// Variables of the daemon's environment.
    pub environment: Vec<(String, String)>,
    /// What the daemon captures.
    pub capture: Option<CapturePlan>,
    /// What a switch on stage is told that no scenario can say.
    pub switch: fn(&mut SwitchConfig),
}

impl Stage {
    /// The device called `device` of the scenario `text`, at the dilation of live cases.
    ///
    /// # Errors
    /// What is wrong with the text.
    pub fn new(text: &str, device: &'static str) -> Result<Stage, Failure> {
        let scenario = Scenario::parse(text, &[]);
        let scenario = scenario.map_err(|faults| faults.in_file("a live case"))?;
        let dilation = super::dilation(1);
        let environment = Vec::new();
        Ok(Stage {
            scenario,
            device,
            dilation,
            receive_buffer: None,
            environment,
            capture: None,
            switch: |_| {},
        })
    }

    /// Runs the daemon for as long as the scenario says, among neighbours who follow `script`.
    ///
    /// # Errors
    /// If the daemon cannot be started or dies.
    pub fn run(&self, script: Script) -> Result<Record, Failure> {
        self.run_with(script, |_| {})
    }

    /// The same; `aside` is told the beginning, on the tester's thread.
    ///
    /// # Errors
    /// If the daemon cannot be started or dies.
    pub fn run_with(
        &self,
        script: Script,
        aside: impl FnOnce(&RunStart) + Send + 'static,
    ) -> Result<Record, Failure> {
        let lab = self.lab();
        let wiring = &lab.fabric.wiring;
        let device = wiring.nodes.iter().position(|node| node.name == self.device);
        let device = device.ok_or_else(|| format!("no node is called {}", self.device))?;
        let (daemon, tester) = (0, 1);
        let hosts = 0..wiring.nodes.len();
        let hosts = hosts.map(|node| if node == device { daemon } else { tester }).collect();
        // The kind of a process that is played is nobody's business.
        let hosting = Hosting { hosts, kinds: vec![wiring.nodes[device].kind, NodeKind::Nic] };
        let host = |error: &dyn std::fmt::Display| Failure::Inconclusive(error.to_string());
        let scratch = tempfile::tempdir().map_err(|error| host(&error))?;
        let socket = udp::open(IpAddr::V4(Ipv4Addr::LOCALHOST)).map_err(|error| host(&error))?;
        let lines = Lines::new(wiring, &hosting.hosts, tester, false);
        let lines = lines.map_err(|error| error.to_string())?;
        let neighbours = neighbours(&lab, device)?;
        let run = &self.scenario.run;
        let job = Job {
            lab: &lab,
            name: &self.scenario.name,
            seed: run.seed,
            dilation: self.dilation,
            threads: 1,
            placement: run.placement,
            cables: run.cables,
            carrier: run.carrier,
            realtime: run.realtime,
            awake: run.awake,
            capture: self.capture.clone(),
            injections: Vec::new(),
            scratch: scratch.path(),
        };
        let setting = TesterSetup {
            hosting,
            cabling: Cabling::on_loopback(&job),
            address: Some(socket.address().to_owned()),
            receive_buffer: self.receive_buffer,
            environment: self.environment.clone(),
        };
        let (realtime, stop) = (run.realtime, lab.plan.stop);
        let played = tester::run(&job, setting, move |opening| {
            timer::prepare_thread(realtime);
            aside(opening);
            let parts = parts(socket, lines, neighbours, opening, (daemon, stop));
            Tester::new(parts).follow(script, || opening.is_over())
        });
        self.record(played.map_err(died)?, device)
    }

    /// What the scenario describes, but for what a switch on stage is told besides.
    fn lab(&self) -> Lab {
        let mut lab = render(&self.scenario);
        let on_stage = lab.switches.iter_mut().filter(|switch| switch.name == self.device);
        on_stage.for_each(self.switch);
        lab
    }

    fn record(
        &self,
        played: TesterRun<super::tester::Found>,
        device: usize,
    ) -> Result<Record, Failure> {
        let TesterRun { mut reports, missed, found } = played;
        let mut evidence = evidence(&reports, missed);
        let accounts = reports.iter().map(|report| &report.exchange);
        evidence.lost = reconcile(accounts.chain([&found.exchange])).lost.total();
        evidence.lateness.merge(&found.lateness);
        let dilation = NonZeroU64::new(self.dilation).unwrap_or(NonZeroU64::MIN);
        Ok(Record {
            report: reports.pop().ok_or_else(|| "no daemon has reported".to_owned())?,
            fidelity: judge(&evidence, dilation),
            exchange: found.exchange,
            seen: found.seen,
            neighbours: found.neighbours,
            device,
        })
    }
}

/// Why a run brought nothing back: a daemon's death is a failure, the rest the host's fault.
pub fn died(error: LaunchError) -> Failure {
    match error.kind {
        FailureKind::Died | FailureKind::Config => Failure::Failed(with_sources(&error)),
        FailureKind::Host | FailureKind::Interrupted => Failure::Inconclusive(with_sources(&error)),
    }
}

/// By port of the device: the link, the far end of it, and a neighbour there.
fn neighbours(lab: &Lab, device: usize) -> Result<Vec<(u32, SendingEnd, Neighbour)>, Failure> {
    let link = match device.checked_sub(lab.nics.len()) {
        None => &lab.nics[device].link,
        Some(switch) => &lab.switches[switch].ports[0].link,
    };
    let manner = |rate: BitRate| match &link.control {
        LinkControl::Credits(credits) => {
            Manner::Credits(Credits::new(credits.data_lanes, refresh(rate, credits.lanes)))
        }
        LinkControl::Pause(_) => Manner::Mute,
    };
    let wiring = &lab.fabric.wiring;
    let mut all = Vec::new();
    for (id, link) in wiring.links.iter().enumerate() {
        let (own, end) = match (link.a.node == device, link.b.node == device) {
            (true, false) => (link.a, SendingEnd::B),
            (false, true) => (link.b, SendingEnd::A),
            _ => continue,
        };
        let rate = lab.fabric.line_rate(own)?;
        all.push((own.port, (id as u32, end, Neighbour::new(rate, manner(rate)))));
    }
    all.sort_by_key(|(port, _)| *port);
    Ok(all.into_iter().map(|(_, neighbour)| neighbour).collect())
}

fn refresh(rate: BitRate, lanes: u8) -> Duration {
    proto::units::Bytes::new(u64::from(lanes)).time_at(rate) * REFRESH_SYMBOLS
}

fn parts(
    socket: DatagramSocket,
    lines: Lines,
    neighbours: Vec<(u32, SendingEnd, Neighbour)>,
    opening: &RunStart,
    (daemon, stop): (usize, Instant),
) -> Parts {
    let peer = |address: &String| udp::peer(address).expect("a socket said this address itself");
    Parts {
        socket,
        peers: opening.peers.iter().map(peer).collect(),
        daemon,
        lines,
        neighbours,
        clock: opening.clock,
        stop,
        epoch: opening.epoch,
    }
}
