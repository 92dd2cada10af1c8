//! A queue pair of the device, connected to one that the tester plays.

use super::{Got, Nic, Packet, packet};
use crate::verdict::{Check, Fault, must};
use proto::ids::{Psn, QueuePairNumber};
use proto::units::Duration;
use proto::wire::infiniband::{Aeth, ExtendedHeaders, NakCode, Opcode, Syndrome};
use verbs::answer::Answer;
use verbs::attributes::{Access, AddressVector, Handle, QpAttributes, Service, State};
use verbs::call::Call;
use verbs::client::{ClientError, Memory};
use verbs::octets::Octets;
use verbs::pattern::{Pattern, Stream};
use verbs::runs::Run;
use verbs::work::{Completion, Operation, Places, ReceiveWork, Receiver, Remote, SendWork};

/// Octets of the memory of each queue pair.
pub const MEMORY: u64 = 64 * 1024;
/// Where the memory for receives and for what peers write begins.
pub const RECEIVES: u64 = 32 * 1024;
/// Octets of each receive.
pub const RECEIVE: u32 = 4096;
/// The path MTU of all cases: code and octets.
pub const PATH_MTU: (u8, usize) = (3, 1024);
/// The Q_Key of datagrams.
pub const QKEY: u32 = 0x1122_3344;

/// The parameters with which a queue pair is connected. Codes are those of the standard.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    /// Local ACK timeout.
    pub timeout: u8,
    /// Retries without progress.
    pub retry_count: u8,
    /// Retries after RNR NAKs.
    pub rnr_retry: u8,
    /// The wait that its RNR NAKs ask for.
    pub min_rnr_timer: u8,
    /// The first PSN that it sends.
    pub send_psn: u32,
    /// The first PSN that it expects.
    pub receive_psn: u32,
    /// DSCP and ECN.
    pub traffic_class: u8,
}

impl Default for Terms {
    fn default() -> Terms {
        Terms {
            // 1.07 s: no case but those of timers sees a timeout.
            timeout: 18,
            retry_count: 7,
            rnr_retry: 7,
            min_rnr_timer: 12,
            send_psn: 0x1000,
            receive_psn: 0x2000,
            traffic_class: 0,
        }
    }
}

/// The queue pair.
#[derive(Clone, Debug)]
pub struct Pair {
    /// Its number at the device.
    pub number: QueuePairNumber,
    /// The number that the tester plays.
    pub own: QueuePairNumber,
    /// Its memory.
    pub memory: Memory,
    /// What it was told.
    pub terms: Terms,
    qp: Handle,
    pd: Handle,
    sends: Handle,
    receives: Handle,
    address: AddressVector,
    /// Address handle of the tester, for datagrams.
    ah: Option<Handle>,
}

impl Nic<'_> {
    /// Makes and connects a queue pair of RC.
    ///
    /// # Errors
    /// If the agent refuses.
    pub fn connect(&mut self, terms: Terms) -> Check<Pair> {
        self.connect_as(Service::Rc, terms)
    }

    /// Makes a queue pair of any service and gets it ready to send.
    ///
    /// # Errors
    /// If the agent refuses.
    pub fn connect_as(&mut self, service: Service, terms: Terms) -> Check<Pair> {
        self.pairs += 1;
        let own = QueuePairNumber::truncate(0x00a0_0000 | u32::from(self.case) << 4 | self.pairs);
        let (name, peer) = (self.file.device.rdma.clone(), self.file.peer);
        self.agent(move |client| {
            let device = client.open_device(name.as_deref())?;
            let gids = client.query_port(device)?.gids.min(16) as u8;
            let mut index = 0;
            for known in 0..gids {
                let Ok((gid, kind)) = client.query_gid(device, known) else { continue };
                if kind == "RoCE v2" && gid.to_ipv4_mapped().is_some() {
                    index = known;
                    break;
                }
            }
            let pd = client.alloc_pd(device)?;
            let memory = client.register_memory(pd, MEMORY, Access::ALL)?;
            let (sends, receives) =
                (client.create_cq(device, 256)?, client.create_cq(device, 256)?);
            let (qp, number) = client.create_qp(pd, service, (sends, receives), 128)?;
            let address = AddressVector {
                gid: peer.to_ipv6_mapped(),
                gid_index: index,
                hop_limit: 64,
                traffic_class: terms.traffic_class,
                flow_label: 0,
                service_level: 0,
            };
            for attributes in states(service, own.get(), address, &terms) {
                client.modify_qp(qp, attributes)?;
            }
            let ah = (service == Service::Ud).then(|| client.create_ah(pd, address)).transpose()?;
            let number = QueuePairNumber::truncate(number);
            Ok(Pair { number, own, memory, terms, qp, pd, sends, receives, address, ah })
        })
    }

    /// Posts one work request of `length` octets, whose content is a pattern.
    ///
    /// # Errors
    /// If the agent refuses.
    pub fn post(&mut self, pair: &Pair, operation: Operation, id: u64, length: u32) -> Check<()> {
        self.post_work(pair, id, operation, length, |_| {})
    }

    /// The same with changes to the work request.
    ///
    /// # Errors
    /// If the agent refuses.
    pub fn post_work(
        &mut self,
        pair: &Pair,
        id: u64,
        operation: Operation,
        length: u32,
        change: impl FnOnce(&mut SendWork),
    ) -> Check<()> {
        let places = Places { memory: pair.memory.handle, offset: 0, length, stride: 0 };
        let mut work = SendWork::new(id, operation, places);
        if operation != Operation::Send {
            work.remote =
                Some(Remote { address: 0x1234_5678_9abc_0000, rkey: 0x0bad_cafe, stride: 0 });
        }
        work.receiver = pair.ah.map(|ah| Receiver { ah, number: pair.own.get(), qkey: QKEY });
        change(&mut work);
        let qp = pair.qp;
        self.agent(move |client| {
            if operation == Operation::Send || operation == Operation::Write {
                client.fill(places, 1, Pattern::of(Stream::Mixed(7)))?;
            }
            client.post_send(qp, work, 1)
        })
    }

    /// Posts `count` receives.
    ///
    /// # Errors
    /// If the agent refuses.
    pub fn post_receives(&mut self, pair: &Pair, count: u32) -> Check<()> {
        let places = Places {
            memory: pair.memory.handle,
            offset: RECEIVES,
            length: RECEIVE,
            stride: u64::from(RECEIVE),
        };
        assert!(count * RECEIVE <= 32 * 1024, "receives have places of their own");
        let qp = pair.qp;
        self.agent(move |client| client.post_receive(qp, ReceiveWork { id: 100, places }, count))
    }

    /// The completions of sends, of which `count` are waited for.
    ///
    /// # Errors
    /// If the agent refuses.
    pub fn sent(&mut self, pair: &Pair, count: usize) -> Check<Vec<Completion>> {
        self.poll(pair.sends, count)
    }

    /// The completions of receives, of which `count` are waited for.
    ///
    /// # Errors
    /// If the agent refuses.
    pub fn received(&mut self, pair: &Pair, count: usize) -> Check<Vec<Completion>> {
        self.poll(pair.receives, count)
    }

    fn poll(&mut self, cq: Handle, count: usize) -> Check<Vec<Completion>> {
        let patience =
            if count == 0 { self.file.tolerance.quiet } else { self.file.tolerance.patience };
        let until = self.line.now() + patience;
        let mut all = Vec::new();
        loop {
            let runs = self.agent(move |client| client.poll(cq, 64, 0))?;
            all.extend(runs.iter().flat_map(|run: &Run| (0..run.count).map(|k| run.get(k))));
            if (count > 0 && all.len() >= count) || self.line.now() >= until {
                return Ok(all);
            }
            let mark = self.mark();
            self.during(mark, Duration::from_us(2_000))?;
        }
    }

    /// Octets of the memory of a pair.
    ///
    /// # Errors
    /// If the agent refuses.
    pub fn memory(&mut self, pair: &Pair, offset: u64, length: u32) -> Check<Vec<u8>> {
        let memory = pair.memory.handle;
        self.agent(move |client| {
            match client.call(Call::ReadMemory { memory, offset, length })? {
                Answer::Octets(octets) => Ok(octets.0),
                other => Err(ClientError::Unexpected(format!("{other:?}"))),
            }
        })
    }

    /// Writes octets into the memory of a pair.
    ///
    /// # Errors
    /// If the agent refuses.
    pub fn write_memory(&mut self, pair: &Pair, offset: u64, octets: Vec<u8>) -> Check<()> {
        let memory = pair.memory.handle;
        let call = Call::WriteMemory { memory, offset, octets: Octets(octets) };
        self.agent(move |client| client.call(call).map(|_| ()))
    }

    /// The state of the queue pair.
    ///
    /// # Errors
    /// If the agent refuses.
    pub fn state(&mut self, pair: &Pair) -> Check<Option<State>> {
        let qp = pair.qp;
        Ok(self.agent(move |client| client.query_qp(qp))?.state)
    }

    /// Packets of the device to this pair's peer since `mark`, of which `count` are waited for.
    ///
    /// # Errors
    /// Those of the line; FAIL if another number of them comes.
    pub fn exactly(&mut self, pair: &Pair, mark: usize, count: usize) -> Check<Vec<Got>> {
        let got = self.packets(mark, count)?;
        let got: Vec<Got> = got.into_iter().filter(|got| got.bth.destination == pair.own).collect();
        must!(got.len() == count, "{} packets come, not {count}: {}", got.len(), names(&got));
        Ok(got)
    }

    /// The device must answer with exactly one acknowledgement, which is returned with its PSN and MSN.
    ///
    /// # Errors
    /// FAIL if it does not.
    pub fn answer(&mut self, pair: &Pair, mark: usize) -> Check<(Syndrome, Psn, u32)> {
        let got = self.exactly(pair, mark, 1)?;
        let aeth = got[0].extended.aeth;
        let aeth = aeth.ok_or_else(|| Fault::fail(format!("it answers with {}", names(&got))))?;
        Ok((aeth.syndrome, got[0].bth.psn, aeth.message_sequence_number))
    }

    /// Acknowledges up to `psn`, of the device's requests.
    ///
    /// # Errors
    /// Those of the line.
    pub fn acknowledge(&mut self, pair: &Pair, psn: Psn, msn: u32) -> Check<()> {
        let ack = pair.acknowledgement(Syndrome::ACK, psn, msn);
        self.send(&ack)
    }

    /// Answers with a NAK.
    ///
    /// # Errors
    /// Those of the line.
    pub fn refuse(&mut self, pair: &Pair, syndrome: Syndrome, psn: Psn) -> Check<()> {
        self.send(&pair.acknowledgement(syndrome, psn, 0))
    }
}

impl Pair {
    /// The n-th PSN that the device expects.
    pub fn in_psn(&self, n: u32) -> Psn {
        Psn::truncate(self.terms.receive_psn).plus(n)
    }

    /// The n-th PSN that the device sends.
    pub fn out_psn(&self, n: u32) -> Psn {
        Psn::truncate(self.terms.send_psn).plus(n)
    }

    /// The n-th packet to the device.
    pub fn packet(&self, opcode: Opcode, n: u32, payload: &[u8]) -> Packet {
        let mut made = packet(self.number, opcode, self.in_psn(n));
        made.bth.ack_request = opcode.row().is_some_and(|row| row.ends_message());
        made.payload = payload.to_vec();
        made
    }

    /// A SEND of one packet with this number, whose payload says it.
    pub fn message(&self, n: u32) -> Packet {
        self.packet(Opcode::RC_SEND_ONLY, n, &content(n, 32))
    }

    /// An acknowledgement.
    pub fn acknowledgement(&self, syndrome: Syndrome, psn: Psn, msn: u32) -> Packet {
        let mut made = packet(self.number, Opcode::RC_ACKNOWLEDGE, psn);
        made.extended = ExtendedHeaders {
            aeth: Some(Aeth { syndrome, message_sequence_number: msn }),
            ..ExtendedHeaders::NONE
        };
        made
    }

    /// Where the peer may write: address in the region from [`RECEIVES`] on.
    pub fn target(&self) -> u64 {
        self.memory.address + RECEIVES
    }

    /// The protection domain and the address of the tester, for further objects.
    pub fn objects(&self) -> (Handle, AddressVector) {
        (self.pd, self.address)
    }
}

/// The content of message `n`.
pub fn content(n: u32, length: usize) -> Vec<u8> {
    (0..length).map(|at| (at as u8).wrapping_mul(7) ^ (n as u8).wrapping_add(1)).collect()
}

/// The opcodes of packets, for messages.
pub fn names(got: &[Got]) -> String {
    let name = |got: &Got| match got.extended.aeth {
        Some(aeth) => {
            format!("{} {:?} PSN {:06x}", got.bth.opcode, aeth.syndrome, got.bth.psn.get())
        }
        None => format!("{} PSN {:06x}", got.bth.opcode, got.bth.psn.get()),
    };
    let names: Vec<String> = got.iter().take(8).map(name).collect();
    if names.is_empty() { "nothing".to_owned() } else { names.join(", ") }
}

/// A NAK of a PSN sequence error.
pub const GAP: Syndrome = Syndrome::Nak(NakCode::PsnSequence);

/// The ways of a queue pair to RTS.
fn states(service: Service, own: u32, address: AddressVector, terms: &Terms) -> Vec<QpAttributes> {
    let send_psn = Some(terms.send_psn);
    if service == Service::Ud {
        return vec![
            QpAttributes::init_datagram(QKEY),
            QpAttributes::to(State::Rtr),
            QpAttributes { send_psn, ..QpAttributes::to(State::Rts) },
        ];
    }
    let reliable = service == Service::Rc;
    let only = |value: u8| reliable.then_some(value);
    vec![
        QpAttributes::init(Access { atomic: reliable, read: reliable, write: true }),
        QpAttributes {
            path_mtu: Some(PATH_MTU.0),
            destination: Some(own),
            receive_psn: Some(terms.receive_psn),
            address: Some(address),
            responder_resources: only(4),
            min_rnr_timer: only(terms.min_rnr_timer),
            ..QpAttributes::to(State::Rtr)
        },
        QpAttributes {
            send_psn,
            initiator_depth: only(4),
            timeout: only(terms.timeout),
            retry_count: only(terms.retry_count),
            rnr_retry: only(terms.rnr_retry),
            ..QpAttributes::to(State::Rts)
        },
    ]
}
