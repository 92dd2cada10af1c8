//! A dialogue with the agents of one device: requests in slots of their own, each with what must become of it.

use crate::prelude::*;
use management::attribute::Field;
use management::datagram::{
    CLASS_VERSION, HOP_COUNT, HOP_POINTER, METHOD, RETURN_PATH, SUBNET_DIRECTED, SUBNET_LID_ROUTED,
    TRANSACTION, method,
};
use management::packet::{self, Addresses};
use management::{Datagram, attribute::subnet::port_info};

/// Room for a datagram inwards, its answer, and flow control between them, at 10 Mb/s.
const SLOT: Duration = us(2_500);
/// When the first slot begins: the peers have been seen by then.
const FIRST: Instant = ms(50);
/// Numbers of transactions begin here; devices number their notices from 1.
const TRANSACTIONS: u64 = 0x1000;
/// The time between two sendings of a notice that the dialogue asks for: 4.096 us · 2^20.
const SUBNET_TIMEOUT: u64 = 20;

/// A step that depends on what the device has sent so far.
type LateStep = fn(&mut dyn Bed, Node);

/// A value of a field: the field, its place in a row, and the value.
pub type Value = (Field, usize, u64);

/// The device of a dialogue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Node {
    /// The switch s0 with four ports; the manager has LID 1 and is behind port 1.
    Switch,
    /// The NIC h1; the manager has LID 2.
    Nic,
}

impl Node {
    /// The LID that the dialogue gives it, which is that of the plan.
    pub const fn lid(self) -> Lid {
        Lid::new(if matches!(self, Node::Switch) { 5 } else { 1 })
    }

    /// The LID of the manager.
    pub const fn manager(self) -> Lid {
        Lid::new(if matches!(self, Node::Switch) { 1 } else { 2 })
    }

    /// Its name.
    pub const fn name(self) -> &'static str {
        if matches!(self, Node::Switch) { "s0" } else { "h1" }
    }

    /// Its daemon.
    pub const fn daemon(self) -> &'static str {
        if matches!(self, Node::Switch) { "switchd" } else { "nicd" }
    }

    /// The number of the port with the LID, as PortInfo's modifier.
    pub const fn home(self) -> u32 {
        if matches!(self, Node::Switch) { 0 } else { 1 }
    }
}

/// A datagram that reaches the device.
#[derive(Clone, Debug)]
pub struct Ask {
    /// The datagram.
    pub datagram: Datagram,
    /// By which port it comes.
    pub port: u8,
    /// The addresses of its packet; those that its class has if there are none.
    pub addresses: Option<Addresses>,
}

impl Ask {
    /// A request at port 1. One along a directed route has one hop behind it, and ends here.
    pub fn new(class: u8, method: u8, attribute: u16, modifier: u32) -> Ask {
        let mut datagram = Datagram::request(class, method, attribute, modifier, 0);
        if class == SUBNET_DIRECTED {
            datagram = datagram.along(&[1]);
            datagram.set(&HOP_POINTER, 1);
        }
        Ask { datagram, port: 1, addresses: None }
    }

    /// A directed Get.
    pub fn get(attribute: u16, modifier: u32) -> Ask {
        Ask::new(SUBNET_DIRECTED, method::GET, attribute, modifier)
    }

    /// A directed Set of these values; all others are zero.
    pub fn set(attribute: u16, modifier: u32, values: &[Value]) -> Ask {
        Ask::new(SUBNET_DIRECTED, method::SET, attribute, modifier).data(values)
    }

    /// A directed Set of PortInfo. What only the port with the LID has stays as the dialogue sets it, and so do
    /// counters of violations.
    pub fn port_info(node: Node, port: u32, values: &[Value]) -> Ask {
        let base = [
            (port_info::LID, node.lid().get().into()),
            (port_info::MASTER_SM_LID, node.manager().get().into()),
            (port_info::SUBNET_TIMEOUT, SUBNET_TIMEOUT),
            (port_info::M_KEY_VIOLATIONS, 1),
            (port_info::P_KEY_VIOLATIONS, 1),
            (port_info::Q_KEY_VIOLATIONS, 1),
        ];
        let base = base.map(|(field, value)| (field, 0, value));
        Ask::set(port_info::ATTRIBUTE.id, port, &base).data(values)
    }

    /// The same with these values in its data.
    #[must_use]
    pub fn data(mut self, values: &[Value]) -> Ask {
        for (field, index, value) in values {
            field.set_at(*index, self.datagram.data_mut(), *value);
        }
        self
    }

    /// The same with this value in its header.
    #[must_use]
    pub fn with(mut self, field: Field, value: u64) -> Ask {
        self.datagram.set(&field, value);
        self
    }

    /// The same by another port.
    #[must_use]
    pub fn by(mut self, port: u8) -> Ask {
        self.port = port;
        self
    }

    /// The same in a packet with these addresses.
    #[must_use]
    pub fn addressed(mut self, addresses: Addresses) -> Ask {
        self.addresses = Some(addresses);
        self
    }

    /// The packet that reaches `node`.
    pub fn octets(&self, node: Node) -> BytesMut {
        let (from, to) = (node.manager(), node.lid());
        let addresses = self.addresses.unwrap_or(match self.datagram.class() {
            SUBNET_DIRECTED => Addresses::subnet(Lid::PERMISSIVE, Lid::PERMISSIVE),
            SUBNET_LID_ROUTED => Addresses::subnet(from, to),
            _ => Addresses::general(from, to, 1, VirtualLane::ZERO),
        });
        let mut octets = BytesMut::new();
        packet::emit(&addresses, &self.datagram, &mut octets);
        octets
    }
}

/// What must become of a packet.
#[derive(Clone, Debug)]
pub enum Reply {
    /// It is answered with this status and these values.
    Answer(u16, Vec<Value>),
    /// It ends at the port it came in by, for this reason, and nothing answers.
    Lost(DropReason),
    /// It is on its way out by this port, ends there for this reason, and no copy leaves; a packet of data.
    Discarded(u8, DropReason),
    /// It is taken, and nothing answers.
    Taken,
    /// It leaves by this port with this hop pointer.
    Leaves(u8, u8),
    /// Copies of it leave by these ports on this lane; a packet of data.
    Copies(Vec<u8>, u8),
}

/// One packet and what must become of it.
#[derive(Debug)]
pub struct Turn {
    case: &'static str,
    what: String,
    at: Instant,
    port: u8,
    octets: BytesMut,
    transaction: u64,
    expected: Reply,
}

/// The dialogue.
pub struct Dialogue {
    /// With which device.
    pub node: Node,
    /// What is asked, in the order of time.
    pub turns: Vec<Turn>,
    /// The case to which the next turns belong.
    case: &'static str,
    /// Neighbours that change how they send flow control.
    modes: Vec<(Instant, u8, FcMode)>,
    /// What depends on what the device has sent.
    steps: Vec<(Instant, LateStep)>,
    now: Instant,
}

impl Dialogue {
    /// One without turns.
    pub fn new(node: Node) -> Dialogue {
        Dialogue {
            node,
            turns: Vec::new(),
            case: "",
            modes: Vec::new(),
            steps: Vec::new(),
            now: FIRST,
        }
    }

    /// The next turns belong to `case`.
    pub fn case(&mut self, case: &'static str) {
        self.case = case;
    }

    /// When the next turn begins.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// Lets `length` pass.
    pub fn wait(&mut self, length: Duration) {
        self.now = self.now + length;
    }

    /// The neighbour at `port` sends flow control in this way from now on.
    pub fn mode(&mut self, port: u8, mode: FcMode) {
        self.modes.push((self.now, port, mode));
    }

    /// Does what depends on what the device has sent so far.
    pub fn step(&mut self, step: LateStep) {
        self.steps.push((self.now, step));
    }

    /// The next packet.
    pub fn say(&mut self, what: impl Into<String>, mut ask: Ask, expected: Reply) {
        let transaction = TRANSACTIONS + self.turns.len() as u64;
        ask.datagram.set(&TRANSACTION, transaction);
        let octets = ask.octets(self.node);
        self.put(what, ask.port, octets, transaction, expected);
    }

    /// The next packet, as octets.
    pub fn put(
        &mut self,
        what: impl Into<String>,
        port: u8,
        octets: BytesMut,
        transaction: u64,
        expected: Reply,
    ) {
        let (case, at) = (self.case, self.now);
        self.turns.push(Turn { case, what: what.into(), at, port, octets, transaction, expected });
        self.now = at + SLOT;
    }

    /// A Get that answers these values.
    pub fn read(
        &mut self,
        what: impl Into<String>,
        attribute: u16,
        modifier: u32,
        values: &[Value],
    ) {
        self.say(what, Ask::get(attribute, modifier), Reply::Answer(0, values.to_vec()));
    }

    /// A request that this status refuses.
    pub fn refuse(&mut self, what: impl Into<String>, ask: Ask, status: u16) {
        self.say(what, ask, Reply::Answer(status, Vec::new()));
    }

    /// A request that is granted.
    pub fn grant(&mut self, what: impl Into<String>, ask: Ask) {
        self.refuse(what, ask, 0);
    }

    /// Sends it all.
    pub fn schedule(&self, script: &mut Script) {
        for turn in &self.turns {
            let (port, octets) = (turn.port, turn.octets.clone());
            script.at(turn.at, move |bed| bed.send(port, &octets));
        }
        for (at, port, mode) in self.modes.iter().copied() {
            script.at(at, move |bed| bed.set_mode(port, mode));
        }
        let node = self.node;
        for (at, step) in self.steps.iter().copied() {
            script.at(at, move |bed| step(bed, node));
        }
    }

    /// How many packets of `case` became what they must.
    ///
    /// # Errors
    /// The first that did not, and how.
    pub fn judge(&self, case: &str, record: &Record) -> Result<usize> {
        let mut count = 0;
        for turn in self.turns.iter().filter(|turn| turn.case == case) {
            turn.judge(record).map_err(|failure| {
                failure.of(format!("{}, {} at {:?}", self.node.daemon(), turn.what, turn.at))
            })?;
            count += 1;
        }
        Ok(count)
    }
}

/// A datagram that the device has sent: by which port, and on which addresses.
pub struct Heard {
    /// The port.
    pub port: u8,
    /// When its last bit left.
    pub at: Instant,
    /// Its addresses.
    pub addresses: Addresses,
    /// The datagram.
    pub datagram: Datagram,
}

/// The datagrams that left in the window.
pub fn heard(record: &impl Sightings, window: (Instant, Instant)) -> Vec<Heard> {
    let read = |seen: &Seen| {
        let (addresses, datagram) = packet::parse(&seen.frame.octets).ok()?;
        Some(Heard { port: seen.port, at: seen.at, addresses, datagram })
    };
    record.all_packets().within(window).filter_map(read).collect()
}

impl Turn {
    fn judge(&self, record: &Record) -> Result<()> {
        let window = (self.at, self.at + SLOT);
        let (port, reasons): (u8, &[DropReason]) = match &self.expected {
            Reply::Lost(reason) => (self.port, std::slice::from_ref(reason)),
            Reply::Discarded(port, reason) => (*port, std::slice::from_ref(reason)),
            _ => (self.port, &[]),
        };
        same(format!("drops at port {port}"), record.dropped(port, window), reasons)?;
        match &self.expected {
            Reply::Copies(ports, lane) => return self.copies(record, window, ports, *lane),
            Reply::Discarded(..) => return self.copies(record, window, &[], 0),
            _ => {}
        }
        let mut own = heard(record, window);
        own.retain(|one| one.datagram.get(&TRANSACTION) == self.transaction);
        match &self.expected {
            Reply::Lost(_) | Reply::Discarded(..) | Reply::Taken | Reply::Copies(..) => {
                same("datagrams that leave", own.len(), 0)
            }
            Reply::Answer(status, values) => {
                same("answers", own.len(), 1)?;
                self.answered(&own[0], *status, values)
            }
            Reply::Leaves(port, pointer) => {
                same("datagrams that leave", own.len(), 1)?;
                let found = (own[0].port, own[0].datagram.get(&HOP_POINTER));
                same("port and hop pointer", found, (*port, u64::from(*pointer)))
            }
        }
    }

    /// An answer repeats transaction, attribute and modifier, and returns by the way of its request.
    /// Source: IBTA Vol 1, 13.4.6.
    fn answered(&self, answer: &Heard, status: u16, values: &[Value]) -> Result<()> {
        let (_, asked) = packet::parse(&self.octets).map_err(|reason| reason.name())?;
        let Heard { port, datagram, .. } = answer;
        same("status", datagram.status(), status)?;
        let name = |one: &Datagram| (one.class(), one.attribute(), one.modifier());
        same("class, attribute and modifier", name(datagram), name(&asked))?;
        same("class version", datagram.get(&CLASS_VERSION), asked.get(&CLASS_VERSION))?;
        same("method", datagram.get(&METHOD), u64::from(method::GET_RESPONSE))?;
        same("port of the answer", *port, self.port)?;
        if datagram.is_directed() {
            let count = datagram.get(&HOP_COUNT);
            same("hop pointer of the answer", datagram.get(&HOP_POINTER), count)?;
            let entry = RETURN_PATH.at(count as usize, &datagram.0);
            same("last port of the return path", entry, u64::from(self.port))?;
        }
        for (field, index, value) in values {
            let what = format!("{}[{index}]", field.name);
            same(what, field.at(*index, datagram.data()), *value)?;
        }
        Ok(())
    }

    fn copies(
        &self,
        record: &Record,
        window: (Instant, Instant),
        ports: &[u8],
        lane: u8,
    ) -> Result<()> {
        let data = record.all_packets().within(window).that(|frame| {
            frame.octets.first().is_some_and(|octet| octet >> 4 != VirtualLane::MANAGEMENT.get())
        });
        let mut left: Vec<(u8, u8)> =
            data.map(|seen| (seen.port, seen.frame.octets[0] >> 4)).collect();
        left.sort_unstable();
        let expected: Vec<(u8, u8)> = ports.iter().map(|port| (*port, lane)).collect();
        same("ports and lanes of the copies", left, expected)
    }
}
