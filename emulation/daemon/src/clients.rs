//! Programs of libumad2sim beside devices, such as OpenSM: the server that gives them a port of the fabric.
//!
//! ```text
//!   program ── libumad2sim ── control and data sockets ──▶ this thread ── orders ──▶ worker ── device ── frames
//!                             (abstract names)             ◀── bounded queue ───────
//! ```
//!
//! Every process of a managed lab has one server for the devices that it hosts. The sockets are opened before the
//! daemon gives up its rights: one for control, and one for each client. The thread never holds up the worker: it gives
//! orders through a bounded queue, and it leaves messages in the sockets while that queue is full.
//!
//! Reading order: [`message`], [`server`]. [`tally`] counts.

use crate::config::{ClientsConfig, DaemonConfig};
use crate::orders::{OrderReceiver, OrderSender, orders};
use crate::privileges;
use emulation::alarm::{Alarm, WaitSet};
use emulation::cable::abstract_socket::{AbstractSocket, Sender, Sent};
use emulation::clock::monotonic_ns;
use emulation::timer::{self, stand_back};
use message::{Control, Data};
use proto::device::ManagementDatagram;
use server::{Action, CLIENTS_MAX, Place, Retry, Server};
use std::cell::Cell;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use tally::Tally;

mod message;
mod server;
mod tally;

pub use tally::ClientCounts;
pub(crate) use tally::Tally as ClientTally;

/// Orders that may wait for the worker.
const ORDERS_MAX: usize = 256;
/// Datagrams that may wait for this thread.
const DELIVERED_MAX: usize = 4096;
/// Messages read from one socket, and from all, in one turn.
const SHARE: usize = 16;
const READ_MAX: usize = 64;
/// The least time between two turns while sockets hold more than a share.
const TURN_NS: u64 = 1_000_000;
/// The longest wait while a queue is full.
const RETRY_NS: u64 = 2_000_000;
/// The interval at which clients are looked for whose process has ended.
const LOOK_NS: u64 = 1_000_000_000;
/// The device entry of a configuration that makes a device managed.
const MANAGEMENT: &str = "management";

/// The open sockets, before the run starts.
#[derive(Debug)]
pub(crate) struct ClientSockets {
    config: ClientsConfig,
    control: AbstractSocket,
    data: Vec<AbstractSocket>,
}

impl ClientSockets {
    /// Binds all names.
    ///
    /// # Errors
    /// If another process has them.
    pub fn open(config: &ClientsConfig) -> io::Result<ClientSockets> {
        let base = &config.socket;
        let control = AbstractSocket::bind(&format!("{base}:ctl"))?;
        let data = (0..CLIENTS_MAX).map(|slot| AbstractSocket::bind(&format!("{base}:out{slot}")));
        Ok(ClientSockets {
            config: config.clone(),
            control,
            data: data.collect::<io::Result<_>>()?,
        })
    }
}

/// The places of a process: its devices with management.
fn places(config: &DaemonConfig) -> Vec<Place> {
    let place = |(device, (node, table)): (usize, (usize, &toml::Table))| {
        let guid = table.get(MANAGEMENT)?.get("guid")?.as_integer()?;
        let node = &config.wiring.nodes[node];
        let port = u8::from(node.kind == emulation::wiring::NodeKind::Nic);
        Some(Place { device, name: node.name.clone(), guid: guid as u64, port })
    };
    config.own_nodes().zip(&config.devices).enumerate().filter_map(place).collect()
}

/// The worker's end.
#[derive(Debug)]
pub(crate) struct WorkerEnd {
    /// Orders of clients.
    pub orders: OrderReceiver,
    delivered: SyncSender<(usize, ManagementDatagram)>,
    alarm: Arc<Alarm>,
    tally: Arc<Tally>,
}

impl WorkerEnd {
    /// Hands a datagram over, or counts that the queue is full.
    pub fn deliver(&self, device: usize, datagram: ManagementDatagram) {
        match self.delivered.try_send((device, datagram)) {
            Ok(()) => self.alarm.ring(),
            Err(_) => self.tally.overrun.add(),
        }
    }
}

/// The thread of the server, which ends when this is dropped.
#[derive(Debug)]
pub(crate) struct ClientServer {
    /// Its counts.
    pub tally: Arc<Tally>,
    over: Arc<AtomicBool>,
    alarm: Arc<Alarm>,
    thread: Option<JoinHandle<()>>,
}

impl ClientServer {
    /// Starts to serve the clients at `sockets`, and returns the end for the worker.
    ///
    /// # Errors
    /// If the system refuses a descriptor or a thread.
    pub fn start(
        sockets: ClientSockets,
        config: &DaemonConfig,
    ) -> io::Result<(ClientServer, WorkerEnd)> {
        let (alarm, tally) = (Arc::new(Alarm::new()?), Arc::new(Tally::default()));
        let (orders_out, orders) = orders(ORDERS_MAX, Some(Arc::new(Alarm::new()?)));
        let (delivered_in, delivered) = sync_channel(DELIVERED_MAX);
        let over = Arc::new(AtomicBool::new(false));
        let user = nix::unistd::geteuid().as_raw();
        let ClientsConfig { socket, retry_ms, general_retry_ms } = &sockets.config;
        let retry = Retry {
            subnet_ns: retry_ms.saturating_mul(1_000_000),
            general_ns: general_retry_ms.saturating_mul(1_000_000),
        };
        let server = Server::new(socket, user, retry, places(config), Arc::clone(&tally));
        let sources = [alarm.as_fd(), sockets.control.as_fd()];
        let sources = sources.into_iter().chain(sockets.data.iter().map(AsFd::as_fd));
        let set = WaitSet::of(sources)?;
        let desk = Desk {
            server,
            sockets,
            set,
            alarm: Arc::clone(&alarm),
            orders_out,
            delivered,
            over: Arc::clone(&over),
        };
        let thread = std::thread::Builder::new().name("clients".to_owned());
        let thread = thread.spawn(move || {
            stand_back();
            privileges::drop_all();
            desk.run();
        })?;
        let end = WorkerEnd {
            orders,
            delivered: delivered_in,
            alarm: Arc::clone(&alarm),
            tally: Arc::clone(&tally),
        };
        Ok((ClientServer { tally, over, alarm, thread: Some(thread) }, end))
    }
}

impl Drop for ClientServer {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        self.alarm.ring();
        if let Some(thread) = self.thread.take() {
            // A panic there has been printed, and does not affect the run.
            let _ = thread.join();
        }
    }
}

/// What the thread works with.
struct Desk {
    server: Server,
    sockets: ClientSockets,
    set: WaitSet,
    alarm: Arc<Alarm>,
    orders_out: OrderSender,
    delivered: Receiver<(usize, ManagementDatagram)>,
    over: Arc<AtomicBool>,
}

impl Desk {
    fn run(mut self) {
        let mut look_ns = 0;
        while !self.over.load(Ordering::Relaxed) {
            let now_ns = monotonic_ns();
            self.alarm.silence();
            let delivered = self.delivered.try_iter().take(DELIVERED_MAX);
            delivered.for_each(|(device, datagram)| self.server.receive(device, &datagram));
            self.server.timeout(now_ns);
            if now_ns >= look_ns {
                look_ns = now_ns + LOOK_NS;
                self.server.bury(|process| Path::new(&format!("/proc/{process}")).exists());
            }
            let is_free = self.act();
            let has_more = is_free && self.read(now_ns);
            let is_free = self.act();
            let is_left = self.send_backlogs();
            if has_more || !is_free {
                timer::wait(None, now_ns + TURN_NS);
            } else {
                let nap_ns = if is_left { RETRY_NS } else { LOOK_NS };
                timer::wait(Some(self.set.as_fd()), self.server.due_ns().min(now_ns + nap_ns));
            }
        }
    }

    /// Reads the sockets. Returns whether one of them holds more.
    fn read(&mut self, now_ns: u64) -> bool {
        let mut octets = [0; Data::LEN + 1];
        let mut left = READ_MAX;
        for place in self.set.ready() {
            // Place 0 is the alarm.
            let Some(place) = place.checked_sub(1) else { continue };
            for turn in 0.. {
                if turn == SHARE || left == 0 {
                    return true;
                }
                let socket = match place.checked_sub(1) {
                    None => &self.sockets.control,
                    Some(slot) => &self.sockets.data[slot],
                };
                let Some((length, sender)) = socket.receive(&mut octets) else { break };
                left -= 1;
                self.handle(place, &octets[..length], &sender, now_ns);
            }
        }
        false
    }

    fn handle(&mut self, place: usize, octets: &[u8], sender: &Sender, now_ns: u64) {
        match place.checked_sub(1) {
            None => self.server.control(octets, sender, now_ns),
            Some(slot) => self.server.data(slot, octets, sender, now_ns),
        }
    }

    /// Executes the actions of the server. Returns false if the worker takes no more orders now.
    fn act(&mut self) -> bool {
        while let Some(action) = self.server.poll() {
            match action {
                // A client whose control socket is full or gone does not wait for the answer.
                Action::Answer(name, answer) => {
                    self.sockets.control.send(&answer.emit(), &name);
                }
                Action::Order(order) => {
                    use std::sync::mpsc::TrySendError::{Disconnected, Full};
                    match self.orders_out.send(order) {
                        // After the end of the run there is no worker.
                        Ok(()) | Err(Disconnected(_)) => {}
                        Err(Full(order)) => {
                            self.server.put_back(Action::Order(order));
                            return false;
                        }
                    }
                }
            }
        }
        true
    }

    fn send_backlogs(&mut self) -> bool {
        let gone = Cell::new(None);
        let data = &self.sockets.data;
        let is_left =
            self.server.send_backlogs(|slot, name, octets| match data[slot].send(octets, name) {
                Sent::Whole => true,
                Sent::Full => false,
                Sent::Gone => {
                    gone.set(Some(slot));
                    false
                }
            });
        if let Some(slot) = gone.take() {
            self.server.remove(slot);
        }
        is_left
    }
}

/// Octets of the longest message; shorter buffers would let longer ones pass.
const _: () = assert!(Data::LEN > Control::LEN);
