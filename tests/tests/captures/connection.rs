//! The connection that Linux (kernel 6.1, soft-RoCE) makes for `rping`, read and written by the formats of the project.

use super::{captures, pcap_records};
use proto::wire::infiniband::connection::{IpAddressing, Message};
use proto::wire::infiniband::mad::Mad;
use proto::wire::roce::Packet;
use std::net::Ipv4Addr;

/// The connection messages of the file: addresses, header, message and private data.
fn messages(octets: &[u8]) -> Vec<(Mad, Message, Vec<u8>)> {
    let (_, records) = pcap_records(octets);
    let mut messages = Vec::new();
    for record in records {
        let Ok(Some(packet)) = Packet::parse(record) else { continue };
        let Some(deth) = packet.transport.extended.deth else { continue };
        assert_eq!((deth.queue_key, deth.source.get()), (Mad::QUEUE_KEY, 1), "a datagram of QP1");
        let datagram = packet.transport.payload;
        let (mad, message, private) = Message::parse(datagram).expect("a connection message");
        assert_eq!(message.under(&mad, private), datagram, "{message:?} round-trips");
        messages.push((mad, message, private.to_vec()));
    }
    messages
}

#[test]
fn the_connection_of_rping_reads_as_request_reply_and_ready() {
    let Some(path) = captures().map(|folder| folder.join("rxe/rping_cm.pcap")) else { return };
    let Ok(octets) = std::fs::read(&path) else {
        skip::because!("no captures of soft-RoCE");
        return;
    };
    let all = messages(&octets);
    let attributes: Vec<u16> = all.iter().map(|(_, message, _)| message.attribute()).collect();
    assert_eq!(attributes[..3], [0x10, 0x13, 0x14], "REQ, REP, RTU; all: {attributes:x?}");
    assert!(attributes[3..].iter().all(|attribute| matches!(attribute, 0x15 | 0x16)));

    let (Message::Request(request), Message::Reply(reply), Message::Ready(ready)) =
        (all[0].1, all[1].1, all[2].1)
    else {
        panic!("REQ, REP and RTU");
    };
    let head = request.head;
    assert_eq!(IpAddressing::port(head.service), Some(7174));
    assert_eq!((head.path_mtu, head.retry_count, head.rnr_retry_count), (3, 7, 7));
    assert_eq!((head.cm_retries, head.partition_key, head.transport), (15, 0xffff, 0));
    assert_eq!((request.primary.hop_limit, request.primary.ack_timeout), (64, 19));
    assert_eq!(request.primary.remote_gid.to_ipv4_mapped(), Some(Ipv4Addr::new(198, 18, 0, 1)));
    let addressing = IpAddressing::parse(&all[0].2).expect("92 octets");
    assert_eq!((addressing.major, addressing.minor, addressing.ip_version), (0, 0, 4));
    assert_eq!(addressing.source.octets()[12..], [198, 18, 0, 2]);
    assert_eq!((reply.remote_id, reply.local_id), (head.local_id, ready.remote_id));
    assert_eq!((reply.responder_resources, reply.initiator_depth), (1, 1));
    assert_eq!((reply.target_ack_delay, reply.rnr_retry_count), (15, 7));
    assert!(all[..3].iter().all(|(mad, ..)| mad.transaction == all[0].0.transaction));
}
