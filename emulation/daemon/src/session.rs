//! One run of a daemon, from `hello` to `report`, over any pair of pipes.

use super::admin::{self, AdminHandle, AdminServer, OrderReceiver, ProcessInfo};
use super::protocol::{Hello, ToDaemon, ToLauncher, read_line, write_line};
use super::sockets;
use crate::config::DaemonConfig;
use crate::error::{DaemonError, with_sources};
use crate::privileges;
use emulation::cable::exchange::{Exchange, Session, Sockets};
use emulation::cable::shim;
use emulation::clock::Clock;
use emulation::driver::orders::Order;
use emulation::driver::{Assignment, Beat, FedFrame, Report, Supervisor, Worker, impairers};
use emulation::recorder::Recorder;
use emulation::recorder::snapshot::BinSnapshot;
use emulation::timer::{permitted_priority, prepare_thread};
use proto::device::Device;
use std::any::Any;
use std::io::{BufRead, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

/// Heartbeats that may wait for a slow launcher. Further ones are dropped, since each contains all totals.
const EVENTS_MAX: usize = 64;

/// How a daemon's run ended.
#[derive(Debug)]
pub enum Ending {
    /// The report was sent.
    Reported,
    /// The launcher closed its end of a pipe.
    LauncherGone,
    /// An error ended the run; the launcher got it as `fatal`.
    Failed(DaemonError),
}

/// An input of the main thread.
enum SessionEvent {
    Command(ToDaemon),
    BadCommand(DaemonError),
    LauncherGone,
    Beat(Beat),
    Done(Box<Report>),
    Panicked(String),
}

/// The worker's end of the channel to the main thread.
struct WorkerLink {
    stop: Arc<AtomicBool>,
    events: SyncSender<SessionEvent>,
    /// Administration requests, if administration is configured.
    orders_in: Option<OrderReceiver>,
}

impl Supervisor for WorkerLink {
    fn stop_requested(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn beat(&self, beat: Beat) {
        // With a full channel the launcher misses this heartbeat.
        let _ = self.events.try_send(SessionEvent::Beat(beat));
    }

    fn order(&self) -> Option<Order> {
        self.orders_in.as_ref()?.next()
    }
}

/// Everything a worker is made of, before the launcher starts the run.
struct Hosted {
    config: DaemonConfig,
    devices: Vec<Box<dyn Device>>,
    sockets: Sockets,
    /// The sockets for administration.
    admin: Option<admin::AdminSockets>,
    recorder: Recorder,
    /// Read before the start, since a long capture takes time.
    fed: Vec<FedFrame>,
}

/// Runs a daemon whose standard input is `commands` and whose standard output is `replies`. `snapshots` of bins
/// are sent with the next heartbeat.
pub fn serve(
    config: DaemonConfig,
    devices: Vec<Box<dyn Device>>,
    (recorder, snapshots): (Recorder, Option<Receiver<BinSnapshot>>),
    commands: impl BufRead + Send + 'static,
    mut replies: impl Write,
) -> Ending {
    let sockets = match sockets::open(&config) {
        Ok(sockets) => sockets,
        Err(error) => return fail(replies, DaemonError::io("no socket")(error)),
    };
    let told = config.admin.as_ref();
    let admin = match told.map(|told| admin::AdminSockets::open(told, config.bind)).transpose() {
        Ok(admin) => admin,
        Err(error) => return fail(replies, DaemonError::io("no socket for administration")(error)),
    };
    // Nothing after this needs a right, in particular not the handling of what sockets receive.
    if let Err(error) = privileges::shrink() {
        return fail(replies, error);
    }
    let fed = match config.fed() {
        Ok(fed) => fed,
        Err(error) => return fail(replies, error),
    };
    let hello = Hello {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        shim_version: shim::VERSION,
        address: sockets.address(),
        admin: admin.as_ref().and_then(admin::AdminSockets::address),
        pid: std::process::id(),
        priority: permitted_priority(config.realtime),
    };
    if write_line(&mut replies, &ToLauncher::Hello(hello)).is_err() {
        return Ending::LauncherGone;
    }
    let (sender, events) = sync_channel(EVENTS_MAX);
    read_commands(commands, sender.clone());
    let hosted = Hosted { config, devices, sockets, admin, recorder, fed };
    converse(hosted, &sender, (&events, snapshots), replies)
}

fn converse(
    hosted: Hosted,
    sender: &SyncSender<SessionEvent>,
    (events, snapshots): (&Receiver<SessionEvent>, Option<Receiver<BinSnapshot>>),
    mut replies: impl Write,
) -> Ending {
    let stop = Arc::new(AtomicBool::new(false));
    let mut idle = Some(hosted);
    // The administration server answers until this function returns.
    let mut _admin = None;
    loop {
        // The reader thread and this one hold senders, so the channel cannot close.
        let message = match events.recv().expect("this function's caller holds a sender") {
            SessionEvent::Command(ToDaemon::Stop) => {
                if idle.is_some() {
                    return fail(replies, out_of_order("stop before the start"));
                }
                stop.store(true, Ordering::Relaxed);
                continue;
            }
            SessionEvent::Command(start @ ToDaemon::Start { .. }) => {
                let Some(hosted) = idle.take() else {
                    return fail(replies, out_of_order("a second start"));
                };
                let link =
                    WorkerLink { stop: Arc::clone(&stop), events: sender.clone(), orders_in: None };
                match launch(hosted, start, link) {
                    Ok(admin) => {
                        _admin = admin;
                        continue;
                    }
                    Err(error) => return fail(replies, error),
                }
            }
            SessionEvent::BadCommand(error) => return fail(replies, error),
            SessionEvent::LauncherGone => return Ending::LauncherGone,
            SessionEvent::Panicked(text) => return fail(replies, DaemonError::Panic(text)),
            SessionEvent::Beat(beat) => ToLauncher::Beat(beat),
            SessionEvent::Done(report) => ToLauncher::Report(report),
        };
        for snapshot in snapshots.iter().flat_map(Receiver::try_iter) {
            if write_line(&mut replies, &ToLauncher::Bin(Box::new(snapshot))).is_err() {
                return Ending::LauncherGone;
            }
        }
        let last = matches!(message, ToLauncher::Report(_));
        match write_line(&mut replies, &message) {
            Err(_) => return Ending::LauncherGone,
            Ok(()) if last => return Ending::Reported,
            Ok(()) => {}
        }
    }
}

/// Starts the data plane on a thread of its own, and the administration server.
fn launch(
    hosted: Hosted,
    start: ToDaemon,
    mut link: WorkerLink,
) -> Result<Option<AdminServer>, DaemonError> {
    let ToDaemon::Start { epoch, origin_ns, dilation, peers } = start else {
        return Err(out_of_order("no start"));
    };
    let Hosted { config, devices, sockets, admin, recorder, fed } = hosted;
    let lines = config.lines()?;
    let peers = sockets::peers(&config, &peers)?;
    let clock = Clock::new(origin_ns, dilation);
    let (bare, datagram_max) = (config.bare, config.datagram_max);
    let session = Session { epoch, peers, datagram_max, bare, clock };
    let exchange = Exchange::new(sockets, session, &lines);
    let admin = admin.map(|socket| {
        let (orders_out, orders_in) = admin::orders();
        link.orders_in = Some(orders_in);
        AdminServer::start(socket, AdminHandle::new(info(&config, clock), orders_out))
    });
    let admin = admin.transpose().map_err(DaemonError::io("no thread"))?;
    let assignment = Assignment {
        process: config.process,
        processes: config.processes,
        clock,
        impairers: impairers(&config.wiring, config.seed),
        exchange: exchange.map_err(DaemonError::io("no cables"))?,
        plan: config.plan,
        devices,
        lines,
        recorder,
    };
    let data_plane = move || {
        let run = || {
            let priority = prepare_thread(config.realtime);
            give_up_rights();
            let mut worker = Worker::new(assignment, priority);
            fed.into_iter().for_each(|fed| worker.feed(fed));
            worker.run(&link)
        };
        let last = match catch_unwind(AssertUnwindSafe(run)) {
            Ok(report) => SessionEvent::Done(Box::new(report)),
            Err(payload) => SessionEvent::Panicked(panic_text(payload.as_ref())),
        };
        // If the main thread has ended, there is no receiver.
        let _ = link.events.send(last);
    };
    let spawned = thread::Builder::new().name("data-plane".to_owned()).spawn(data_plane);
    give_up_rights();
    spawned.map(|_| admin).map_err(DaemonError::io("no thread"))
}

/// The constant properties of this process, for administration.
fn info(config: &DaemonConfig, clock: Clock) -> ProcessInfo {
    ProcessInfo {
        lab: config.lab.clone(),
        process: config.process,
        seed: config.seed,
        nodes: config.own_nodes().collect(),
        wiring: config.wiring.clone(),
        clock,
        priority: permitted_priority(config.realtime),
        technology: config.technology,
    }
}

/// Gives up the rights of the calling thread, which it does not need.
fn give_up_rights() {
    privileges::drop_all().expect("dropping rights is always permitted");
}

fn read_commands(commands: impl BufRead + Send + 'static, events: SyncSender<SessionEvent>) {
    thread::spawn(move || {
        give_up_rights();
        for line in commands.lines() {
            let Ok(line) = line else { break };
            let command = match read_line(&line) {
                Ok(command) => SessionEvent::Command(command),
                Err(error) => SessionEvent::BadCommand(error),
            };
            if events.send(command).is_err() {
                return;
            }
        }
        let _ = events.send(SessionEvent::LauncherGone);
    });
}

fn out_of_order(what: &str) -> DaemonError {
    DaemonError::Launcher(format!("the launcher sent {what}"))
}

fn fail(mut replies: impl Write, error: DaemonError) -> Ending {
    // If this fails, the launcher has gone away.
    let _ = write_line(&mut replies, &ToLauncher::Fatal { message: with_sources(&error) });
    Ending::Failed(error)
}

fn panic_text(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| payload.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "no message".to_owned())
}
