//! The agent of nicd: verbs on queue pairs of the host stack, called from outside.
//!
//! [`HostStack::answer`] executes one line of the protocol. It never waits: a poll takes what is there. `pairs` has
//! queue pairs and their attributes, `posting` work requests, `completions` what they become.

mod completions;
mod pairs;
mod posting;

use super::HostStack;
use super::frames::TrafficClass;
use super::memory::Memory;
use completions::CompletionQueue;
use pairs::Pair;
use proto::ids::QueuePairNumber;
use proto::units::Instant;
use std::net::IpAddr;
use verbs::VERSION;
use verbs::answer::{Answer, Port, Refusal};
use verbs::attributes::{Access, AddressVector, Handle};
use verbs::call::Call;
use verbs::line;
use verbs::objects::Objects;

/// Octets of all memory regions at most.
const MEMORY_MAX: u64 = 256 << 20;
/// Completions of a queue at most.
const ENTRIES_MAX: u32 = 1 << 16;
/// The name of the only device.
const DEVICE: &str = "nicd";
/// The first virtual address; each region begins a GiB after the one before.
const START: u64 = 0x10_0000_0000;

/// What a client has made.
#[derive(Debug)]
enum Object {
    Device,
    /// Index of its memory.
    Pd(usize),
    Memory(Registered),
    Cq(CompletionQueue),
    Qp(Box<Pair>),
    Ah(IpAddr, TrafficClass),
}

/// A registered memory region.
#[derive(Clone, Copy, Debug)]
struct Registered {
    /// Index of the memory.
    domain: usize,
    key: u32,
    length: u64,
}

/// The objects of the agent's clients.
#[derive(Debug)]
pub struct Agent {
    objects: Objects<Object>,
    next_key: u32,
    next_start: u64,
    registered: u64,
}

impl Agent {
    /// An agent without objects. R_Keys begin with `key`.
    pub fn new(key: u32) -> Agent {
        Agent { objects: Objects::default(), next_key: key | 1, next_start: START, registered: 0 }
    }

    fn device(&mut self, handle: Handle) -> Result<(), Refusal> {
        let kind = |object: &mut Object| matches!(object, Object::Device).then_some(());
        self.objects.find(handle, "device", kind)
    }

    fn domain(&mut self, handle: Handle) -> Result<usize, Refusal> {
        self.objects.find(handle, "protection domain", |object| match object {
            Object::Pd(domain) => Some(*domain),
            _ => None,
        })
    }

    fn memory(&mut self, handle: Handle) -> Result<Registered, Refusal> {
        self.objects.find(handle, "memory region", |object| match object {
            Object::Memory(memory) => Some(*memory),
            _ => None,
        })
    }

    fn queue(&mut self, handle: Handle) -> Result<&mut CompletionQueue, Refusal> {
        self.objects.find(handle, "completion queue", |object| match object {
            Object::Cq(queue) => Some(queue),
            _ => None,
        })
    }

    fn pair(&mut self, handle: Handle) -> Result<&mut Pair, Refusal> {
        self.objects.find(handle, "queue pair", |object| match object {
            Object::Qp(pair) => Some(&mut **pair),
            _ => None,
        })
    }

    fn receiver(&mut self, handle: Handle) -> Result<(IpAddr, TrafficClass), Refusal> {
        self.objects.find(handle, "address handle", |object| match object {
            Object::Ah(ip, traffic_class) => Some((*ip, *traffic_class)),
            _ => None,
        })
    }

    /// Whether a queue pair has this number.
    pub fn has_number(&self, number: QueuePairNumber) -> bool {
        let has = |object: &Object| matches!(object, Object::Qp(pair) if pair.number == number);
        self.objects.iter().any(has)
    }
}

/// The host at one instant, as the protocol sees it.
struct At<'a> {
    host: &'a mut HostStack,
    now: Instant,
}

impl line::Agent for At<'_> {
    fn execute(&mut self, call: &Call) -> Result<Answer, Refusal> {
        self.host.execute(call, self.now)
    }
}

impl HostStack {
    /// Executes the call in a line without its end, and returns the line of the answer.
    pub fn answer(&mut self, text: &str, now: Instant) -> Option<String> {
        let answer = line::answer(&mut At { host: self, now }, text.as_bytes());
        answer.and_then(|answer| String::from_utf8(answer).ok())
    }

    fn execute(&mut self, call: &Call, now: Instant) -> Result<Answer, Refusal> {
        let object = |handle| Answer::Object { handle };
        if call.makes_object() {
            self.agent.objects.has_room()?;
        }
        let agent = &mut self.agent;
        match call {
            Call::Hello => {
                let devices = vec![DEVICE.to_owned()];
                Ok(Answer::Hello { version: VERSION, agent: DEVICE.to_owned(), devices })
            }
            Call::Clear => {
                while let Some(newest) = self.agent.objects.newest() {
                    self.destroy(newest)?;
                }
                Ok(Answer::Done)
            }
            Call::OpenDevice { name } if name.as_deref().is_none_or(|name| name == DEVICE) => {
                Ok(object(agent.objects.add(Object::Device, &[])))
            }
            Call::OpenDevice { .. } => Err(Refusal::new("ENODEV", "the only device is nicd")),
            Call::QueryPort { device } => agent.device(*device).map(|()| self.port()),
            Call::QueryGid { device, index } => {
                agent.device(*device)?;
                let gids = [self.local.ipv4.to_ipv6_mapped(), self.local.ipv6];
                let gid = gids.get(usize::from(*index)).copied();
                let gid = gid.ok_or_else(|| Refusal::invalid("there are two GIDs, 0 and 1"))?;
                Ok(Answer::Gid { gid, kind: "RoCE v2".to_owned() })
            }
            Call::Counters { device } => {
                agent.device(*device)?;
                let mut named = Vec::new();
                self.read_named(&mut named);
                Ok(Answer::Counters(named.into_iter().collect()))
            }
            Call::AllocPd { device } => {
                agent.device(*device)?;
                let domain = self.domains.insert(Memory::default());
                Ok(object(agent.objects.add(Object::Pd(domain), &[*device])))
            }
            Call::RegisterMemory { pd, length, access } => self.register(*pd, *length, *access),
            Call::CreateCq { device, entries } => {
                agent.device(*device)?;
                if *entries == 0 || *entries > ENTRIES_MAX {
                    return Err(Refusal::limit(format!("a queue has 1 to {ENTRIES_MAX} entries")));
                }
                let queue = Object::Cq(CompletionQueue::new(*entries));
                Ok(object(agent.objects.add(queue, &[*device])))
            }
            Call::CreateAh { pd, address } => {
                agent.domain(*pd)?;
                let (ip, traffic_class) = self.peer(address)?;
                self.neighbours.resolve(ip, now);
                self.flush_unresolved(now);
                Ok(object(self.agent.objects.add(Object::Ah(ip, traffic_class), &[*pd])))
            }
            Call::Destroy { object } => self.destroy(*object).map(|()| Answer::Done),
            Call::Poll { cq, count, .. } => agent.queue(*cq)?.take(*count).map(Answer::Completions),
            Call::PostSend { .. } | Call::PostReceive { .. } => self.post(call),
            Call::CreateQp { .. } | Call::ModifyQp { .. } | Call::QueryQp { .. } => {
                self.execute_pair(call, now)
            }
            _ => self.execute_memory(call),
        }
    }

    fn port(&self) -> Answer {
        let mtu = super::connection::mtu_code(self.mtu);
        let (is_active, gids, message_max) = (true, 2, posting::MESSAGE_MAX);
        Answer::Port(Port { is_active, active_mtu: mtu, max_mtu: mtu, gids, message_max })
    }

    /// The IP address of a GID, which must be that of another host, and the traffic class of packets to it.
    fn peer(&self, address: &AddressVector) -> Result<(IpAddr, TrafficClass), Refusal> {
        let ip = address.gid.to_canonical();
        if super::neighbour::is_unicast(ip) && !self.local.has(ip) {
            return Ok((ip, self.traffic_class(address.traffic_class)?));
        }
        Err(Refusal::invalid(format!("{ip} is not the address of another host")))
    }

    /// The traffic class of this octet; that of the adapter for 0. Its priority must be that of the host, whose frames
    /// leave in one lane.
    fn traffic_class(&self, octet: u8) -> Result<TrafficClass, Refusal> {
        if octet == 0 {
            return Ok(self.local.traffic_class());
        }
        let traffic_class = TrafficClass::from_octet(octet);
        let (dscp, lane) = (traffic_class.dscp, self.format.lane_of(traffic_class.dscp));
        if lane != self.lane {
            let (dscp, lane, own) = (dscp.get(), lane.get(), self.lane.get());
            let text = format!("DSCP {dscp} has priority {lane}, and the host sends in {own}");
            return Err(Refusal::unsupported(text));
        }
        Ok(traffic_class)
    }

    fn register(&mut self, pd: Handle, length: u64, access: Access) -> Result<Answer, Refusal> {
        let agent = &mut self.agent;
        let domain = agent.domain(pd)?;
        if length == 0 || length > MEMORY_MAX - agent.registered {
            let text = format!("all regions together have 1 to {MEMORY_MAX} octets");
            return Err(Refusal::limit(text));
        }
        let (rkey, address) = (agent.next_key, agent.next_start);
        agent.next_key = agent.next_key.wrapping_add(0x0100_0001).max(1);
        agent.next_start += 1 << 30;
        agent.registered += length;
        self.domains[domain].register(rkey, address, length as usize, access);
        let memory = Registered { domain, key: rkey, length };
        let handle = agent.objects.add(Object::Memory(memory), &[pd]);
        Ok(Answer::Memory { handle, address, rkey })
    }

    fn destroy(&mut self, handle: Handle) -> Result<(), Refusal> {
        self.agent.objects.to_end(handle)?;
        match self.agent.objects.remove(handle) {
            Some(Object::Pd(domain)) => drop(self.domains.remove(domain)),
            Some(Object::Memory(memory)) => {
                self.domains[memory.domain].deregister(memory.key);
                self.agent.registered -= memory.length;
            }
            Some(Object::Qp(pair)) => self.end_pair(pair.number),
            Some(Object::Device | Object::Cq(_) | Object::Ah(..)) | None => {}
        }
        Ok(())
    }

    fn execute_memory(&mut self, call: &Call) -> Result<Answer, Refusal> {
        let region = verbs::memory::region(call);
        let handle = region.ok_or_else(|| Refusal::unsupported("the agent cannot do that"))?;
        let Registered { domain, key, .. } = self.agent.memory(handle)?;
        let region = self.domains[domain].region(key);
        let region = region.ok_or_else(|| Refusal::unknown("memory region", handle))?;
        verbs::memory::execute(&mut region.octets, call)
    }
}

#[cfg(test)]
mod tests;
