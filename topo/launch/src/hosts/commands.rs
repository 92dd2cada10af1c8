//! What a run starts on hosts: each command at its instant, until the end of the run at the latest.

use super::output::{Output, Writer};
use super::{Exec, Hosts, exec_on};
use emulation::clock::{Clock, monotonic_ns};
use emulation::timer;
use host::HostError;
use host::exec::ExecRequest;
use results::run_directory::hosts::HostRun;
use scenario::host::Command;
use scenario::render::Lab;
use std::cell::RefCell;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Longest wait before a thread looks whether the run was given up.
const PATIENCE_NS: u64 = 50_000_000;

/// The commands of a run, one thread each.
#[derive(Debug)]
pub(crate) struct Commands {
    threads: Vec<JoinHandle<HostRun>>,
    given_up: Arc<AtomicBool>,
}

/// One command on its way.
struct Errand {
    host: usize,
    name: String,
    exec: Exec,
    folder: PathBuf,
    command: Command,
    start_ns: u64,
    end_ns: u64,
    given_up: Arc<AtomicBool>,
}

impl Commands {
    /// Starts each command at its instant by `clock`.
    pub fn begin(hosts: &Hosts, lab: &Lab, clock: &Clock) -> Commands {
        let given_up = Arc::new(AtomicBool::new(false));
        let all = lab.fabric.hosts.iter().enumerate();
        let errands = all.filter_map(|(index, host)| {
            let command = host.command.clone()?;
            Some(Errand {
                host: index,
                name: host.name.clone(),
                exec: exec_on(host.kind),
                folder: hosts.folder.clone(),
                start_ns: clock.wall_ns_of(command.start),
                end_ns: clock.wall_ns_of(lab.plan.stop),
                command,
                given_up: Arc::clone(&given_up),
            })
        });
        let threads = errands.map(|errand| std::thread::spawn(move || errand.run())).collect();
        Commands { threads, given_up }
    }

    /// Waits for all commands, which end with the run at the latest.
    pub fn end(mut self) -> Vec<HostRun> {
        let threads = std::mem::take(&mut self.threads);
        threads.into_iter().map(|thread| thread.join().expect("no command panics")).collect()
    }
}

impl Drop for Commands {
    fn drop(&mut self) {
        self.given_up.store(true, Ordering::Relaxed);
    }
}

impl Errand {
    fn run(self) -> HostRun {
        let output = RefCell::new(Output::default());
        let exit = self.exit(&output);
        let output = output.into_inner();
        let (octets, left_out) = (output.octets(), output.left_out);
        HostRun { host: self.host, exit, output: output.text(), octets, left_out }
    }

    /// Waits for the start, and runs the command.
    fn exit(&self, output: &RefCell<Output>) -> Result<i32, String> {
        while monotonic_ns() < self.start_ns {
            if self.given_up.load(Ordering::Relaxed) {
                return Err("the run was given up".to_owned());
            }
            timer::wait(None, self.start_ns.min(monotonic_ns() + PATIENCE_NS));
        }
        let request = ExecRequest { argv: self.command.words.clone(), ..ExecRequest::default() };
        let limit = Duration::from_nanos(self.end_ns.saturating_sub(monotonic_ns()));
        let (mut stdout, mut stderr) = (Writer(output), Writer(output));
        let (folder, name) = (&self.folder, &self.name);
        let input = Box::new(std::io::empty());
        let exit =
            (self.exec)(folder, name, &request, input, &mut stdout, &mut stderr, Some(limit));
        exit.map_err(|error| match error {
            HostError::Late { .. } => "it had not ended when the run did".to_owned(),
            error => error.to_string(),
        })
    }
}
