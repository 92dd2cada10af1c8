//! The server for clients of libumad2sim as a value: messages and time go in; orders, answers and datagrams come out.
//!
//! A request of client n gets n in the upper 16 bits of its transaction, so that the answer finds its way back. A client
//! gets only answers that it waits for, and what is for the subnet manager if it has claimed that place: the library
//! ends its program at anything else. The library has no time-outs, so the server repeats requests, and returns them with
//! ETIMEDOUT when no answer comes.

use super::message::{Control, Data};
use super::tally::Tally;
use emulation::cable::abstract_socket::Sender;
use emulation::driver::orders::Order;
use management::Datagram;
use management::datagram::{SUBNET_DIRECTED, SUBNET_LID_ROUTED, TRANSACTION, method};
use management::segment::{self, Segment};
use proto::device::ManagementDatagram;
use proto::ids::{Lid, QueuePairNumber};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// Clients at once.
pub const CLIENTS_MAX: usize = 64;
/// Requests of a client that wait for an answer at most: a manager has up to 500 out at once.
const WAITING_MAX: usize = 1024;
/// Datagrams that wait at most for a client that does not read.
const BACKLOG_MAX: usize = 1024;
/// Sendings of a request.
const SENDINGS: u32 = 3;
/// The errno of a request without an answer.
const TIMED_OUT: u32 = 110;
/// Where the client's number is in a transaction.
const CLIENT_SHIFT: u32 = 48;
/// A device beside which clients can be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Index of the device among the worker's devices.
    pub device: usize,
    /// Its name.
    pub name: String,
    /// Its node GUID.
    pub guid: u64,
    /// The number of its port for management.
    pub port: u8,
}

impl Place {
    fn port_guid(&self) -> u64 {
        self.guid + u64::from(self.port)
    }

    /// Whether a client means this place: by name, name and port, or GUID.
    fn is_called(&self, name: &str) -> bool {
        let guid = name.strip_prefix("0x").and_then(|hex| u64::from_str_radix(hex, 16).ok());
        let with_port = || format!("{}:{}", self.name, self.port);
        guid.is_some_and(|guid| guid == self.guid || guid == self.port_guid())
            || name == self.name
            || name == with_port()
    }
}

/// Wall time until a request without an answer is sent again.
#[derive(Clone, Copy, Debug)]
pub struct Retry {
    /// On VL15, which has no credits.
    pub subnet_ns: u64,
    /// On QP1, whose packets wait for credits as data do.
    pub general_ns: u64,
}

impl Retry {
    fn of(&self, message: &ManagementDatagram) -> u64 {
        match message.octets[1] {
            SUBNET_LID_ROUTED | SUBNET_DIRECTED => self.subnet_ns,
            _ => self.general_ns,
        }
    }
}

/// Something for the thread to do.
pub enum Action {
    /// Send an answer to the control socket of this name.
    Answer(String, Control),
    /// Give an order to the worker.
    Order(Order),
}

#[derive(Debug)]
struct Client {
    /// The number in the names of its sockets.
    id: u32,
    process: i32,
    place: usize,
    is_manager: bool,
    /// Requests without an answer.
    waiting: usize,
    backlog: VecDeque<Vec<u8>>,
}

/// What a transaction is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    Request { class: u8, transaction: u64 },
    Segment { transaction: u64 },
}

#[derive(Debug)]
enum Subject {
    /// A request of a client.
    Request(Box<Data>),
    /// An answer of a client that the far end acknowledges.
    Segment,
    /// A request on the control socket.
    Question(Control),
}

#[derive(Debug)]
struct Waiting {
    client: usize,
    subject: Subject,
    message: ManagementDatagram,
    due_ns: u64,
    sendings_left: u32,
}

/// The server of one process.
pub struct Server {
    base: String,
    user: u32,
    retry: Retry,
    places: Vec<Place>,
    clients: Vec<Option<Client>>,
    /// The slot that is tried first.
    next: usize,
    questions: u32,
    waiting: BTreeMap<Key, Waiting>,
    due: BTreeSet<(u64, Key)>,
    actions: VecDeque<Action>,
    tally: Arc<Tally>,
}

/// Whether a request with this method has an answer.
fn has_answer(method: u8) -> bool {
    !matches!(method, method::SEND | method::TRAP | method::TRAP_REPRESS)
}

impl Server {
    /// A server for programs of `user` and root, whose sockets have names with `base`, beside these places.
    pub fn new(
        base: &str,
        user: u32,
        retry: Retry,
        places: Vec<Place>,
        tally: Arc<Tally>,
    ) -> Server {
        Server {
            base: base.to_owned(),
            user,
            retry,
            places,
            clients: std::iter::repeat_with(|| None).take(CLIENTS_MAX).collect(),
            next: 0,
            questions: 0,
            waiting: BTreeMap::new(),
            due: BTreeSet::new(),
            actions: VecDeque::new(),
            tally,
        }
    }

    fn admits(&self, sender: &Sender) -> bool {
        const ROOT: u32 = 0;
        sender.user == self.user || sender.user == ROOT
    }

    /// The name of a socket of client `id`.
    fn socket(&self, way: &str, id: u32) -> String {
        format!("{}:{way}{id}", self.base)
    }

    fn order(&mut self, client: usize, message: ManagementDatagram) {
        if let Some(one) = &self.clients[client] {
            let device = self.places[one.place].device;
            self.actions.push_back(Action::Order(Order::Manage(device, message)));
        }
    }

    fn wait(
        &mut self,
        key: Key,
        client: usize,
        subject: Subject,
        message: &ManagementDatagram,
        now_ns: u64,
    ) {
        let due_ns = now_ns + self.retry.of(message);
        let (message, sendings_left) = (message.clone(), SENDINGS - 1);
        let waiting = Waiting { client, subject, message, due_ns, sendings_left };
        let before = self.waiting.insert(key, waiting);
        self.due.insert((due_ns, key));
        self.count_waiting(client, 1);
        before.iter().for_each(|before| self.count_waiting(before.client, -1));
    }

    fn count_waiting(&mut self, client: usize, change: isize) {
        if let Some(one) = &mut self.clients[client] {
            one.waiting = one.waiting.saturating_add_signed(change);
        }
    }

    fn take(&mut self, key: Key) -> Option<Waiting> {
        let waiting = self.waiting.remove(&key)?;
        self.count_waiting(waiting.client, -1);
        Some(waiting)
    }

    /// Handles what the data socket of slot `client` has received.
    pub fn data(&mut self, client: usize, octets: &[u8], sender: &Sender, now_ns: u64) {
        let Some(Some(one)) = self.clients.get(client) else { return self.tally.malformed.add() };
        if sender.name != self.socket("in", one.id) {
            return self.tally.malformed.add();
        }
        if !self.admits(sender) {
            return self.tally.refused.add();
        }
        let Some(mut data) = Data::parse(octets) else { return self.tally.malformed.add() };
        // Beyond its length the library sends what its stack happened to hold.
        data.datagram.0[data.length as usize..].fill(0);
        let datagram = &mut data.datagram;
        let mut key = None;
        if datagram.is_response() {
            let transaction = datagram.get(&TRANSACTION);
            if segment::divide(datagram, data.length) {
                key = Some((Key::Segment { transaction }, Subject::Segment));
            }
        } else {
            let low = datagram.get(&TRANSACTION) & ((1 << CLIENT_SHIFT) - 1);
            let transaction = (client as u64) << CLIENT_SHIFT | low;
            datagram.set(&TRANSACTION, transaction);
            if has_answer(datagram.method()) {
                let key_of = Key::Request { class: datagram.class(), transaction };
                key = Some((key_of, Subject::Request(Box::new(data.clone()))));
            }
        }
        let message = message_of(&data.datagram, data.destination, data.pair);
        if let Some((key, subject)) = key {
            if one.waiting >= WAITING_MAX {
                return self.tally.overrun.add();
            }
            self.wait(key, client, subject, &message, now_ns);
        }
        self.tally.sent.add();
        self.order(client, message);
    }

    /// Handles a datagram that a device has for a program beside it.
    pub fn receive(&mut self, device: usize, message: &ManagementDatagram) {
        let mut datagram = Datagram(*message.octets);
        let transaction = datagram.get(&TRANSACTION);
        let mut length = Datagram::LEN as u64;
        match segment::of(&datagram) {
            Segment::None => {}
            Segment::Whole(octets) => {
                length = octets;
                datagram.0[octets as usize..].fill(0);
                let acknowledgement = segment::acknowledge(&datagram);
                let message =
                    message_of(&acknowledgement, message.peer.get(), message.queue_pair.get());
                self.actions.push_back(Action::Order(Order::Manage(device, message)));
            }
            Segment::Acknowledgement => {
                let taken = self.take(Key::Segment { transaction });
                return taken.map_or_else(|| self.tally.unasked.add(), |_| ());
            }
            Segment::Other => return self.tally.unasked.add(),
        }
        let is_here = |client: usize| {
            self.clients[client].as_ref().is_some_and(|one| self.places[one.place].device == device)
        };
        let client = if datagram.is_response() {
            let key = Key::Request { class: datagram.class(), transaction };
            match self.waiting.get(&key) {
                Some(waiting) if is_here(waiting.client) => {}
                _ => return self.tally.unasked.add(),
            }
            let Some(Waiting { client, subject, .. }) = self.take(key) else { return };
            if let Subject::Question(request) = subject {
                return self.reply(client, request, &datagram);
            }
            client
        } else {
            let place = self.places.iter().position(|place| place.device == device);
            match place.and_then(|place| self.manager_at(place)) {
                Some(client) => client,
                None => return self.tally.unasked.add(),
            }
        };
        let own = if message.peer == Lid::PERMISSIVE { Lid::PERMISSIVE.get() } else { 0 };
        let source_pair = message.queue_pair.get();
        let pair = u32::from(!datagram.is_subnet_management());
        let (source, status) = (message.peer.get(), 0);
        self.deliver(
            client,
            &Data { destination: own, source, pair, source_pair, status, length, datagram },
        );
    }

    fn deliver(&mut self, client: usize, data: &Data) {
        let Some(one) = &mut self.clients[client] else { return };
        if one.backlog.len() >= BACKLOG_MAX {
            return self.tally.overrun.add();
        }
        one.backlog.push_back(data.emit());
        self.tally.delivered.add();
    }

    /// Sends the backlog of every client: `send` takes a slot, the name of the client's socket and the octets, and
    /// returns false if the socket is full. Returns whether anything is left.
    pub fn send_backlogs(&mut self, send: impl Fn(usize, &str, &[u8]) -> bool) -> bool {
        let (base, mut is_left) = (&self.base, false);
        for (slot, client) in self.clients.iter_mut().enumerate() {
            let Some(client) = client.as_mut().filter(|one| !one.backlog.is_empty()) else {
                continue;
            };
            let name = format!("{base}:in{}", client.id);
            while client.backlog.front().is_some_and(|octets| send(slot, &name, octets)) {
                client.backlog.pop_front();
            }
            is_left |= !client.backlog.is_empty();
        }
        is_left
    }

    /// Forgets a client.
    pub fn remove(&mut self, client: usize) {
        self.claim(client, false);
        if self.clients[client].take().is_some() {
            self.tally.left.add();
            self.waiting.retain(|_, waiting| waiting.client != client);
        }
    }

    /// Removes clients whose process has ended, by `is_alive`.
    pub fn bury(&mut self, is_alive: impl Fn(i32) -> bool) {
        for client in 0..CLIENTS_MAX {
            // Without a number the process cannot be seen from here.
            let process = self.clients[client].as_ref().map(|one| one.process);
            if process.is_some_and(|process| process > 0 && !is_alive(process)) {
                self.remove(client);
            }
        }
    }

    /// When [`Server::timeout`] is needed next.
    pub fn due_ns(&self) -> u64 {
        self.due.first().map_or(u64::MAX, |(due_ns, _)| *due_ns)
    }

    /// Repeats or returns requests that have waited long enough.
    pub fn timeout(&mut self, now_ns: u64) {
        while let Some((due_ns, key)) =
            self.due.first().copied().filter(|(due_ns, _)| *due_ns <= now_ns)
        {
            self.due.pop_first();
            let Some(waiting) = self.waiting.get_mut(&key).filter(|it| it.due_ns == due_ns) else {
                continue;
            };
            if waiting.sendings_left > 0 {
                waiting.sendings_left -= 1;
                waiting.due_ns = now_ns + self.retry.of(&waiting.message);
                self.due.insert((waiting.due_ns, key));
                let (client, message) = (waiting.client, waiting.message.clone());
                self.tally.repeated.add();
                self.order(client, message);
                continue;
            }
            let Some(Waiting { client, subject, .. }) = self.take(key) else { continue };
            self.tally.expired.add();
            match (subject, &self.clients[client]) {
                (Subject::Request(data), _) => {
                    let (source, source_pair) = (data.destination, data.pair);
                    self.deliver(client, &Data { source, source_pair, status: TIMED_OUT, ..*data });
                }
                (Subject::Question(request), Some(one)) => self.answer(one.id, request.refused()),
                _ => {}
            }
        }
    }

    /// The next thing to do.
    pub fn poll(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// Puts back what cannot be done now.
    pub fn put_back(&mut self, action: Action) {
        self.actions.push_front(action);
    }
}

fn is_called(client: &Option<Client>, id: u32) -> bool {
    client.as_ref().is_some_and(|one| one.id == id)
}

fn message_of(datagram: &Datagram, peer: u16, pair: u32) -> ManagementDatagram {
    let (peer, queue_pair) = (Lid::new(peer), QueuePairNumber::truncate(pair));
    ManagementDatagram { peer, queue_pair, octets: Box::new(datagram.0) }
}

mod control;

#[cfg(test)]
mod tests;
