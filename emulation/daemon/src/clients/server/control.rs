//! Requests on the control socket: they attach a client to a device, and ask about it.

use super::{
    Action, CLIENT_SHIFT, CLIENTS_MAX, Client, Key, Server, Subject, is_called, message_of,
};
use crate::clients::message::{CONTROL_DATA, Control, kind};
use emulation::cable::abstract_socket::Sender;
use emulation::driver::orders::Order;
use management::Datagram;
use management::attribute::subnet::{node_info, p_key_table, port_info};
use management::datagram::{SUBNET_DIRECTED, method};
use proto::ids::Lid;
use std::collections::VecDeque;

/// The agent number, in bits 32 to 47 of a transaction, of questions of this server; the library has up to 32 agents.
const OWN_AGENT: u64 = 0xffff;
/// Octets of a name in an answer, without the closing zero.
const NAME_MAX: usize = 31;

impl Server {
    /// Handles what the control socket has received.
    pub fn control(&mut self, octets: &[u8], sender: &Sender, now_ns: u64) {
        let id = sender.name.strip_prefix(&self.base).and_then(|name| name.strip_prefix(":ctl"));
        let id = id.and_then(|id| id.parse().ok());
        let (Some(id), Some(request)) = (id, Control::parse(octets)) else {
            return self.tally.malformed.add();
        };
        let answer = match self.clients.iter().position(|one| is_called(one, id)) {
            _ if !self.admits(sender) => Some(request.refused()),
            _ if request.kind == kind::CONNECT => Some(self.connect(id, sender.process, request)),
            Some(client) => self.serve(client, request, now_ns),
            None => Some(request.refused()),
        };
        if let Some(answer) = answer {
            self.answer(id, answer);
        }
    }

    pub(super) fn answer(&mut self, id: u32, answer: Control) {
        if answer.kind == kind::REFUSED {
            self.tally.refused.add();
        }
        self.actions.push_back(Action::Answer(self.socket("ctl", id), answer));
    }

    fn connect(&mut self, id: u32, process: i32, request: Control) -> Control {
        let name = request.node();
        let place = match name.is_empty() {
            true => (!self.places.is_empty()).then_some(0),
            false => self.places.iter().position(|place| place.is_called(&name)),
        };
        let is_manager = request.number(8) != 0;
        // A process with this number that has died said nothing.
        if let Some(before) = self.clients.iter().position(|one| is_called(one, id)) {
            self.remove(before);
        }
        let mut slots = (0..CLIENTS_MAX).map(|step| (self.next + step) % CLIENTS_MAX);
        let slot = slots.find(|slot| self.clients[*slot].is_none());
        let (Some(place), Some(slot)) = (place, slot) else { return request.refused() };
        if is_manager && self.manager_at(place).is_some() {
            return request.refused();
        }
        self.next = slot + 1;
        self.tally.connected.add();
        let client =
            Client { id, process, place, is_manager: false, waiting: 0, backlog: VecDeque::new() };
        self.clients[slot] = Some(client);
        if is_manager {
            self.claim(slot, true);
        }
        let mut answer = request.with(&(slot as u32).to_ne_bytes());
        if name.is_empty() {
            let name = self.places[place].name.as_bytes();
            let length = name.len().min(NAME_MAX);
            answer.data[12..12 + length].copy_from_slice(&name[..length]);
        }
        answer
    }

    pub(super) fn manager_at(&self, place: usize) -> Option<usize> {
        let is_it = |one: &Client| one.place == place && one.is_manager;
        self.clients.iter().position(|one| one.as_ref().is_some_and(is_it))
    }

    /// Makes a client the manager at its place, or ends that.
    pub(super) fn claim(&mut self, client: usize, on: bool) {
        let Some(one) = &mut self.clients[client] else { return };
        if one.is_manager != on {
            one.is_manager = on;
            let device = self.places[one.place].device;
            self.actions.push_back(Action::Order(Order::Claim(device, on)));
        }
    }

    /// Serves a request of a client; `None` if the answer comes later.
    fn serve(&mut self, client: usize, request: Control, now_ns: u64) -> Option<Control> {
        let place = self.clients[client].as_ref().map_or(0, |one| one.place);
        match request.kind {
            kind::DISCONNECT => {
                self.remove(client);
                Some(request)
            }
            kind::SET_MANAGER => {
                let on = request.number(0) != 0;
                if on && self.manager_at(place).is_some_and(|manager| manager != client) {
                    return Some(request.refused());
                }
                self.claim(client, on);
                Some(request)
            }
            kind::GUID => Some(request.with(&self.places[place].port_guid().to_be_bytes())),
            kind::VENDOR | kind::NODE_INFO => {
                self.ask(client, node_info::ATTRIBUTE.id, request, now_ns)
            }
            kind::PORT | kind::GID | kind::PORT_INFO => {
                self.ask(client, port_info::ATTRIBUTE.id, request, now_ns)
            }
            kind::P_KEYS => self.ask(client, p_key_table::ATTRIBUTE.id, request, now_ns),
            _ => Some(request.refused()),
        }
    }

    /// Asks the agents of the client's device for an attribute.
    fn ask(
        &mut self,
        client: usize,
        attribute: u16,
        request: Control,
        now_ns: u64,
    ) -> Option<Control> {
        self.questions = self.questions.wrapping_add(1);
        let transaction =
            (client as u64) << CLIENT_SHIFT | OWN_AGENT << 32 | u64::from(self.questions);
        let datagram = Datagram::request(SUBNET_DIRECTED, method::GET, attribute, 0, transaction);
        let message = message_of(&datagram.along(&[]), Lid::PERMISSIVE.get(), 0);
        let key = Key::Request { class: SUBNET_DIRECTED, transaction };
        self.wait(key, client, Subject::Question(request), &message, now_ns);
        self.order(client, message);
        None
    }

    /// Answers a request on the control socket by an attribute of the client's device.
    pub(super) fn reply(&mut self, client: usize, request: Control, datagram: &Datagram) {
        let Some(one) = &self.clients[client] else { return };
        let (id, place, info) = (one.id, &self.places[one.place], datagram.data());
        let answer = match request.kind {
            kind::VENDOR => {
                let fields = [node_info::VENDOR_ID, node_info::DEVICE_ID, node_info::REVISION];
                let words = fields.map(|field| (field.get(info) as u32).to_ne_bytes());
                // After four octets of padding comes the firmware, which is not that of a device.
                request.with(&[0; 24]).with(words.as_flattened())
            }
            kind::PORT => {
                let lid = (port_info::LID.get(info) as u16).to_ne_bytes();
                request.with(&[lid[0], lid[1], port_info::PORT_STATE.get(info) as u8])
            }
            kind::GID => {
                let prefix = port_info::GID_PREFIX.get(info).to_be_bytes();
                request.with([prefix, place.port_guid().to_be_bytes()].as_flattened())
            }
            // NodeInfo is shorter than the data.
            _ => request.with(&[0; CONTROL_DATA]).with(info),
        };
        self.answer(id, answer);
    }
}
