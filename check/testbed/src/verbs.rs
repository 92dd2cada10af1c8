//! Two agents for verbs whose queue pairs talk to each other: connecting them, and checked streams of messages.
//!
//! Whatever the agents are, nicd or libibverbs, the same code makes both ends, so a test states only who sends what.

pub mod datagrams;
pub mod stream;

use std::net::Ipv6Addr;
use verbs::attributes::{Access, AddressVector, Handle, QpAttributes, Service, State};
use verbs::client::{Client, ClientError, Memory, Transport};
use verbs::pattern::Difference;
use verbs::runs::Run;

/// A client of any agent.
pub type AnyClient = Client<Box<dyn Transport>>;

/// Why an exchange is not as it should be.
#[derive(Debug)]
pub struct Fault(pub String);

impl From<ClientError> for Fault {
    fn from(error: ClientError) -> Fault {
        Fault(match &error {
            ClientError::Silent(why) => format!("{error}: {why}"),
            _ => error.to_string(),
        })
    }
}

impl From<Difference> for Fault {
    fn from(found: Difference) -> Fault {
        Fault(format!("wrong octets: {found:?}"))
    }
}

/// The result of an exchange.
pub type Outcome<T> = Result<T, Fault>;

/// One end: a queue pair with memory and completion queues.
pub struct End {
    /// Name for messages.
    pub name: String,
    /// The agent.
    pub client: AnyClient,
    /// The device.
    pub device: Handle,
    /// The protection domain.
    pub pd: Handle,
    /// Its memory.
    pub memory: Memory,
    /// Completion queue of sends.
    pub sends: Handle,
    /// Completion queue of receives.
    pub receives: Handle,
    /// The queue pair.
    pub qp: Handle,
    /// Its number.
    pub number: u32,
    /// Its address.
    pub gid: Ipv6Addr,
    /// The index of that.
    pub gid_index: u8,
}

/// Work requests that each queue of an end holds.
pub const DEPTH: u32 = 1024;
/// Q_Key of datagrams.
pub const QKEY: u32 = 0x1122_3344;

/// What the ends of a connection agree on. Codes are those of [`QpAttributes`].
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    /// Path MTU.
    pub path_mtu: u8,
    /// The first PSN of one end; the other begins a thousand later.
    pub psn: u32,
    /// Local ACK timeout.
    pub timeout: u8,
    /// READs and atomics in flight.
    pub reads: u8,
    /// DSCP and ECN bits.
    pub traffic_class: u8,
}

impl Default for Terms {
    fn default() -> Terms {
        // A timeout of 16.8 ms.
        Terms { path_mtu: 3, psn: 0xff_fff0, timeout: 12, reads: 4, traffic_class: 0 }
    }
}

impl End {
    /// Opens the first device and makes a queue pair with `octets` of memory. The address is the first of RoCE v2
    /// over this version of IP.
    ///
    /// # Errors
    /// If the agent refuses a call.
    pub fn open(
        name: &str,
        mut client: AnyClient,
        (service, over_ipv4): (Service, bool),
        octets: u64,
    ) -> Outcome<End> {
        client.clear()?;
        let device = client.open_device(None)?;
        let gids = client.query_port(device)?.gids.min(16) as u8;
        let mut found = None;
        for index in 0..gids {
            let Ok((gid, kind)) = client.query_gid(device, index) else { continue };
            let is_link_local = gid.is_unicast_link_local();
            if kind == "RoCE v2" && gid.to_ipv4_mapped().is_some() == over_ipv4 && !is_link_local {
                found = Some((gid, index));
                break;
            }
        }
        let (gid, gid_index) =
            found.ok_or_else(|| Fault(format!("{name} has no GID of RoCE v2 for this IP")))?;
        let pd = client.alloc_pd(device)?;
        let memory = client.register_memory(pd, octets, Access::ALL)?;
        let (sends, receives) =
            (client.create_cq(device, 2 * DEPTH)?, client.create_cq(device, 2 * DEPTH)?);
        let (qp, number) = client.create_qp(pd, service, (sends, receives), DEPTH)?;
        let name = name.to_owned();
        Ok(End { name, client, device, pd, memory, sends, receives, qp, number, gid, gid_index })
    }

    /// The address of `peer` as this end sees it.
    pub fn address_of(&self, peer: &End, traffic_class: u8) -> AddressVector {
        AddressVector {
            gid: peer.gid,
            gid_index: self.gid_index,
            hop_limit: 64,
            traffic_class,
            flow_label: 0,
            service_level: 0,
        }
    }

    /// Takes completions until there are `wanted`, or none have come in `polls` polls of 100 ms.
    ///
    /// # Errors
    /// If the agent refuses, or a completion is not a success.
    pub fn poll(&mut self, cq: Handle, wanted: u32, polls: u32) -> Outcome<Vec<Run>> {
        let (mut all, mut count, mut empty) = (Vec::new(), 0, 0);
        while count < wanted && empty < polls {
            let found = self.client.poll(cq, wanted - count, 100)?;
            if let Some(bad) = found.iter().find(|run| !run.is_success()) {
                return Err(Fault(format!("{}: {bad:?}", self.name)));
            }
            let new = verbs::runs::count(&found);
            (count, empty) = (count + new, if new == 0 { empty + 1 } else { 0 });
            all.extend(found);
        }
        Ok(all)
    }
}

/// Connects two RC queue pairs.
///
/// # Errors
/// If an agent refuses.
pub fn connect(a: &mut End, b: &mut End, terms: &Terms) -> Outcome<()> {
    let addresses = [a.address_of(b, terms.traffic_class), b.address_of(a, terms.traffic_class)];
    let numbers = [b.number, a.number];
    let [first, second] = [terms.psn, (terms.psn + 1000) & 0xff_ffff];
    let psns = [(first, second), (second, first)];
    for (k, end) in [a, b].into_iter().enumerate() {
        let (send, expected) = psns[k];
        end.client.modify_qp(end.qp, QpAttributes::init(Access::ALL))?;
        let to_receive = QpAttributes {
            path_mtu: Some(terms.path_mtu),
            destination: Some(numbers[k]),
            receive_psn: Some(expected),
            address: Some(addresses[k]),
            responder_resources: Some(terms.reads),
            min_rnr_timer: Some(12),
            ..QpAttributes::to(State::Rtr)
        };
        end.client.modify_qp(end.qp, to_receive)?;
        let to_send = QpAttributes {
            send_psn: Some(send),
            initiator_depth: Some(terms.reads),
            timeout: Some(terms.timeout),
            retry_count: Some(7),
            rnr_retry: Some(7),
            ..QpAttributes::to(State::Rts)
        };
        end.client.modify_qp(end.qp, to_send)?;
    }
    Ok(())
}
