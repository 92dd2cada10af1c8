//! Requests that a responder accepts and refuses, and its acknowledgements.

use super::*;

fn responder(service: Service) -> Responder {
    Responder::new(ResponderConfig {
        service,
        mtu: 256,
        ack_every: 1,
        receive_depth: 0,
        receive_refill: Duration::ZERO,
        rnr_code: 14,
    })
}

static PAYLOAD: [u8; 300] = [7; 300];

fn send(psn: u32, position: Position, length: usize) -> Request<'static> {
    let (payload, length) = (&PAYLOAD[..length], length as u64);
    Request { psn: Psn::truncate(psn), verb: Verb::Send, position, reth: None, length, payload }
}

fn refused(responder: &mut Responder, request: &Request<'_>) -> Option<DropReason> {
    responder.on_request(request, Instant::ZERO).result.err()
}

#[test]
fn packets_of_the_wrong_length_for_their_position_are_invalid() {
    use Position::{First, Last, Middle, Only};
    for (begun, position, length, fits) in [
        (false, Only, 0, true),
        (false, Only, 256, true),
        (false, Only, 257, false),
        (false, First, 256, true),
        (false, First, 255, false),
        (true, Middle, 256, true),
        (true, Middle, 100, false),
        (true, Last, 1, true),
        (true, Last, 0, false),
        (true, Last, 257, false),
    ] {
        let mut responder = responder(Service::Rc);
        if begun {
            assert_eq!(refused(&mut responder, &send(0, First, 256)), None);
        }
        let reception =
            responder.on_request(&send(u32::from(begun), position, length), Instant::ZERO);
        let expected = (!fits).then_some(DropReason::PacketLength);
        assert_eq!(reception.result.err(), expected, "{position:?} {length}");
        let AckAction::Send(ack_packet) = reception.ack else { panic!("no acknowledgement") };
        let nak = Syndrome::Nak(NakCode::InvalidRequest);
        assert_eq!(ack_packet.syndrome, if fits { Syndrome::ACK } else { nak });
    }
}

#[test]
fn a_packet_at_the_wrong_position_stops_the_queue_pair() {
    let mut responder = responder(Service::Rc);
    refused(&mut responder, &send(0, Position::First, 256));
    let only = send(1, Position::Only, 10);
    assert_eq!(refused(&mut responder, &only), Some(DropReason::Opcode));
    assert!(responder.has_failed());
    assert_eq!(refused(&mut responder, &only), Some(DropReason::QueuePair));
}

#[test]
fn the_message_sequence_number_counts_messages() {
    let mut responder = responder(Service::Rc);
    let msns: Vec<u32> = [(0, Position::Only), (1, Position::First), (2, Position::Last)]
        .into_iter()
        .map(|(psn, position)| {
            match responder.on_request(&send(psn, position, 256), Instant::ZERO).ack {
                AckAction::Send(ack_packet) => ack_packet.msn,
                other => panic!("{other:?}"),
            }
        })
        .collect();
    assert_eq!(msns, [1, 1, 2]);
}

#[test]
fn after_rnr_later_packets_return_no_nak() {
    let mut responder = responder(Service::Rc);
    responder.buffers = ReceiveBuffers::new(1, Duration::from_ps(50));
    assert!(responder.buffers.take(Instant::ZERO));
    responder.buffers.give_back(Instant::ZERO);
    let first = responder.on_request(&send(0, Position::Only, 1), Instant::from_ps(10));
    assert_eq!(first.result.err(), Some(DropReason::ReceiverNotReady));
    let AckAction::Send(ack_packet) = first.ack else { panic!("no RNR NAK") };
    assert_eq!((ack_packet.psn.get(), ack_packet.syndrome), (0, Syndrome::Rnr { timer: 14 }));
    let second = responder.on_request(&send(1, Position::Only, 1), Instant::from_ps(11));
    assert_eq!(
        (second.result.err(), second.ack),
        (Some(DropReason::OutOfSequence), AckAction::None)
    );
    let again = responder.on_request(&send(0, Position::Only, 1), Instant::from_ps(50));
    assert_eq!(again.result.err(), None);
}

#[test]
fn an_unreliable_message_with_a_gap_is_discarded_up_to_the_next_message() {
    use Position::{First, Last, Middle};
    let mut responder = responder(Service::Uc);
    let results: Vec<Option<DropReason>> =
        [(0, First), (2, Last), (3, First), (4, Middle), (4, Middle), (5, Last), (6, Middle)]
            .into_iter()
            .map(|(psn, position)| refused(&mut responder, &send(psn, position, 256)))
            .collect();
    let lost = Some(DropReason::OutOfSequence);
    assert_eq!(results, [None, lost, None, None, Some(DropReason::Duplicate), None, lost]);
    assert_eq!(responder.msn, 1);
}
