//! Runs the cases with one device, one after the other. A device that dies is started again; nothing ends the suite.

use super::device::Device;
use super::file::DutFile;
use super::hooks::Hooks;
use super::nic::Nic;
use super::register::{Case, Script, script};
use super::switch::Switch;
use super::verdict::{Check, Fault, Outcome, Verdict};
use emulation::clock::Stopwatch;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

/// A device that has died so often is not started again.
const STARTS_MAX: u32 = 5;
/// An inconclusive case is run again, but not more often than this.
const REPEATS_MAX: u32 = 2;

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
        let (of_host, of_vm): (Vec<_>, Vec<_>) =
            file.hooks.iter().cloned().partition(|hook| hook.place.word() == "host");
        let hooks = Hooks::run(&of_host, allow_hooks, None, report)?;
        let device = Device::start(file, report)?;
        if !of_vm.is_empty() {
            let machine = device.machine();
            Hooks::run(&of_vm, allow_hooks, machine, report)?;
        }
        if let Some(folder) = evidence {
            std::fs::create_dir_all(folder)
                .map_err(|error| format!("{}: {error}", folder.display()))?;
        }
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
            if verdict != Verdict::Inconclusive || repeats == REPEATS_MAX {
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
        let run = AssertUnwindSafe(|| match script {
            Script::Switch(script) => script(&mut Switch::new(file, &mut device.line, begun)),
            Script::Nic(script) => match &device.agent {
                Some(agent) => script(&mut Nic::new(file, &mut device.line, agent, begun)?),
                None => Err(Fault::unclear("the NIC has no agent")),
            },
        });
        let found = catch_unwind(run);
        let found = found.unwrap_or_else(|_| Err(Fault::unclear("the tester panicked")));
        match device.is_alive() {
            Ok(()) => found,
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
            self.device = Some(started.map_err(|why| Fault::unclear(format!("no device: {why}")))?);
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
