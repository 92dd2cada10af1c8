//! One device on its stage, its neighbours played by a script.
//!
//! On the virtual clock the device is a value in a [`Bench`] whose cables are [`wires`]. Live it is a
//! daemon that is started as in every run, and a [`tester`] plays the neighbours over real cables. Both
//! take the device's configuration from the same scenario, follow the same script and leave a [`Record`].

mod cable;
mod tester;
mod wires;

use super::case::{Failure, Level, Result};
use super::record::{Live, Record};
use cable::Cable;
use capture::CapturePlan;
use emulation::cable::lines::Lines;
use emulation::cable::reconcile::reconcile;
use emulation::cable::shim::SendingEnd;
use emulation::cable::udp;
use emulation::driver::evidence;
use emulation::fidelity::judge;
use emulation::timer;
use emulation::wiring::NodeKind;
use launch::daemons::tester::{self as launched, RunStart, TesterRun};
use launch::daemons::{Cabling, Setup};
use launch::placement::Hosting;
use launch::virtual_clock::devices;
use launch::{FailureKind, Job, LaunchError, with_sources};
use proto::device::Device;
use proto::link::FlowControlConfig;
use proto::units::{BitRate, Duration};
use scenario::Scenario;
use scenario::render::{Lab, render};
use std::net::{IpAddr, Ipv4Addr};
use std::num::NonZeroU64;
use switchd::config::SwitchConfig;
use testbed::{Bench, Credits, Neighbour, Script};
use tester::{Found, Parts, Tester};
use wires::Wires;

/// How often a neighbour repeats its flow-control packets, of the interval that the standard allows
/// as a maximum. Source: IBTA Vol 1, 7.9.4 (65 536 symbol times).
const REFRESH_SYMBOLS: u64 = 16_384;

/// By port of the device: link, the far end of it, and the neighbour there.
type Ends = Vec<(u32, SendingEnd, Neighbour)>;

/// One device, and its surroundings.
#[derive(Debug)]
pub struct Stage {
    /// Where it stands.
    pub level: Level,
    /// The scenario that the device is taken from.
    pub scenario: Scenario,
    /// The device's name.
    pub device: &'static str,
    /// Wall time over fabric time.
    pub dilation: u64,
    /// Octets of a daemon's receive buffer, in place of as many as the host grants.
    pub receive_buffer: Option<usize>,
    /// Variables of a daemon's environment.
    pub environment: Vec<(String, String)>,
    /// What a daemon captures.
    pub capture: Option<CapturePlan>,
    /// Changes to the configuration of a switch that no scenario can express.
    pub switch: fn(&mut SwitchConfig),
    /// What surrounds the device on the virtual clock.
    pub wrap: fn(Box<dyn Device>) -> Box<dyn Device>,
}

impl Stage {
    /// The device called `device` of the scenario `text`, at the dilation of live cases.
    ///
    /// # Errors
    /// What is wrong with the text.
    pub fn new(level: Level, text: &str, device: &'static str) -> Result<Stage> {
        Ok(Stage {
            level,
            scenario: read(text)?,
            device,
            dilation: super::star::dilation(1),
            receive_buffer: None,
            environment: Vec::new(),
            capture: None,
            switch: |_| {},
            wrap: |device| device,
        })
    }

    /// Runs the device for the duration of the scenario, among neighbours that follow `script`.
    ///
    /// # Errors
    /// If the device refuses its configuration, or a daemon cannot be started or dies.
    pub fn run(&self, script: Script) -> Result<Record> {
        if self.level == Level::Live {
            return self.run_with(script, |_| {});
        }
        let lab = self.lab();
        let device = self.node(&lab)?;
        let ends = neighbours(&lab, device)?;
        let cable = |(link, end, _): &(u32, SendingEnd, Neighbour)| {
            Cable::new(*link, *end, lab.fabric.wiring.links[*link as usize].frame_time)
        };
        let hosts = |node| usize::from(node != device);
        let hosts: Vec<usize> = (0..lab.fabric.wiring.nodes.len()).map(hosts).collect();
        let lines = Lines::new(&lab.fabric.wiring, &hosts, 0, false)?;
        let wires = Wires::new(ends.iter().map(cable).collect(), lines)?;
        let neighbours = ends.into_iter().map(|(.., neighbour)| neighbour).collect();
        let made = (self.wrap)(devices(&lab).map_err(died)?.swap_remove(device));
        let mut bench: Bench = Bench::with(made, neighbours, Box::new(wires.clone()));
        bench.follow(script, lab.plan.stop);
        let (reading, lines) = (bench.reading(), wires.counts());
        let Bench { events, seen, samples, neighbours, .. } = bench;
        Ok(Record { reading, events, seen, samples, neighbours, lines, live: None })
    }

    /// The same with the script that `write` writes.
    ///
    /// # Errors
    /// Those of [`Stage::run`].
    pub fn play(&self, write: impl FnOnce(&mut Script)) -> Result<Record> {
        let mut script = Script::default();
        write(&mut script);
        self.run(script)
    }

    /// The device alone on the virtual clock, behind cables without rate and length.
    ///
    /// # Errors
    /// If it refuses its configuration.
    pub fn bench(&self) -> Result<Bench> {
        let lab = self.lab();
        let device = self.node(&lab)?;
        let made = (self.wrap)(devices(&lab).map_err(died)?.swap_remove(device));
        let ends = neighbours(&lab, device)?;
        let lanes = ends.first().map_or(0, |(.., neighbour)| neighbour.lanes().len());
        Ok(Bench::ideal(made, lanes as u8))
    }

    /// The configuration of the switch on stage.
    ///
    /// # Errors
    /// If it is not a switch.
    pub fn switch_config(&self) -> Result<SwitchConfig> {
        let mut switches = self.lab().switches.into_iter();
        let found = switches.find(|switch| switch.name == self.device);
        Ok(found.ok_or_else(|| format!("{} is not a switch", self.device))?)
    }

    /// The number of the device's node.
    fn node(&self, lab: &Lab) -> Result<usize> {
        let device = lab.fabric.wiring.nodes.iter().position(|node| node.name == self.device);
        Ok(device.ok_or_else(|| format!("no node is called {}", self.device))?)
    }

    /// Live only, and with a player of the case's own: `aside` receives the start of the run, on the tester's
    /// thread.
    ///
    /// # Errors
    /// If the daemon cannot be started or dies.
    pub fn run_with(
        &self,
        script: Script,
        aside: impl FnOnce(&RunStart) + Send + 'static,
    ) -> Result<Record> {
        let lab = self.lab();
        let wiring = &lab.fabric.wiring;
        let device = self.node(&lab)?;
        let (daemon, tester) = (0, 1);
        let hosts = 0..wiring.nodes.len();
        let hosts = hosts.map(|node| if node == device { daemon } else { tester }).collect();
        // The kind of a played process is not used.
        let hosting = Hosting { hosts, kinds: vec![wiring.nodes[device].kind, NodeKind::Nic] };
        let socket = udp::open(IpAddr::V4(Ipv4Addr::LOCALHOST)).map_err(Failure::of_host)?;
        let lines = Lines::new(wiring, &hosting.hosts, tester, false)?;
        let neighbours = neighbours(&lab, device)?;
        let scratch = tempfile::tempdir().map_err(Failure::of_host)?;
        let job = Job {
            dilation: self.dilation,
            capture: self.capture.clone(),
            ..Job::new(&self.scenario, &lab, scratch.path())
        };
        let setting = Setup {
            address: Some(socket.address().to_owned()),
            receive_buffer: self.receive_buffer,
            environment: self.environment.clone(),
            ..Setup::new(hosting, Cabling::on_loopback(&job))
        };
        let (realtime, stop) = (job.run.realtime, lab.plan.stop);
        let played = launched::run(&job, setting, move |opening| {
            timer::prepare_thread(realtime);
            aside(opening);
            let peers = opening.peers.iter().map(|address| {
                udp::peer(address).expect("a socket reports an address that can be parsed")
            });
            let (peers, clock, epoch) = (peers.collect(), opening.clock.clone(), opening.epoch);
            let parts = Parts { socket, peers, daemon, lines, neighbours, clock, stop, epoch };
            Tester::new(parts).follow(script, || opening.is_over())
        });
        self.record(played.map_err(died)?)
    }

    /// What the scenario describes, with the changes to a switch.
    fn lab(&self) -> Lab {
        let mut lab = render(&self.scenario);
        let on_stage = lab.switches.iter_mut().filter(|switch| switch.name == self.device);
        on_stage.for_each(self.switch);
        lab
    }

    fn record(&self, played: TesterRun<Found>) -> Result<Record> {
        let TesterRun { mut reports, missed, found } = played;
        let mut evidence = evidence(&reports, missed);
        let accounts = reports.iter().map(|report| &report.exchange);
        evidence.lost = reconcile(accounts.chain([&found.exchange])).lost.total();
        evidence.lateness.merge(&found.lateness);
        let dilation = NonZeroU64::new(self.dilation).unwrap_or(NonZeroU64::MIN);
        let report = reports.pop().ok_or("no daemon has reported")?;
        let received = &report.exchange.received;
        let counts = |link| received.iter().find(|line| line.link == link).map(|line| line.counts);
        let lines = found.exchange.sent.iter().map(|sent| counts(sent.link).unwrap_or_default());
        let logged = report.recording.events.events.iter();
        Ok(Record {
            reading: report.recording.last[0].clone(),
            events: logged.map(|logged| logged.event).collect(),
            lines: lines.collect(),
            seen: found.seen,
            samples: Vec::new(),
            neighbours: found.neighbours,
            live: Some(Live {
                fidelity: judge(&evidence, dilation),
                report,
                exchange: found.exchange,
            }),
        })
    }
}

/// Plays `device` of the scenario `text` among neighbours that follow the script which `write` writes.
///
/// # Errors
/// Those of [`Stage::new`] and [`Stage::run`].
pub fn play(
    level: Level,
    text: &str,
    device: &'static str,
    write: impl FnOnce(&mut Script),
) -> Result<Record> {
    Stage::new(level, text, device)?.play(write)
}

/// The scenario `text`.
///
/// # Errors
/// What is wrong with it.
pub fn read(text: &str) -> Result<Scenario> {
    Ok(Scenario::parse(text, &[]).map_err(|faults| faults.in_file("a case"))?)
}

/// Why a run brought nothing back: a daemon's death is a failure, the rest the host's fault.
pub fn died(error: LaunchError) -> Failure {
    match error.kind {
        FailureKind::Died | FailureKind::Config => Failure::Failed(with_sources(&error)),
        FailureKind::Host | FailureKind::Interrupted => Failure::Inconclusive(with_sources(&error)),
    }
}

/// The neighbours of the device.
fn neighbours(lab: &Lab, device: usize) -> Result<Ends> {
    let link = match device.checked_sub(lab.nics.len()) {
        None => &lab.nics[device].link,
        Some(switch) => &lab.switches[switch].ports[0].link,
    };
    let credits = |rate: BitRate| match &link.control {
        FlowControlConfig::Credit(credits) => {
            Some(Credits::new(credits.data_lanes, refresh(rate, credits.lanes)))
        }
        FlowControlConfig::Pause(_) => None,
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
        let neighbour = Neighbour::new(Some(rate), link.delay, credits(rate));
        all.push((own.port, (id as u32, end, neighbour)));
    }
    all.sort_by_key(|(port, _)| *port);
    Ok(all.into_iter().map(|(_, neighbour)| neighbour).collect())
}

fn refresh(rate: BitRate, lanes: u8) -> Duration {
    proto::units::Bytes::new(u64::from(lanes)).time_at(rate) * REFRESH_SYMBOLS
}

#[cfg(test)]
mod tests;
