//! CM: messages of connection management, to a port at which nothing accepts connections, and to one at which a program does.

use super::{Got, Nic, Scripts, packet};
use crate::verdict::{Check, Fault, must};
use proto::ids::{Lid, Psn, QueuePairNumber, ServiceLevel};
use proto::units::Duration;
use proto::wire::infiniband::connection::messages::RequestHead;
use proto::wire::infiniband::connection::{
    Disconnect, IpAddressing, Message, Path, Ready, Reply, Request, reason,
};
use proto::wire::infiniband::mad::Mad;
use proto::wire::infiniband::{Deth, ExtendedHeaders, Opcode};
use proto::wire::roce::checks::verify_icrc;
use std::net::{Ipv4Addr, Ipv6Addr};

pub(super) const SCRIPTS: Scripts = &[
    ("CM-01", unknown_service),
    ("CM-02", unknown_disconnect),
    ("CM-03", unexpected),
    ("CM-04", other_queue_key),
    ("CM-05", accepted),
    ("CM-06", repeated),
    ("CM-07", ended),
];

/// The queue pair of management (IBTA Vol 1, 3.9.6).
const MANAGEMENT: u32 = 1;
/// A port at which nothing accepts connections.
const PORT: u16 = 7999;
/// The requester's identifier of the connection.
const LOCAL_ID: u32 = 0x5eed_0001;
/// 1.07 s, as a code.
const RESPONSE: u8 = 18;
/// 67 ms, as a code.
const SOON: u8 = 14;

/// Sends a datagram to the management queue pair, and returns the messages that come back.
fn ask(
    nic: &mut Nic<'_>,
    octets: &[u8],
    queue_key: u32,
    count: usize,
) -> Check<Vec<(Mad, Message)>> {
    let mut datagram =
        packet(QueuePairNumber::truncate(MANAGEMENT), Opcode::UD_SEND_ONLY, Psn::truncate(1));
    let source = QueuePairNumber::truncate(MANAGEMENT);
    let deth = Some(Deth { queue_key, reserved8: 0, source });
    datagram.extended = ExtendedHeaders { deth, ..ExtendedHeaders::NONE };
    datagram.payload = octets.to_vec();
    let mark = nic.mark();
    nic.send(&datagram)?;
    let mut messages = Vec::new();
    for got in nic.packets(mark, count)? {
        must!(
            got.bth.destination.get() == MANAGEMENT,
            "it answers to {:06x}",
            got.bth.destination.get()
        );
        verify_icrc(&got.octets).map_err(Fault::fail)?;
        let key = got.extended.deth.map(|deth| deth.queue_key);
        must!(key == Some(Mad::QUEUE_KEY), "the answer has the Q_Key {key:x?}");
        let (mad, message, _) = Message::parse(&got.payload).map_err(Fault::fail)?;
        messages.push((mad, message));
    }
    Ok(messages)
}

fn path(own: Ipv4Addr, peer: Ipv4Addr) -> Path {
    let no_lid = Lid::new(0xffff);
    Path {
        local_lid: no_lid,
        remote_lid: no_lid,
        local_gid: own.to_ipv6_mapped(),
        remote_gid: peer.to_ipv6_mapped(),
        flow_label: 0,
        reserved6: 0,
        packet_rate: 3,
        traffic_class: 0,
        hop_limit: 64,
        service_level: ServiceLevel::truncate(0),
        subnet_local: true,
        reserved3: 0,
        ack_timeout: RESPONSE,
        reserved3b: 0,
    }
}

fn request(nic: &Nic<'_>) -> ([u8; Mad::DATAGRAM], u64) {
    request_to(nic, PORT, LOCAL_ID, RESPONSE)
}

/// A REQ to this port with this identifier, from a peer that answers within the time of this code.
fn request_to(nic: &Nic<'_>, port: u16, local_id: u32, response: u8) -> ([u8; Mad::DATAGRAM], u64) {
    let (own, peer) = (nic.file.peer, nic.address);
    let head = RequestHead {
        local_id,
        reserved32: 0,
        service: IpAddressing::service(port),
        guid: 0x02f0_00ff_fe00_0001,
        reserved32b: 0,
        queue_key: 0,
        queue_pair: QueuePairNumber::truncate(0x00b0_0000 | local_id & 0xffff),
        responder_resources: 0,
        context: 0,
        initiator_depth: 0,
        remote_context: 0,
        remote_response_timeout: RESPONSE,
        transport: 0,
        flow_control: false,
        starting_psn: Psn::truncate(0x100),
        local_response_timeout: response,
        retry_count: 7,
        partition_key: 0xffff,
        path_mtu: 3,
        rdc_exists: false,
        rnr_retry_count: 7,
        cm_retries: 3,
        shared_receive_queue: false,
        extended_transport: 0,
    };
    let alternate = Path::parse(&[0; Path::LEN]).expect("44 octets");
    let request = Message::Request(Request { head, primary: path(own, peer), alternate });
    let mapped = |ip: Ipv4Addr| Ipv6Addr::from_bits(ip.to_bits().into());
    let addressing = IpAddressing {
        major: 0,
        minor: 0,
        ip_version: 4,
        reserved4: 0,
        source_port: 50_000 + nic.case,
        source: mapped(own),
        destination: mapped(peer),
    };
    let transaction = 0x7e57_0000_0000 | u64::from(nic.case);
    (request.to_octets(transaction, &addressing.to_octets()), transaction)
}

/// A device answers a neighbour that it knows.
fn known(nic: &mut Nic<'_>) -> Check<()> {
    nic.connect(super::pair::Terms::default()).map(|_| ())
}

fn unknown_service(nic: &mut Nic<'_>) -> Check {
    known(nic)?;
    let (octets, transaction) = request(nic);
    let answers = ask(nic, &octets, Mad::QUEUE_KEY, 1)?;
    let [(mad, Message::Reject(reject))] = &answers[..] else {
        return Err(Fault::fail(format!("a REQ is answered by {answers:?}")));
    };
    must!(reject.reason == reason::INVALID_SERVICE, "REJ with reason {}", reject.reason);
    must!(reject.remote_id == LOCAL_ID, "REJ of connection {:08x}", reject.remote_id);
    must!(mad.transaction == transaction, "REJ of transaction {:x}", mad.transaction);
    Ok("REJ with the reason of an invalid service ID, of this connection and transaction"
        .to_owned())
}

fn unknown_disconnect(nic: &mut Nic<'_>) -> Check {
    known(nic)?;
    let number = QueuePairNumber::truncate(0x77);
    let disconnect =
        Disconnect { local_id: LOCAL_ID, remote_id: 0x1234, queue_pair: number, reserved8: 0 };
    let octets = Message::Disconnect(disconnect).to_octets(9, &[]);
    let answers = ask(nic, &octets, Mad::QUEUE_KEY, 0)?;
    match &answers[..] {
        [(_, Message::DisconnectReply(reply))] => {
            must!(reply.remote_id == LOCAL_ID, "DREP of connection {:08x}", reply.remote_id);
            Ok("DREP, so that a peer whose DREP was lost can end".to_owned())
        }
        [] => Err(Fault::deviation(
            "no answer: a peer whose DREP was lost asks until its retries are over",
        )),
        other => Err(Fault::fail(format!("it is answered by {other:?}"))),
    }
}

fn unexpected(nic: &mut Nic<'_>) -> Check {
    known(nic)?;
    let ready = Message::Ready(Ready { local_id: LOCAL_ID, remote_id: 0x1234 });
    let answers = ask(nic, &ready.to_octets(3, &[]), Mad::QUEUE_KEY, 0)?;
    must!(answers.is_empty(), "an RTU of no connection is answered by {answers:?}");
    let mut odd = request(nic).0;
    // An attribute that connection management does not have.
    odd[16..18].copy_from_slice(&0x7fff_u16.to_be_bytes());
    ask(nic, &odd, Mad::QUEUE_KEY, 0).map_err(|fault| fault.of("an unknown attribute"))?;
    unknown_service(nic).map_err(|fault| fault.of("then a REQ"))?;
    Ok("an RTU of no connection and an unknown attribute have no effect".to_owned())
}

fn other_queue_key(nic: &mut Nic<'_>) -> Check {
    known(nic)?;
    let (octets, _) = request(nic);
    let answers = ask(nic, &octets, Mad::QUEUE_KEY ^ 1, 0)?;
    must!(answers.is_empty(), "with another Q_Key it is answered by {answers:?}");
    Ok("a message with another Q_Key draws nothing".to_owned())
}

/// Asks for a connection to the program of the DUT file. Returns its REP.
fn connect(nic: &mut Nic<'_>) -> Check<Reply> {
    known(nic)?;
    let port = nic.file.device.cm_port;
    let port = port.ok_or_else(|| Fault::absent("the DUT file states no cm_port"))?;
    let local_id = LOCAL_ID + u32::from(nic.case);
    let (octets, transaction) = request_to(nic, port, local_id, SOON);
    let answers = ask(nic, &octets, Mad::QUEUE_KEY, 1)?;
    let Some((mad, Message::Reply(reply))) = answers.first() else {
        return Err(Fault::fail(format!("a REQ is answered by {answers:?}")));
    };
    must!(reply.remote_id == local_id, "REP of connection {:08x}", reply.remote_id);
    must!(mad.transaction == transaction, "REP of transaction {:x}", mad.transaction);
    Ok(*reply)
}

/// Confirms a connection and ends it. Returns what comes meanwhile.
fn end(nic: &mut Nic<'_>, reply: &Reply) -> Check<Vec<(Mad, Message)>> {
    let (local_id, remote_id) = (reply.remote_id, reply.local_id);
    let ready = Message::Ready(Ready { local_id, remote_id });
    ask(nic, &ready.to_octets(4, &[]), Mad::QUEUE_KEY, 0)?;
    let mark = nic.mark();
    // Twice the time after which a REP would come again.
    let again = nic.during(mark, Duration::from_us(140_000))?;
    let is_message = |got: &&Got| got.bth.destination.get() == MANAGEMENT;
    let count = again.iter().filter(is_message).count();
    must!(count == 0, "{count} messages come behind the RTU");
    let queue_pair = reply.queue_pair;
    let disconnect =
        Message::Disconnect(Disconnect { local_id, remote_id, queue_pair, reserved8: 0 });
    ask(nic, &disconnect.to_octets(5, &[]), Mad::QUEUE_KEY, 1)
}

/// The adapter's GUID is made of a MAC address in the way of EUI-64.
fn accepted(nic: &mut Nic<'_>) -> Check {
    let reply = connect(nic)?;
    end(nic, &reply)?;
    must!(reply.queue_pair.get() > 1, "REP with queue pair {}", reply.queue_pair.get());
    let (high, low) = (nic.mac.number() >> 24, nic.mac.number() & 0xff_ffff);
    let guid = (high << 40 | 0xff_fe00_0000 | low) ^ 1 << 57;
    match reply.guid == guid {
        true => {
            Ok("REP of this connection and transaction, with the GUID of the MAC address"
                .to_owned())
        }
        false => {
            Err(Fault::deviation(format!("REP with GUID {:016x}, not {guid:016x}", reply.guid)))
        }
    }
}

fn repeated(nic: &mut Nic<'_>) -> Check {
    let reply = connect(nic)?;
    let mark = nic.mark();
    let got = nic.first(mark, 1)?;
    must!(!got.is_empty(), "a REP without its RTU does not come again");
    let (_, message, _) = Message::parse(&got[0].payload).map_err(Fault::fail)?;
    must!(message == Message::Reply(reply), "behind the REP comes {message:?}");
    end(nic, &reply)?;
    Ok("the REP comes again, until the RTU".to_owned())
}

fn ended(nic: &mut Nic<'_>) -> Check {
    let reply = connect(nic)?;
    let answers = end(nic, &reply)?;
    let [(_, Message::DisconnectReply(answer))] = &answers[..] else {
        return Err(Fault::fail(format!("a DREQ is answered by {answers:?}")));
    };
    must!(answer.remote_id == reply.remote_id, "DREP of connection {:08x}", answer.remote_id);
    Ok("a DREQ draws a DREP".to_owned())
}
