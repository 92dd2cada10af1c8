//! Tests of the server for clients, as a value.

use super::*;
use crate::clients::message::kind;
use crate::clients::{Alarm, WorkerEnd};
use management::attribute::subnet::sm_info;
use management::datagram::{ADMINISTRATION, CONGESTION, SUBNET_DIRECTED, SUBNET_LID_ROUTED};

const RETRY: Retry = Retry { subnet_ns: 200, general_ns: 500 };
const USER: u32 = 1000;

struct Rig {
    server: Server,
    tally: Arc<Tally>,
}

fn rig() -> Rig {
    let tally = Arc::new(Tally::default());
    let place = |device, name: &str, guid| Place { device, name: name.to_owned(), guid, port: 1 };
    let switch = Place { port: 0, ..place(4, "s1", 0x30) };
    let places = vec![place(0, "h1", 0x10), place(3, "h2", 0x20), switch];
    Rig { server: Server::new("b", USER, RETRY, places, Arc::clone(&tally)), tally }
}

fn sender(name: String) -> Sender {
    Sender { name, user: USER, process: 9 }
}

fn request(kind: u32) -> Control {
    Control { client: 0, kind, length: 0, data: [0; 64] }
}

fn connect(node: &str, is_manager: bool) -> Control {
    let mut request = request(kind::CONNECT);
    request.data[8] = u8::from(is_manager);
    request.data[12..12 + node.len()].copy_from_slice(node.as_bytes());
    request
}

impl Rig {
    /// The answer to a request of client `id`, if it comes at once.
    fn control(&mut self, id: u32, request: &Control) -> Option<Control> {
        self.server.control(&request.emit(), &sender(format!("b:ctl{id}")), 0);
        self.answer(id)
    }

    fn answer(&mut self, id: u32) -> Option<Control> {
        match self.server.poll()? {
            Action::Answer(name, answer) => {
                assert_eq!(name, format!("b:ctl{id}"));
                Some(answer)
            }
            Action::Order(order) => {
                self.server.put_back(Action::Order(order));
                None
            }
        }
    }

    /// Connects a client to a node, and returns its slot.
    fn connected(&mut self, id: u32, node: &str) -> usize {
        let answer = self.control(id, &connect(node, false)).expect("an answer");
        assert_eq!((answer.kind, answer.node().as_str()), (kind::CONNECT, node));
        answer.number(0) as usize
    }

    fn order(&mut self) -> Option<Order> {
        match self.server.poll()? {
            Action::Order(order) => Some(order),
            Action::Answer(name, _) => panic!("an answer to {name}"),
        }
    }

    /// The datagram that the worker is to send, with its device.
    fn sent(&mut self) -> Option<(usize, ManagementDatagram)> {
        match self.order()? {
            Order::Manage(device, message) => Some((device, message)),
            _ => panic!("a claim"),
        }
    }

    fn write(&mut self, slot: usize, id: u32, data: &Data, now_ns: u64) {
        self.server.data(slot, &data.emit(), &sender(format!("b:in{id}")), now_ns);
    }

    /// What the client in `slot` would read.
    fn read(&mut self, slot: usize) -> Vec<Data> {
        let read = std::cell::RefCell::new(Vec::new());
        self.server.send_backlogs(|at, _, octets| {
            if at == slot {
                read.borrow_mut().push(Data::parse(octets).expect("a message"));
            }
            at == slot
        });
        read.into_inner()
    }
}

fn data(datagram: Datagram) -> Data {
    Data { destination: 7, source: 0, pair: 0, source_pair: 0, status: 0, length: 256, datagram }
}

fn get(class: u8, attribute: u16, transaction: u64) -> Data {
    data(Datagram::request(class, method::GET, attribute, 0, transaction))
}

fn answered(message: &ManagementDatagram) -> ManagementDatagram {
    let mut datagram = Datagram(*message.octets);
    datagram.answer(0);
    message_of(&datagram, message.peer.get(), message.queue_pair.get())
}

#[test]
fn a_client_attaches_by_name_port_or_guid_and_others_are_refused() {
    for (name, is_there) in [
        ("h1", true),
        ("h2:1", true),
        ("0x20", true),
        ("0x21", true),
        ("s1:0", true),
        ("s1:1", false),
        ("h3", false),
        ("0x22", false),
    ] {
        let mut rig = rig();
        let answer = rig.control(5, &connect(name, false)).expect("an answer");
        let expected = if is_there { kind::CONNECT } else { kind::REFUSED };
        assert_eq!(answer.kind, expected, "{name}");
    }
    let mut rig = rig();
    assert_eq!(rig.control(5, &connect("", false)).expect("an answer").node(), "h1");
    let foreign = Sender { user: USER + 1, ..sender("b:ctl6".to_owned()) };
    rig.server.control(&connect("h1", false).emit(), &foreign, 0);
    assert_eq!(rig.answer(6).expect("an answer").kind, kind::REFUSED);
    let root = Sender { user: 0, ..sender("b:ctl7".to_owned()) };
    rig.server.control(&connect("h1", false).emit(), &root, 0);
    assert_eq!(rig.answer(7).expect("an answer").kind, kind::CONNECT);
    assert_eq!(rig.control(8, &request(kind::P_KEYS)).expect("an answer").kind, kind::REFUSED);
    for octets in [&[][..], &[0; 80], &[0; 500]] {
        rig.server.control(octets, &sender("b:ctl9".to_owned()), 0);
    }
    rig.server.control(&request(1).emit(), &sender("c:ctl9".to_owned()), 0);
    let counts = rig.tally.read();
    assert_eq!((counts.connected, counts.refused, counts.malformed), (2, 2, 4));
}

#[test]
fn an_answer_goes_to_the_client_that_waits_for_it_and_to_no_other() {
    let mut rig = rig();
    let (first, second) = (rig.connected(5, "h1"), rig.connected(6, "h1"));
    let asked = get(SUBNET_LID_ROUTED, 0x11, 0x0000_0003_0000_0001);
    rig.write(first, 5, &asked, 0);
    rig.write(second, 6, &asked, 0);
    let sent = [rig.sent(), rig.sent()].map(|sent| sent.expect("two orders"));
    assert_eq!(sent.each_ref().map(|(device, message)| (*device, message.peer.get())), [(0, 7); 2]);
    let [one, two] = sent.map(|(_, message)| answered(&message));
    assert_ne!(one.octets[8..16], two.octets[8..16]);
    // From another device nothing is an answer.
    rig.server.receive(3, &two);
    rig.server.receive(0, &two);
    rig.server.receive(0, &two);
    assert_eq!(rig.read(first), []);
    let [read] = &rig.read(second)[..] else { panic!("one answer") };
    assert_eq!((read.source, read.status, read.length), (7, 0, 256));
    assert_eq!(read.datagram.get(&TRANSACTION) as u32, 1);
    rig.server.receive(0, &one);
    assert_eq!(rig.read(first).len(), 1);
    let counts = rig.tally.read();
    assert_eq!((counts.sent, counts.unasked, counts.delivered), (2, 2, 2));
    // A client that has gone leaves nothing behind.
    rig.write(first, 5, &asked, 0);
    let (_, message) = rig.sent().expect("an order");
    assert_eq!(rig.control(5, &request(kind::DISCONNECT)).expect("an answer").kind, 2);
    let third = rig.connected(8, "h1");
    rig.server.receive(0, &answered(&message));
    assert_eq!((rig.read(first), rig.read(third)), (vec![], vec![]));
}

#[test]
fn a_request_is_sent_three_times_and_returned_as_timed_out() {
    let mut rig = rig();
    let slot = rig.connected(5, "h2");
    let asked = get(SUBNET_LID_ROUTED, 0x11, 4);
    rig.write(slot, 5, &asked, 10);
    let first = rig.sent().expect("an order");
    for now_ns in [209, 210, 409, 410, 609] {
        rig.server.timeout(now_ns);
        let expected = (now_ns == 210 || now_ns == 410).then(|| first.clone());
        assert_eq!(rig.sent(), expected, "{now_ns}");
        assert_eq!(rig.read(slot), []);
    }
    rig.server.timeout(610);
    assert_eq!(rig.sent(), None);
    let [read] = &rig.read(slot)[..] else { panic!("the request") };
    assert_eq!((read.status, read.source, read.datagram.is_response()), (110, 7, false));
    assert_eq!(read.datagram.get(&TRANSACTION) as u32, 4);
    rig.server.receive(3, &answered(&first.1));
    let counts = rig.tally.read();
    assert_eq!((counts.repeated, counts.expired, counts.unasked), (2, 1, 1));
    assert_eq!(rig.server.due_ns(), u64::MAX);
    // Others wait longer, and end in the order of their instants.
    rig.write(slot, 5, &get(CONGESTION, 0x11, 5), 620);
    rig.write(slot, 5, &asked, 620);
    assert_eq!((rig.sent().is_some(), rig.sent().is_some()), (true, true));
    rig.server.timeout(820);
    rig.server.timeout(1_020);
    assert_eq!((rig.sent().is_some(), rig.sent().is_some(), rig.sent()), (true, true, None));
    rig.server.timeout(1_220);
    assert_eq!((rig.sent().is_some(), rig.read(slot).len()), (true, 1));
    rig.server.timeout(1_720);
    rig.server.timeout(2_220);
    assert_eq!((rig.sent().is_some(), rig.read(slot).len()), (true, 1));
    // What has no answer does not wait for one.
    let trap = Datagram::request(SUBNET_LID_ROUTED, method::TRAP_REPRESS, 2, 0, 4);
    rig.write(slot, 5, &data(trap), 700);
    assert!(rig.sent().is_some() && rig.server.due_ns() == u64::MAX);
}

#[test]
fn control_requests_are_answered_from_the_attributes_of_the_device() {
    for (asked, attribute, octets) in [
        (kind::VENDOR, 0x11, &[0x02, 0, 0, 0][..]),
        (kind::NODE_INFO, 0x11, &[0, 0, 0, 0]),
        (kind::PORT_INFO, 0x15, &[0, 0, 0, 0]),
        (kind::P_KEYS, 0x16, &[0, 0, 0, 0]),
    ] {
        let mut rig = rig();
        rig.connected(5, "s1");
        assert_eq!(rig.control(5, &request(asked)), None);
        let (device, message) = rig.sent().expect("an order");
        let datagram = Datagram(*message.octets);
        assert_eq!(
            (device, datagram.class(), datagram.attribute()),
            (4, SUBNET_DIRECTED, attribute)
        );
        let mut answer = answered(&message);
        // The last octet of the vendor in NodeInfo.
        answer.octets[64 + 39] = 2;
        rig.server.receive(4, &answer);
        let answer = rig.answer(5).expect("an answer");
        assert_eq!((answer.kind, &answer.data[..4]), (asked, octets));
        if asked != kind::VENDOR {
            assert_eq!(answer.data[39], 2);
        }
    }
    let mut rig = rig();
    rig.connected(5, "h2");
    assert_eq!(rig.control(5, &request(kind::GUID)).expect("at once").data[7], 0x21);
    assert_eq!(rig.control(5, &request(11)).expect("at once").kind, kind::REFUSED);
    assert_eq!(rig.control(5, &request(kind::PORT)), None);
    for now_ns in [200, 400, 600] {
        assert!(rig.sent().is_some());
        rig.server.timeout(now_ns);
    }
    assert_eq!(rig.answer(5).expect("no client hangs").kind, kind::REFUSED);
}

#[test]
fn one_manager_at_a_place_gets_what_is_for_managers() {
    let mut rig = rig();
    let (first, second) = (rig.connected(5, "h1"), rig.connected(6, "h1"));
    let asked = get(SUBNET_LID_ROUTED, sm_info::ATTRIBUTE.id, 4).datagram;
    let message = message_of(&asked, 9, 0);
    rig.server.receive(0, &message);
    assert_eq!((rig.read(first), rig.read(second)), (vec![], vec![]));
    assert_eq!(rig.tally.read().unasked, 1);
    let mut claim = request(kind::SET_MANAGER);
    claim.data[0] = 1;
    rig.server.control(&claim.emit(), &sender("b:ctl6".to_owned()), 0);
    assert!(matches!(rig.order(), Some(Order::Claim(0, true))));
    assert_eq!(rig.answer(6).expect("an answer").kind, kind::SET_MANAGER);
    assert_eq!(rig.control(5, &claim).expect("an answer").kind, kind::REFUSED);
    assert_eq!(rig.control(7, &connect("h1", true)).expect("an answer").kind, kind::REFUSED);
    rig.server.receive(0, &message);
    rig.server.receive(3, &message);
    assert_eq!((rig.read(first).len(), rig.read(second).len()), (0, 1));
    // A manager that dies gives its place up.
    rig.server.bury(|_| true);
    assert!(rig.server.poll().is_none());
    rig.server.bury(|_| false);
    assert!(matches!(rig.order(), Some(Order::Claim(0, false))));
    assert_eq!(rig.tally.read().left, 2);
}

#[test]
fn an_answer_of_subnet_administration_keeps_its_length_over_the_fabric() {
    let mut rig = rig();
    let (manager, client) = (rig.connected(5, "h1"), rig.connected(6, "h2"));
    rig.write(client, 6, &get(ADMINISTRATION, 0x35, 4), 0);
    let (_, request) = rig.sent().expect("an order");
    let mut answer = Datagram(*request.octets);
    answer.answer(0);
    answer.0[26] = 1;
    answer.0[100..].fill(0xaa);
    rig.write(manager, 5, &Data { length: 120, ..data(answer) }, 0);
    let (device, segment) = rig.sent().expect("an order");
    assert_eq!((device, segment.octets[25], segment.octets[119]), (0, 1, 0xaa));
    assert_eq!(segment.octets[120..], [0; 136]);
    rig.server.receive(3, &segment);
    let (device, acknowledgement) = rig.sent().expect("an acknowledgement");
    assert_eq!((device, acknowledgement.peer), (3, segment.peer));
    let read = rig.read(client);
    assert_eq!(read.iter().map(|read| read.length).collect::<Vec<_>>(), [120]);
    // The segment is repeated until it is acknowledged, and acknowledged again.
    rig.server.timeout(500);
    assert_eq!(rig.sent(), Some((0, segment.clone())));
    rig.server.receive(3, &segment);
    assert!(rig.sent().is_some() && rig.read(client).is_empty());
    rig.server.receive(0, &acknowledgement);
    rig.server.timeout(10_000);
    assert_eq!((rig.sent(), rig.read(manager)), (None, vec![]));
    let unasked = rig.tally.read().unasked;
    rig.server.receive(0, &acknowledgement);
    let mut nonsense = segment;
    nonsense.octets[25] = 9;
    rig.server.receive(3, &nonsense);
    assert_eq!(rig.tally.read().unasked, unasked + 2);
}

#[test]
fn datagrams_that_the_server_has_no_room_for_are_counted() {
    let mut rig = rig();
    let slot = rig.connected(5, "h1");
    rig.write(slot, 5, &get(SUBNET_LID_ROUTED, 0x11, 1), 0);
    let (_, message) = rig.sent().expect("an order");
    let (delivered, queue) = std::sync::mpsc::sync_channel(1);
    let (_, orders) = crate::orders::orders(1, None);
    let (alarm, tally) = (Alarm::new().expect("a descriptor"), Arc::new(Tally::default()));
    let alarm = Arc::new(alarm);
    let end = WorkerEnd { orders, delivered, alarm, tally: Arc::clone(&tally) };
    (0..3).for_each(|_| end.deliver(0, message.clone()));
    assert_eq!((tally.read().overrun, queue.try_iter().count()), (2, 1));
}

#[test]
fn floods_and_violations_are_bounded_and_counted() {
    let mut rig = rig();
    let slot = rig.connected(5, "h1");
    for transaction in 0..2_000 {
        rig.write(slot, 5, &get(SUBNET_LID_ROUTED, 0x11, transaction), 0);
    }
    assert_eq!(rig.tally.read().overrun, 2_000 - WAITING_MAX as u64);
    let (mut sent, mut last) = (0, None);
    while let Some((_, message)) = rig.sent() {
        rig.server.receive(0, &answered(&message));
        (sent, last) = (sent + 1, Some(message));
    }
    assert_eq!((sent, rig.read(slot).len()), (WAITING_MAX, WAITING_MAX.min(BACKLOG_MAX)));
    rig.server.receive(0, &answered(&last.expect("some were sent")));
    // Answers for a client that reads none.
    let overrun = rig.tally.read().overrun;
    for transaction in 0..BACKLOG_MAX as u64 + 3 {
        rig.write(slot, 5, &get(SUBNET_LID_ROUTED, 0x11, transaction), 0);
        let (_, message) = rig.sent().expect("an order");
        rig.server.receive(0, &answered(&message));
    }
    assert_eq!((rig.tally.read().overrun - overrun, rig.read(slot).len()), (3, BACKLOG_MAX));
    let good = get(SUBNET_LID_ROUTED, 0x11, 1).emit();
    let own = sender("b:in5".to_owned());
    rig.server.data(slot, &good[1..], &own, 0);
    rig.server.data(slot, &good, &sender("b:in6".to_owned()), 0);
    rig.server.data(slot + 1, &good, &own, 0);
    rig.server.data(CLIENTS_MAX, &good, &own, 0);
    rig.server.data(slot, &good, &Sender { user: USER + 1, ..own.clone() }, 0);
    assert!(rig.server.poll().is_none());
    let counts = rig.tally.read();
    assert_eq!((counts.malformed, counts.refused, counts.unasked), (4, 1, 1));
    // Every slot is taken, and one that is free again is used.
    for id in 100..100 + CLIENTS_MAX as u32 - 1 {
        rig.connected(id, "h1");
    }
    assert_eq!(rig.control(99, &connect("h1", false)).expect("an answer").kind, kind::REFUSED);
    rig.control(100, &request(kind::DISCONNECT));
    rig.connected(99, "h1");
    // A process with the number of a dead client takes its place.
    assert_eq!(rig.connected(99, "h2"), rig.connected(99, "h2"));
}
