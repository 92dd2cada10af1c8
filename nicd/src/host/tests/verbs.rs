//! SEND, WRITE, READ and atomics of a peer, and the programs behind them.

use super::*;

const NUMBER: u32 = 0x99;

/// A connection of the peer: it counts PSNs as a requester does.
struct Requests {
    bench: Bench,
    to: QueuePairNumber,
    psn: Psn,
}

impl Requests {
    fn to_service(port: u16) -> Requests {
        let mut bench = Bench::new();
        let reply = bench.connect(port);
        Requests { bench, to: reply.queue_pair, psn: reply.starting_psn }
    }

    /// Sends a request with `psn` that asks for an acknowledgement.
    fn at(
        &mut self,
        psn: Psn,
        opcode: Opcode,
        extended: ExtendedHeaders,
        payload: &[u8],
    ) -> Vec<(Bth, ExtendedHeaders, Vec<u8>)> {
        let bth = Bth { ack_request: true, ..Bth::new(opcode, self.to, psn) };
        let from = QueuePairNumber::truncate(NUMBER);
        data(&self.bench.roce(Packet { from, bth, extended, traffic_class: DATA }, payload))
    }

    /// Sends the next request, which takes `packets` PSNs.
    fn next(
        &mut self,
        packets: u32,
        opcode: Opcode,
        extended: ExtendedHeaders,
        payload: &[u8],
    ) -> Vec<(Bth, ExtendedHeaders, Vec<u8>)> {
        let psn = self.psn;
        self.psn = psn.plus(packets);
        self.at(psn, opcode, extended, payload)
    }

    fn send(&mut self, payload: &[u8]) -> Vec<(Bth, ExtendedHeaders, Vec<u8>)> {
        self.next(1, Opcode::RC_SEND_ONLY, ExtendedHeaders::NONE, payload)
    }

    /// Answers a packet of the NIC.
    fn answer(
        &mut self,
        opcode: Opcode,
        psn: Psn,
        syndrome: Syndrome,
        payload: &[u8],
    ) -> Vec<(Bth, ExtendedHeaders, Vec<u8>)> {
        let aeth = Some(Aeth { syndrome, message_sequence_number: 0 });
        let aeth = aeth.filter(|_| opcode != Opcode::RC_READ_RESPONSE_MIDDLE);
        let bth = Bth::new(opcode, self.to, psn);
        let extended = ExtendedHeaders { aeth, ..ExtendedHeaders::NONE };
        let from = QueuePairNumber::truncate(NUMBER);
        data(&self.bench.roce(Packet { from, bth, extended, traffic_class: DATA }, payload))
    }
}

fn with_reth(virtual_address: u64, remote_key: u32, dma_length: u32) -> ExtendedHeaders {
    let reth = Some(Reth { virtual_address, remote_key, dma_length });
    ExtendedHeaders { reth, ..ExtendedHeaders::NONE }
}

fn opcodes(packets: &[(Bth, ExtendedHeaders, Vec<u8>)]) -> Vec<Opcode> {
    packets.iter().map(|(bth, ..)| bth.opcode).collect()
}

/// The R_Key and address that the control connection of perftest tells.
fn keys(control: &mut Requests) -> (u32, u64) {
    let answers = control.send(&[0; 56]);
    let (_, _, keys) = answers.iter().find(|(.., payload)| payload.len() == 56).expect("keys");
    let key = u32::from_be_bytes(*keys[16..].first_chunk().expect("four octets"));
    (key, u64::from_be_bytes(*keys[24..].first_chunk().expect("eight octets")))
}

#[test]
fn rping_is_read_and_written_back() {
    let mut client = Requests::to_service(7174);
    let ping: Vec<u8> = (0..2500).map(|n| n as u8).collect();
    let place = |address: u64| with_reth(address, 0x81b, 2500).reth.expect("a RETH").to_octets();
    let asked = client.send(&place(0x7000));
    assert_eq!(opcodes(&asked), [Opcode::RC_ACKNOWLEDGE, Opcode::RC_READ_REQUEST]);
    let (bth, extended, _) = &asked[1];
    assert_eq!(bth.psn, Psn::truncate(1000), "as the REQ asks");
    assert_eq!(
        (bth.destination.get(), extended.reth),
        (NUMBER, with_reth(0x7000, 0x81b, 2500).reth)
    );

    let (first, last) = (Opcode::RC_READ_RESPONSE_FIRST, Opcode::RC_READ_RESPONSE_LAST);
    assert!(client.answer(first, Psn::truncate(1000), Syndrome::ACK, &ping[..1024]).is_empty());
    // The middle is lost: the rest is asked for once.
    let again = client.answer(last, Psn::truncate(1002), Syndrome::ACK, &ping[2048..]);
    assert_eq!(again[0].1.reth, with_reth(0x7400, 0x81b, 1476).reth);
    assert_eq!(again[0].0.psn, Psn::truncate(1001));
    assert!(client.answer(first, Psn::truncate(1001), Syndrome::ACK, &ping[1024..2048]).is_empty());
    let ahead = client.answer(last, Psn::truncate(1002), Syndrome::ACK, &ping[2048..]);
    assert_eq!((opcodes(&ahead), ahead[0].2.len()), (vec![Opcode::RC_SEND_ONLY], 16));
    client.answer(Opcode::RC_ACKNOWLEDGE, Psn::truncate(1003), Syndrome::ACK, &[]);

    let written = client.send(&place(0x9000));
    let write = [Opcode::RC_WRITE_FIRST, Opcode::RC_WRITE_MIDDLE, Opcode::RC_WRITE_LAST];
    assert_eq!(opcodes(&written)[1..], write);
    assert_eq!(written[1].1.reth, with_reth(0x9000, 0x81b, 2500).reth);
    assert_eq!([&written[1].2[..], &written[2].2, &written[3].2].concat(), ping);
    let done = client.answer(Opcode::RC_ACKNOWLEDGE, Psn::truncate(1006), Syndrome::ACK, &[]);
    assert_eq!(opcodes(&done), [Opcode::RC_SEND_ONLY]);
}

#[test]
fn a_requester_goes_back_by_nak_and_time_and_waits_for_a_receiver() {
    let mut client = Requests::to_service(18515);
    let answers = client.send(b"5.96");
    let sent = answers[1].0;
    assert_eq!((sent.opcode, &answers[1].2[..]), (Opcode::RC_SEND_ONLY, &b"5.96"[..]));
    let begin = client.bench.now;
    let again = client.bench.wait();
    assert_eq!(data(&again)[0].0.psn, sent.psn, "after the local ACK timeout");
    let timeout = client.bench.now.since(begin).as_ps();
    assert!(timeout.abs_diff(4_096_000 << 14) < 1_000_000_000, "{timeout} ps");
    let nak = Syndrome::Nak(NakCode::PsnSequence);
    let again = client.answer(Opcode::RC_ACKNOWLEDGE, sent.psn, nak, &[]);
    assert_eq!(opcodes(&again), [Opcode::RC_SEND_ONLY]);
    let rnr = Syndrome::Rnr { timer: 20 };
    assert!(client.answer(Opcode::RC_ACKNOWLEDGE, sent.psn, rnr, &[]).is_empty(), "it waits");
    let begin = client.bench.now;
    assert_eq!(opcodes(&data(&client.bench.wait())), [Opcode::RC_SEND_ONLY]);
    let waited = client.bench.now.since(begin).as_ps();
    assert!(waited.abs_diff(10_240_000_000) < 1_000_000_000, "{waited} ps for 10.24 ms");
    assert!(client.answer(Opcode::RC_ACKNOWLEDGE, sent.psn, Syndrome::ACK, &[]).is_empty());
    assert_eq!(client.bench.counter("host_repeated"), 3);
}

#[test]
fn a_write_is_read_back_and_repetitions_change_nothing() {
    let mut client = Requests::to_service(18515);
    let (key, start) = keys(&mut client);
    let octets: Vec<u8> = (0..2048).map(|n| (n * 7) as u8).collect();
    let first = client.psn;
    let (begin, rest) = (Opcode::RC_WRITE_FIRST, Opcode::RC_WRITE_LAST);
    client.next(1, begin, with_reth(start + 5, key, 2048), &octets[..1024]);
    let acks = client.next(1, rest, ExtendedHeaders::NONE, &octets[1024..]);
    assert_eq!((opcodes(&acks), acks[0].0.psn), (vec![Opcode::RC_ACKNOWLEDGE], first.next()));
    let again = client.at(first, begin, with_reth(start + 5, key, 2048), &[0; 1024]);
    assert_eq!(again[0].0.psn, first.next(), "a repetition is acknowledged and not executed");

    let psn = client.psn;
    let reth = with_reth(start + 5, key, 2048);
    let read = client.next(2, Opcode::RC_READ_REQUEST, reth, &[]);
    let parts = [Opcode::RC_READ_RESPONSE_FIRST, Opcode::RC_READ_RESPONSE_LAST];
    assert_eq!(opcodes(&read), parts);
    assert_eq!([&read[0].2[..], &read[1].2].concat(), octets);
    let later = with_reth(start + 5 + 1024, key, 1024);
    let again = client.at(psn.next(), Opcode::RC_READ_REQUEST, later, &[]);
    assert_eq!((opcodes(&again), &again[0].2), (vec![Opcode::RC_READ_RESPONSE_ONLY], &read[1].2));
    let gap = client.psn.plus(3);
    let nak = client.at(gap, Opcode::RC_SEND_ONLY, ExtendedHeaders::NONE, b"x");
    let syndrome = nak[0].1.aeth.expect("an AETH").syndrome;
    assert_eq!((nak[0].0.psn, syndrome), (client.psn, Syndrome::Nak(NakCode::PsnSequence)));
    let next = client.at(gap.next(), Opcode::RC_SEND_ONLY, ExtendedHeaders::NONE, b"x");
    assert!(next.is_empty(), "one NAK a gap");
}

#[test]
fn an_atomic_has_its_first_result_however_often_it_is_asked() {
    let mut client = Requests::to_service(18515);
    let (remote_key, virtual_address) = keys(&mut client);
    let atomic = |swap_or_add, compare| {
        let atomic = AtomicEth { virtual_address, remote_key, swap_or_add, compare };
        ExtendedHeaders { atomic_eth: Some(atomic), ..ExtendedHeaders::NONE }
    };
    let original = |packets: &[(Bth, ExtendedHeaders, Vec<u8>)]| {
        packets[0].1.atomic_ack_eth.expect("an atomic acknowledgement").original
    };
    let (add, swap) = (Opcode::RC_FETCH_ADD, Opcode::RC_COMPARE_SWAP);
    let first = client.psn;
    assert_eq!(original(&client.next(1, add, atomic(5, 0), &[])), 0);
    assert_eq!(original(&client.next(1, add, atomic(2, 0), &[])), 5);
    assert_eq!(original(&client.at(first, add, atomic(5, 0), &[])), 0, "asked again");
    assert_eq!(original(&client.next(1, swap, atomic(9, 7), &[])), 7);
    assert_eq!(original(&client.next(1, swap, atomic(1, 7), &[])), 9, "not equal: not swapped");
    assert_eq!(original(&client.next(1, add, atomic(0, 0), &[])), 9);
}

#[test]
fn a_wrong_key_or_an_odd_atomic_ends_the_connection_with_a_nak() {
    let atomic = |virtual_address, remote_key| ExtendedHeaders {
        atomic_eth: Some(AtomicEth { virtual_address, remote_key, swap_or_add: 1, compare: 0 }),
        ..ExtendedHeaders::NONE
    };
    for (is_odd, code) in [(false, NakCode::RemoteAccess), (true, NakCode::InvalidRequest)] {
        let mut client = Requests::to_service(18515);
        let (key, start) = keys(&mut client);
        let (opcode, extended, payload) = match is_odd {
            false => (Opcode::RC_WRITE_ONLY, with_reth(start, key ^ 2, 4), &b"1234"[..]),
            true => (Opcode::RC_FETCH_ADD, atomic(start + 4, key), &[][..]),
        };
        let bth = Bth::new(opcode, client.to, client.psn);
        let from = QueuePairNumber::truncate(NUMBER);
        let sent = client.bench.roce(Packet { from, bth, extended, traffic_class: DATA }, payload);
        let (bth, headers, _) = &data(&sent)[0];
        assert_eq!(headers.aeth.expect("an AETH").syndrome, Syndrome::Nak(code));
        assert!(bth.migration_request, "the path state is Migrated");
        assert!(matches!(messages(&sent)[..], [Message::Disconnect(_)]), "and a DREQ");
        assert!(client.send(b"x").is_empty(), "the queue pair is in the error state");
    }
}
