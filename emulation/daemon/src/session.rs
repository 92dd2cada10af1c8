//! One run of a daemon, from `hello` to `report`, over any pair of pipes.

mod data_plane;

use super::admin::{AdminHandle, AdminServer, AdminSockets, ORDERS_MAX, ProcessInfo};
use super::clients::{ClientServer, ClientSockets, WorkerEnd};
use super::orders::{OrderReceiver, orders};
use super::protocol::{Hello, LINE_MAX, ToDaemon, ToLauncher, next_line, read_line, write_line};
use crate::config::DaemonConfig;
use crate::error::{Context, DaemonError, with_sources};
use crate::privileges::{self, Scope};
use crate::sockets;
use data_plane::DataPlane;
use emulation::cable::Carrier;
use emulation::cable::exchange::Sockets;
use emulation::cable::shim;
use emulation::clock::Clock;
use emulation::driver::orders::Order;
use emulation::driver::{Beat, Change, FedFrame, Report, Supervisor};
use emulation::exact::Secret;
use emulation::recorder::Recorder;
use emulation::timer::{self, permitted_priority};
use proto::device::{Device, ManagementDatagram};
use proto::units::Instant;
use std::any::Any;
use std::io::{self, BufRead, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
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
    LauncherGone,
    Beat(Beat),
    Done(Box<Report>),
    /// The data plane has nothing to do any more.
    Released,
    Failed(DaemonError),
}

/// The worker's end of the channel to the main thread.
struct WorkerLink {
    stop: Arc<AtomicBool>,
    events: SyncSender<SessionEvent>,
    /// Changes that the launcher announces.
    changes: Receiver<Change>,
    /// Administration requests, if administration is configured.
    orders_in: Option<OrderReceiver>,
    /// Programs beside devices, if the fabric is managed.
    clients: Option<WorkerEnd>,
}

impl WorkerLink {
    fn new(
        stop: Arc<AtomicBool>,
        events: SyncSender<SessionEvent>,
        changes: Receiver<Change>,
    ) -> WorkerLink {
        WorkerLink { stop, events, changes, orders_in: None, clients: None }
    }
}

impl Supervisor for WorkerLink {
    fn stop_requested(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn beat(&self, beat: Beat) {
        // With a full channel the launcher misses this heartbeat.
        let _ = self.events.try_send(SessionEvent::Beat(beat));
    }

    fn change(&self) -> Option<Change> {
        // Without a message this reads two words.
        self.changes.try_recv().ok()
    }

    fn order(&self) -> Option<Order> {
        let requested = self.orders_in.as_ref().and_then(OrderReceiver::next);
        requested.or_else(|| self.clients.as_ref()?.orders.next())
    }

    fn alarm(&self) -> Option<BorrowedFd<'_>> {
        Some(self.clients.as_ref()?.orders.alarm()?.as_fd())
    }

    fn deliver(&self, device: usize, datagram: ManagementDatagram) {
        if let Some(clients) = &self.clients {
            clients.deliver(device, datagram);
        }
    }
}

/// Everything a worker is made of, before the launcher starts the run.
struct Hosted {
    config: DaemonConfig,
    devices: Vec<Box<dyn Device>>,
    sockets: Sockets,
    /// The sockets for administration.
    admin: Option<AdminSockets>,
    /// The sockets for programs beside devices.
    clients: Option<ClientSockets>,
    recorder: Recorder,
    /// Read before the start, since a long capture takes time.
    fed: Vec<FedFrame>,
}

impl Hosted {
    fn hello(&self) -> Hello {
        Hello {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            shim_version: shim::VERSION,
            address: self.sockets.address(),
            admin: self.admin.as_ref().and_then(AdminSockets::address),
            pid: std::process::id(),
            priority: permitted_priority(self.config.realtime),
        }
    }
}

/// Runs a daemon, whose rights `scope` gives up, whose standard input is `commands` and whose standard output is `replies`.
pub fn serve(
    config: DaemonConfig,
    devices: Vec<Box<dyn Device>>,
    scope: Scope,
    commands: impl BufRead + Send + 'static,
    mut replies: impl Write,
) -> Ending {
    let prepared = prepare(config, devices, scope);
    let ended = prepared.and_then(|hosted| converse(hosted, commands, &mut replies));
    ended.unwrap_or_else(|error| {
        // If this fails, the launcher has gone away.
        let _ = write_line(&mut replies, &ToLauncher::Fatal { message: with_sources(&error) });
        Ending::Failed(error)
    })
}

/// Opens the sockets and reads the frames to be fed.
fn prepare(
    config: DaemonConfig,
    devices: Vec<Box<dyn Device>>,
    scope: Scope,
) -> Result<Hosted, DaemonError> {
    let sockets = sockets::open(&config).context("no socket")?;
    let admin = config.admin.as_ref().map(|admin| AdminSockets::open(admin, config.bind));
    let admin = admin.transpose().context("no socket for administration")?;
    let clients = config.clients.as_ref().map(ClientSockets::open);
    let clients = clients.transpose().context("no sockets for programs that manage the fabric")?;
    // Nothing after this needs a right, in particular not the handling of what sockets receive. No thread runs before
    // this: that of a capture starts with the recorder.
    let (folders, feed) = (config.folders(), config.feed.as_deref());
    let lacks = privileges::shrink(&sockets.rebound(), &folders, feed, scope)?;
    // One of many daemons on this host says it.
    lacks.iter().filter(|_| config.process == 0).for_each(|sentence| eprintln!("{sentence}"));
    let recorder = config.make_recorder()?;
    let fed = config.fed()?;
    // Changes of the clock must reach the worker in time beside other work.
    timer::wake_promptly();
    Ok(Hosted { config, devices, sockets, admin, clients, recorder, fed })
}

/// Sends the hello, and then handles events until the end.
fn converse(
    mut hosted: Hosted,
    commands: impl BufRead + Send + 'static,
    replies: &mut impl Write,
) -> Result<Ending, DaemonError> {
    if write_line(&mut *replies, &ToLauncher::Hello(hosted.hello())).is_err() {
        return Ok(Ending::LauncherGone);
    }
    let snapshots = hosted.recorder.listen();
    let (sender, events) = sync_channel(EVENTS_MAX);
    read_commands(commands, sender.clone()).context("no thread")?;
    let stop = Arc::new(AtomicBool::new(false));
    let (changes_out, changes) = channel();
    let addressing = Addressing::of(&hosted.config);
    let mut idle = Some((hosted, changes));
    // These servers answer until this function returns.
    let mut _servers = None;
    let mut has_reported = false;
    loop {
        let message = match events.recv().expect("this function holds a sender") {
            SessionEvent::Command(ToDaemon::Start {
                epoch,
                origin_ns,
                dilation,
                peers,
                begin,
                secret,
            }) => {
                let (hosted, changes) =
                    idle.take().ok_or_else(|| out_of_order("a second start"))?;
                let (stop, events) = (Arc::clone(&stop), sender.clone());
                let link = WorkerLink::new(stop, events, changes);
                let clock = Clock::new(origin_ns, dilation);
                let start = Start { epoch, clock, peers, begin, secret };
                _servers = Some(launch(hosted, &start, link)?);
                continue;
            }
            SessionEvent::Command(_) if idle.is_some() => {
                return Err(out_of_order("a command before the start"));
            }
            SessionEvent::Command(ToDaemon::Stop) => {
                stop.store(true, Ordering::Relaxed);
                continue;
            }
            SessionEvent::Command(command) => {
                // After the end of the run there is no receiver, and nothing left to change.
                let _ = changes_out.send(addressing.change(command)?);
                continue;
            }
            SessionEvent::Released => return Ok(Ending::Reported),
            SessionEvent::LauncherGone if has_reported => return Ok(Ending::Reported),
            SessionEvent::Failed(error) => return Err(error),
            SessionEvent::LauncherGone => return Ok(Ending::LauncherGone),
            SessionEvent::Beat(beat) => ToLauncher::Beat(Box::new(beat)),
            SessionEvent::Done(report) => ToLauncher::Report(report),
        };
        has_reported |= matches!(message, ToLauncher::Report(_));
        let bins = snapshots.iter().flat_map(Receiver::try_iter);
        for message in bins.map(|bin| ToLauncher::Bin(Box::new(bin))).chain([message]) {
            if write_line(&mut *replies, &message).is_err() {
                return Ok(Ending::LauncherGone);
            }
        }
    }
}

/// What addresses of peers mean.
struct Addressing {
    carrier: Carrier,
    exact: bool,
    processes: usize,
}

impl Addressing {
    fn of(config: &DaemonConfig) -> Addressing {
        let DaemonConfig { carrier, exact, processes, .. } = *config;
        Addressing { carrier, exact, processes }
    }

    /// The change that a command announces.
    fn change(&self, command: ToDaemon) -> Result<Change, DaemonError> {
        Ok(match command {
            ToDaemon::ChangeClock(change) => Change::Clock(change),
            ToDaemon::Gone { process } if process < self.processes => Change::Gone(process),
            ToDaemon::Replaced { process, address, adapters } if process < self.processes => {
                let peer = sockets::peer(self.carrier, self.exact, &address)?;
                Change::Replaced(process, peer, adapters)
            }
            other => return Err(out_of_order(&format!("{other:?}"))),
        })
    }
}

/// What the launcher says at the start.
struct Start {
    epoch: u32,
    clock: Clock,
    peers: Vec<String>,
    begin: Instant,
    /// The secret of promises, with exact pace.
    secret: Option<Secret>,
}

/// The servers of a daemon, where it has them.
type Servers = (Option<AdminServer>, Option<ClientServer>);

/// Starts the data plane on a thread of its own, and the servers.
fn launch(mut hosted: Hosted, start: &Start, mut link: WorkerLink) -> Result<Servers, DaemonError> {
    let clients = hosted.clients.take().map(|sockets| ClientServer::start(sockets, &hosted.config));
    let (clients, end) = clients.transpose().context("no thread")?.unzip();
    link.clients = end;
    let admin = hosted.admin.take().map(|sockets| {
        let (orders_out, orders_in) = orders(ORDERS_MAX, None);
        link.orders_in = Some(orders_in);
        let tally = clients.as_ref().map(|clients| Arc::clone(&clients.tally));
        let info = ProcessInfo::new(hosted.config.clone(), start.clock.clone(), tally);
        AdminServer::start(sockets, AdminHandle::new(info, orders_out))
    });
    let admin = admin.transpose().context("no thread")?;
    let data_plane = DataPlane::new(hosted, start)?;
    let data_plane = move || {
        // If the main thread has ended, there is no receiver.
        let tell = |event| drop(link.events.send(event));
        let run = || data_plane.run(&link, |report| tell(SessionEvent::Done(Box::new(report))));
        tell(match catch_unwind(AssertUnwindSafe(run)) {
            Ok(Ok(())) => SessionEvent::Released,
            Ok(Err(error)) => SessionEvent::Failed(error),
            Err(payload) => {
                let text = panic_text(payload.as_ref());
                SessionEvent::Failed(DaemonError::Fault(format!("the data plane panicked: {text}")))
            }
        });
    };
    let spawned = thread::Builder::new().name("data-plane".to_owned()).spawn(data_plane);
    privileges::drop_all();
    spawned.map(|_| (admin, clients)).context("no thread")
}

fn read_commands(
    mut commands: impl BufRead + Send + 'static,
    events: SyncSender<SessionEvent>,
) -> io::Result<()> {
    let read = move || {
        privileges::drop_all();
        while let Ok(Some(line)) = next_line(&mut commands, LINE_MAX) {
            let command = match read_line(&line) {
                Ok(command) => SessionEvent::Command(command),
                Err(error) => SessionEvent::Failed(error),
            };
            if events.send(command).is_err() {
                return;
            }
        }
        let _ = events.send(SessionEvent::LauncherGone);
    };
    thread::Builder::new().name("commands".to_owned()).spawn(read).map(drop)
}

fn out_of_order(what: &str) -> DaemonError {
    DaemonError::Fault(format!("the launcher sent {what}"))
}

fn panic_text(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| payload.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "no message".to_owned())
}
