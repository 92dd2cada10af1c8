//! Runs the cases with one device, one after the other. A device that dies is started again; nothing ends the suite.

use super::change::{Changes, Target};
use super::device::Device;
use super::file::{DutFile, DutKind, Hook, HookPlace, When};
use super::hooks::Hooks;
use super::nic::{self, Nic};
use super::register::{Case, Script, script};
use super::switch::{Switch, liveness};
use super::verdict::{Check, Fault, Outcome, Verdict};
use emulation::clock::Stopwatch;
use emulation::timer;
use proto::units::Duration;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

/// A device that has died so often is not started again.
const STARTS_MAX: u32 = 5;
/// An inconclusive case is run again, but not more often than this.
const REPEATS_MAX: u32 = 4;
/// Patiences that a device may take until it forwards, or answers.
const SETTLES: u64 = 5;

/// A suite for one device.
pub struct Suite<'a> {
    file: &'a DutFile,
    device: Option<Device>,
    starts: u32,
    evidence: Option<PathBuf>,
    /// Cases begun, so that each uses addresses of its own.
    begun: u16,
    report: &'a mut dyn FnMut(&str),
    /// What the device is.
    pub build: String,
    // Undone after the device has ended.
    _hooks: Hooks,
}

impl<'a> Suite<'a> {
    /// Starts the device and runs its hooks. Captures go to the folder `evidence`.
    ///
    /// # Errors
    /// Why there is no device.
    pub fn start(
        file: &'a DutFile,
        evidence: Option<&Path>,
        allow_hooks: bool,
        report: &'a mut dyn FnMut(&str),
    ) -> Result<Suite<'a>, String> {
        // Host hooks may make the interfaces of the device; those of a machine need it.
        let hooks = Hooks::run(&first(file, HookPlace::Host), allow_hooks, &Target::None, report)?;
        for hook in file.hooks.iter().filter(|hook| hook.when != When::Start) {
            let (place, when) = (hook.place.word(), hook.when.word());
            report(&format!("hook ({place}, in cases of {when}): {}", hook.run.join(" ")));
        }
        let mut device = Device::start(file, report)?;
        run_in_machine(file, &device, report)?;
        if let Some(folder) = evidence {
            std::fs::create_dir_all(folder)
                .map_err(|error| format!("{}: {error}", folder.display()))?;
        }
        // After the device, which would inherit it.
        timer::prepare_thread(true);
        settle(file, &mut device, report);
        let build = device.described();
        let evidence = evidence.map(Path::to_owned);
        let device = Some(device);
        Ok(Suite { file, device, starts: 1, evidence, begun: 0, report, build, _hooks: hooks })
    }

    /// Runs one case.
    pub fn perform(&mut self, case: &Case) -> Outcome {
        let watch = Stopwatch::start();
        let mut repeats = 0;
        let (verdict, observed) = loop {
            let found = self.attempt(case);
            let (verdict, observed) = match found {
                Ok(observed) => (Verdict::Pass, observed),
                Err(Fault { verdict, observed }) => (verdict, observed),
            };
            // A case that lasts as long as it may is tried three times.
            let is_over = watch.seconds() > self.file.tolerance.case.as_ps() as f64 * 2e-12;
            if verdict != Verdict::Inconclusive || repeats == REPEATS_MAX || is_over {
                break (verdict, observed);
            }
            repeats += 1;
        };
        let observed = match repeats {
            0 => observed,
            n => format!("{observed} (run {} times)", n + 1),
        };
        let capture = (verdict != Verdict::NotImplemented).then(|| self.keep(case)).flatten();
        Outcome {
            id: case.id.clone(),
            title: case.title.clone(),
            clause: case.clause.clone(),
            expected: case.expected.clone(),
            verdict,
            observed,
            capture,
            took_ms: (watch.seconds() * 1e3) as u64,
        }
    }

    fn attempt(&mut self, case: &Case) -> Check {
        if let Some(missing) = case.needs.iter().find(|claim| !self.file.claims(claim)) {
            return Err(Fault::absent(format!("the device does not claim {missing}")));
        }
        let script = script(&case.id).ok_or_else(|| Fault::absent("the case has no script"))?;
        let file = self.file;
        self.begun = self.begun.wrapping_add(1);
        let begun = self.begun;
        let device = self.device()?;
        device.line.begin();
        // What it finds is in the pace of the line.
        let _ = echo(file, device);
        device.line.forget();
        let changes = Changes::new(file, device.target());
        let run = AssertUnwindSafe(|| match script {
            Script::Switch(script) => {
                script(&mut Switch::new(file, &mut device.line, begun).changed_by(&changes))
            }
            Script::Nic(script) => match &device.agent {
                Some(agent) => script(&mut Nic::new(file, &mut device.line, agent, begun)?),
                None => Err(Fault::unclear("the NIC has no agent")),
            },
        });
        let found = catch_unwind(run);
        let found = found.unwrap_or_else(|_| Err(Fault::unclear("the tester panicked")));
        match device.is_alive() {
            Ok(()) => found.map_err(|fault| {
                let has_excuse = matches!(fault.verdict, Verdict::Fail | Verdict::Deviation);
                let echoed = has_excuse.then(|| echo(file, device));
                let is_alive = matches!(echoed, Some(Ok(Some(_))));
                let excuse = device.line.pace.excuse(case.timed, is_alive, &file.tolerance);
                match excuse.filter(|_| has_excuse) {
                    Some(why) => Fault::unclear(format!("{}, but {why}", fault.observed)),
                    None => fault,
                }
            }),
            Err(why) => {
                (self.report)(&format!("the device has ended in {}: {why}", case.id));
                Err(Fault::fail(format!("the device has ended: {why}")))
            }
        }
    }

    /// The device; started again if it has died.
    fn device(&mut self) -> Check<&mut Device> {
        let is_dead = self.device.as_mut().is_none_or(|device| device.is_alive().is_err());
        if is_dead {
            if self.starts == STARTS_MAX {
                return Err(Fault::unclear(format!("the device has died {STARTS_MAX} times")));
            }
            self.starts += 1;
            self.device = None;
            let started = Device::start(self.file, self.report);
            let mut device = started.map_err(|why| Fault::unclear(format!("no device: {why}")))?;
            run_in_machine(self.file, &device, self.report).map_err(Fault::unclear)?;
            settle(self.file, &mut device, self.report);
            self.device = Some(device);
        }
        self.device.as_mut().ok_or_else(|| Fault::unclear("no device"))
    }

    /// Writes the capture of the last case.
    fn keep(&mut self, case: &Case) -> Option<String> {
        let folder = self.evidence.as_ref()?;
        let name = format!("{}.pcapng", case.id);
        let comment = format!("{} {}: {}", case.id, case.title, case.clause);
        match self.device.as_ref()?.line.write_capture(&folder.join(&name), &comment) {
            Ok(()) => Some(name),
            Err(error) => {
                (self.report)(&format!("cannot write {name}: {error}"));
                None
            }
        }
    }
}

/// Runs the hooks of a machine. They end with it.
fn run_in_machine(
    file: &DutFile,
    device: &Device,
    report: &mut dyn FnMut(&str),
) -> Result<(), String> {
    let hooks = first(file, HookPlace::Vm);
    match hooks.is_empty() {
        true => Ok(()),
        false => Hooks::run(&hooks, false, &device.target(), report).map(|_| ()),
    }
}

/// The hooks of a place that run before the first case.
fn first(file: &DutFile, place: HookPlace) -> Vec<Hook> {
    let hooks = file.hooks.iter().filter(|hook| hook.place == place && hook.when == When::Start);
    hooks.cloned().collect()
}

/// Asks the device for a sign of life.
fn echo(file: &DutFile, device: &mut Device) -> Check<Option<Duration>> {
    match file.dut.kind {
        DutKind::Switch => liveness::echo(file, &mut device.line, file.tolerance.patience),
        DutKind::Nic => nic::echo(file, &mut device.line, file.tolerance.patience),
    }
}

/// Waits until frames pass between the ports of a switch, or a NIC answers: ports need a carrier first, and some switches
/// listen before they forward. Says so if that does not happen; the cases will show what is missing.
fn settle(file: &DutFile, device: &mut Device, report: &mut dyn FnMut(&str)) {
    let limit = file.tolerance.patience * SETTLES;
    let name = &file.dut.name;
    let line = &mut device.line;
    line.begin();
    let found = match file.dut.kind {
        DutKind::Switch => liveness::ready(file, line, limit).map(|missing| {
            let pairs: Vec<String> =
                missing.iter().map(|(from, to)| format!("{from} to {to}")).collect();
            (!pairs.is_empty()).then(|| format!("no frame passes from port {}", pairs.join(", ")))
        }),
        DutKind::Nic => {
            let answer = (0..SETTLES)
                .find_map(|_| nic::echo(file, line, file.tolerance.patience).transpose());
            answer.transpose().map(|took| match took {
                Some(_) => None,
                None => Some("it does not answer ARP".to_owned()),
            })
        }
    };
    match found {
        Ok(None) => {}
        Ok(Some(why)) => {
            report(&format!("{name}: {why} within {} s", limit.as_ps() / 1_000_000_000_000));
        }
        Err(fault) => report(&format!("{name}: {}", fault.observed)),
    }
}
