//! RDMA: READ, WRITE and atomics, with the device as responder and as requester.

use super::pair::{Pair, RECEIVES, Terms, content, names};
use super::{Got, Nic, Packet, Scripts};
use crate::verdict::{Check, Fault, must};
use proto::wire::infiniband::{
    Aeth, AtomicAckEth, AtomicEth, ExtendedHeaders, ImmDt, NakCode, Opcode, Reth, Syndrome,
};
use verbs::work::{Completed, Operands, Operation, SendWork, Status};

pub(super) const SCRIPTS: Scripts = &[
    ("RDMA-01", read),
    ("RDMA-02", read_again),
    ("RDMA-03", reads),
    ("RDMA-04", read_gap),
    ("RDMA-05", write),
    ("RDMA-06", |nic| denied(nic, "another R_Key", |reth| reth.remote_key ^= 0x5a00)),
    ("RDMA-07", |nic| {
        denied(nic, "one octet too far", |reth| reth.virtual_address += 32 * 1024 - 63)
    }),
    ("RDMA-08", empty_write),
    ("RDMA-09", fetch_add),
    ("RDMA-10", atomic_again),
    ("RDMA-11", compare_swap),
    ("RDMA-12", misaligned),
    ("RDMA-13", write_immediate),
    ("RDMA-14", write_announces),
    ("RDMA-15", fetches),
    ("RDMA-16", read_passed_over),
    ("RDMA-17", |nic| {
        denied(nic, "an end beyond 2^64", |reth| reth.virtual_address = u64::MAX - 31)
    }),
    ("RDMA-18", short_response),
    ("RDMA-19", long_write),
];

fn reth(pair: &Pair, length: u32) -> Reth {
    Reth { virtual_address: pair.target(), remote_key: pair.memory.rkey, dma_length: length }
}

fn with_reth(mut packet: Packet, reth: Reth) -> Packet {
    packet.extended = ExtendedHeaders { reth: Some(reth), ..packet.extended };
    packet
}

fn connected(nic: &mut Nic<'_>) -> Check<Pair> {
    let pair = nic.connect(Terms::default())?;
    nic.write_memory(&pair, RECEIVES, content(3, 4096))?;
    Ok(pair)
}

/// A READ of 2500 octets and its responses.
fn read_once(nic: &mut Nic<'_>, pair: &Pair, n: u32) -> Check<Vec<Got>> {
    let mark = nic.mark();
    nic.send(&with_reth(pair.packet(Opcode::RC_READ_REQUEST, n, &[]), reth(pair, 2500)))?;
    nic.exactly(pair, mark, 3)
}

fn is_read(pair: &Pair, got: &[Got]) -> Check<()> {
    let opcodes: Vec<Opcode> = got.iter().map(|got| got.bth.opcode).collect();
    let expected = [
        Opcode::RC_READ_RESPONSE_FIRST,
        Opcode::RC_READ_RESPONSE_MIDDLE,
        Opcode::RC_READ_RESPONSE_LAST,
    ];
    must!(opcodes == expected, "a READ is answered by {}", names(got));
    for (n, got) in (0..).zip(got) {
        must!(got.bth.psn == pair.in_psn(n), "response {n} has PSN {:06x}", got.bth.psn.get());
    }
    let octets: Vec<u8> = got.iter().flat_map(|got| got.payload.clone()).collect();
    must!(
        octets == content(3, 4096)[..2500],
        "{} octets, and not those of the memory",
        octets.len()
    );
    Ok(())
}

fn read(nic: &mut Nic<'_>) -> Check {
    let pair = connected(nic)?;
    let got = read_once(nic, &pair, 0)?;
    is_read(&pair, &got)?;
    Ok("First, Middle and Last with consecutive PSNs and the octets of the memory".to_owned())
}

fn read_again(nic: &mut Nic<'_>) -> Check {
    let pair = connected(nic)?;
    read_once(nic, &pair, 0)?;
    let got = read_once(nic, &pair, 0)?;
    is_read(&pair, &got)?;
    Ok("a repeated READ is answered again, with the same PSNs".to_owned())
}

/// The responses of the tester to the device's READ of 2500 octets.
fn responses(pair: &Pair) -> Vec<Packet> {
    let aeth = Some(Aeth { syndrome: Syndrome::ACK, message_sequence_number: 1 });
    let rows = [
        (Opcode::RC_READ_RESPONSE_FIRST, 0, 1024, aeth),
        (Opcode::RC_READ_RESPONSE_MIDDLE, 1, 1024, None),
        (Opcode::RC_READ_RESPONSE_LAST, 2, 452, aeth),
    ];
    let response = |(opcode, n, length, aeth): (Opcode, usize, usize, Option<Aeth>)| {
        let mut packet = super::packet(pair.number, opcode, pair.out_psn(n as u32));
        packet.extended = ExtendedHeaders { aeth, ..ExtendedHeaders::NONE };
        packet.payload = content(5, 2500)[n * 1024..n * 1024 + length].to_vec();
        packet
    };
    rows.map(response).into()
}

fn asks(nic: &mut Nic<'_>) -> Check<Pair> {
    let pair = nic.connect(Terms::default())?;
    let mark = nic.mark();
    nic.post(&pair, Operation::Read, 1, 2500)?;
    nic.exactly(&pair, mark, 1)?;
    Ok(pair)
}

fn has_read(nic: &mut Nic<'_>, pair: &Pair) -> Check<()> {
    let sent = nic.sent(pair, 1)?;
    must!(
        sent.first().is_some_and(|done| done.status == Status::Success),
        "it completes as {sent:?}"
    );
    let octets = nic.memory(pair, 0, 2500)?;
    must!(octets == content(5, 2500), "the octets in memory are not those of the responses");
    Ok(())
}

fn reads(nic: &mut Nic<'_>) -> Check {
    let pair = asks(nic)?;
    for response in responses(&pair) {
        nic.send(&response)?;
    }
    has_read(nic, &pair)?;
    Ok("three responses are put together".to_owned())
}

fn read_gap(nic: &mut Nic<'_>) -> Check {
    let pair = asks(nic)?;
    let all = responses(&pair);
    let mark = nic.mark();
    nic.send(&all[0])?;
    nic.send(&all[2])?;
    let got = nic.packets(mark, 0)?;
    let sent = nic.sent(&pair, 0)?;
    must!(sent.is_empty(), "with a response missing it completes as {sent:?}");
    match got.first() {
        None => Err(Fault::deviation("it asks again only after its timeout; a gap means a NAK")),
        Some(again) => {
            must!(again.bth.psn == pair.out_psn(1), "it asks again: {}", names(&got));
            let left = again.extended.reth.map(|reth| (reth.virtual_address, reth.dma_length));
            must!(left == Some((0x1234_5678_9abc_0400, 1476)), "it asks again for {left:?}");
            nic.send(&all[1])?;
            nic.send(&all[2])?;
            has_read(nic, &pair)?;
            Ok("at once it asks again for what is missing, and for no more".to_owned())
        }
    }
}

/// A response in the middle of a READ that is not full.
fn short_response(nic: &mut Nic<'_>) -> Check {
    let pair = asks(nic)?;
    let mut all = responses(&pair);
    all[1].payload.truncate(1000);
    let mark = nic.mark();
    for response in &all {
        nic.send(response)?;
    }
    let sent = nic.sent(&pair, 1)?;
    let Some(done) = sent.first() else {
        let again = nic.packets(mark, 0)?;
        must!(!again.is_empty(), "nothing completes, and nothing is asked for again");
        return Err(Fault::deviation(format!("it asks again: {}", names(&again))));
    };
    must!(done.status != Status::Success, "a READ with a response of 1000 octets completes");
    Ok(format!("the READ ends with {:?}", done.status))
}

/// The answer to a later request shows that the response of a READ is lost.
fn read_passed_over(nic: &mut Nic<'_>) -> Check {
    let pair = nic.connect(Terms::default())?;
    let mark = nic.mark();
    nic.post(&pair, Operation::Read, 1, 452)?;
    nic.post(&pair, Operation::Send, 2, 32)?;
    let got = nic.packets(mark, 2)?;
    if got.len() < 2 {
        return Err(Fault::deviation(format!("the SEND behind a READ waits: {}", names(&got))));
    }
    let mark = nic.mark();
    nic.acknowledge(&pair, pair.out_psn(1), 2)?;
    let got = nic.packets(mark, 0)?;
    let sent = nic.sent(&pair, 0)?;
    must!(sent.is_empty(), "without the response of the READ it completes {sent:?}");
    let Some(again) = got.first() else {
        return Err(Fault::deviation("it asks again only after its timeout"));
    };
    let is_read = again.bth.opcode == Opcode::RC_READ_REQUEST && again.bth.psn == pair.out_psn(0);
    must!(is_read, "it sends {}", names(&got));
    let aeth = Some(Aeth { syndrome: Syndrome::ACK, message_sequence_number: 1 });
    let mut response = super::packet(pair.number, Opcode::RC_READ_RESPONSE_ONLY, pair.out_psn(0));
    response.extended = ExtendedHeaders { aeth, ..ExtendedHeaders::NONE };
    response.payload = content(5, 452);
    nic.send(&response)?;
    nic.acknowledge(&pair, pair.out_psn(1), 2)?;
    let sent = nic.sent(&pair, 2)?;
    must!(sent.len() == 2, "{} of 2 requests complete", sent.len());
    Ok("at once it asks for the READ again, and both complete in the end".to_owned())
}

/// A WRITE of one packet that must be acknowledged.
fn written(nic: &mut Nic<'_>, pair: &Pair, packet: &Packet) -> Check<()> {
    let mark = nic.mark();
    nic.send(packet)?;
    let (syndrome, ..) = nic.answer(pair, mark)?;
    must!(matches!(syndrome, Syndrome::Ack { .. }), "it is answered by {syndrome:?}");
    Ok(())
}

fn write(nic: &mut Nic<'_>) -> Check {
    let pair = connected(nic)?;
    let octets = content(9, 64);
    written(
        nic,
        &pair,
        &with_reth(pair.packet(Opcode::RC_WRITE_ONLY, 0, &octets), reth(&pair, 64)),
    )?;
    let found = nic.memory(&pair, RECEIVES, 66)?;
    must!(found[..64] == octets, "the octets are not where they belong");
    must!(found[64..] == content(3, 66)[64..], "octets behind them have changed");
    let received = nic.received(&pair, 0)?;
    must!(received.is_empty(), "a WRITE completes a receive: {received:?}");
    Ok("64 octets are where they belong, and no others changed".to_owned())
}

/// A WRITE of three packets, of which the last asks for an acknowledgement.
fn long_write(nic: &mut Nic<'_>) -> Check {
    let pair = connected(nic)?;
    let octets = content(9, 2500);
    let first = pair.packet(Opcode::RC_WRITE_FIRST, 0, &octets[..1024]);
    nic.send(&with_reth(first, reth(&pair, 2500)))?;
    nic.send(&pair.packet(Opcode::RC_WRITE_MIDDLE, 1, &octets[1024..2048]))?;
    written(nic, &pair, &pair.packet(Opcode::RC_WRITE_LAST, 2, &octets[2048..]))?;
    let found = nic.memory(&pair, RECEIVES, 2502)?;
    must!(found[..2500] == octets, "the octets are not where they belong");
    must!(found[2500..] == content(3, 2502)[2500..], "octets behind them have changed");
    Ok("2500 octets of three packets are where they belong".to_owned())
}

fn denied(nic: &mut Nic<'_>, what: &str, change: fn(&mut Reth)) -> Check {
    let pair = connected(nic)?;
    let mut wrong = reth(&pair, 64);
    change(&mut wrong);
    let before = nic.memory(&pair, RECEIVES, 4096)?;
    let mark = nic.mark();
    nic.send(&with_reth(pair.packet(Opcode::RC_WRITE_ONLY, 0, &[0xee; 64]), wrong))?;
    let (syndrome, psn, _) = nic.answer(&pair, mark)?;
    must!(syndrome == Syndrome::Nak(NakCode::RemoteAccess), "{what} is answered by {syndrome:?}");
    must!(psn == pair.in_psn(0), "the NAK names {:06x}", psn.get());
    must!(nic.memory(&pair, RECEIVES, 4096)? == before, "{what}: memory has changed");
    Ok(format!("{what}: a NAK of a remote access error, and memory as before"))
}

fn empty_write(nic: &mut Nic<'_>) -> Check {
    let pair = connected(nic)?;
    let anywhere = Reth { virtual_address: 0x10, remote_key: 0x77, dma_length: 0 };
    written(nic, &pair, &with_reth(pair.packet(Opcode::RC_WRITE_ONLY, 0, &[]), anywhere))?;
    Ok("a WRITE of no octets is acknowledged, whatever its R_Key".to_owned())
}

fn write_announces(nic: &mut Nic<'_>) -> Check {
    let pair = connected(nic)?;
    let mark = nic.mark();
    nic.send(&with_reth(pair.packet(Opcode::RC_WRITE_ONLY, 0, &[1; 64]), reth(&pair, 32)))?;
    let (syndrome, ..) = nic.answer(&pair, mark)?;
    must!(
        syndrome == Syndrome::Nak(NakCode::InvalidRequest),
        "64 octets where 32 are announced: {syndrome:?}"
    );
    Ok("more octets than announced draw a NAK of an invalid request".to_owned())
}

fn write_immediate(nic: &mut Nic<'_>) -> Check {
    let pair = connected(nic)?;
    nic.post_receives(&pair, 1)?;
    let mut packet =
        with_reth(pair.packet(Opcode::RC_WRITE_ONLY_IMMEDIATE, 0, &[4; 16]), reth(&pair, 16));
    packet.extended.immdt = Some(ImmDt { data: [1, 2, 3, 4] });
    written(nic, &pair, &packet)?;
    let received = nic.received(&pair, 1)?;
    let good = received.first().is_some_and(|done| {
        done.completed == Completed::ReceiveWrite && done.immediate == Some(0x0102_0304)
    });
    must!(good, "the receive completes as {received:?}");
    Ok("it completes a receive with its immediate data".to_owned())
}

fn atomic(pair: &Pair, opcode: Opcode, n: u32, operands: (u64, u64)) -> Packet {
    let mut packet = pair.packet(opcode, n, &[]);
    packet.extended.atomic_eth = Some(AtomicEth {
        virtual_address: pair.target(),
        remote_key: pair.memory.rkey,
        swap_or_add: operands.0,
        compare: operands.1,
    });
    packet
}

/// The original value that the device returns.
fn original(nic: &mut Nic<'_>, pair: &Pair, packet: &Packet) -> Check<u64> {
    let mark = nic.mark();
    nic.send(packet)?;
    let got = nic.exactly(pair, mark, 1)?;
    must!(got[0].bth.opcode == Opcode::RC_ATOMIC_ACKNOWLEDGE, "it is answered by {}", names(&got));
    must!(got[0].bth.psn == packet.bth.psn, "the answer has PSN {:06x}", got[0].bth.psn.get());
    let found = got[0].extended.atomic_ack_eth.map(|answer| answer.original);
    found.ok_or_else(|| Fault::fail("no AtomicAckETH"))
}

fn with_number(nic: &mut Nic<'_>, number: u64) -> Check<Pair> {
    let pair = connected(nic)?;
    nic.write_memory(&pair, RECEIVES, number.to_le_bytes().to_vec())?;
    Ok(pair)
}

fn number(nic: &mut Nic<'_>, pair: &Pair) -> Check<u64> {
    let octets = nic.memory(pair, RECEIVES, 8)?;
    let octets = octets.first_chunk().ok_or_else(|| Fault::fail("no memory"))?;
    Ok(u64::from_le_bytes(*octets))
}

fn fetch_add(nic: &mut Nic<'_>) -> Check {
    let pair = with_number(nic, 40)?;
    let was = original(nic, &pair, &atomic(&pair, Opcode::RC_FETCH_ADD, 0, (2, 0)))?;
    let is = number(nic, &pair)?;
    must!((was, is) == (40, 42), "40 + 2: returned {was}, in memory {is}");
    Ok("40 is returned, 42 is in memory".to_owned())
}

fn atomic_again(nic: &mut Nic<'_>) -> Check {
    let pair = with_number(nic, 40)?;
    let packets = [0, 1].map(|n| atomic(&pair, Opcode::RC_FETCH_ADD, n, (2, 0)));
    let first = [original(nic, &pair, &packets[0])?, original(nic, &pair, &packets[1])?];
    let again = [original(nic, &pair, &packets[0])?, original(nic, &pair, &packets[1])?];
    let is = number(nic, &pair)?;
    must!(first == again, "the first answers {first:?}, later {again:?}");
    must!(is == 44, "two additions and their repetitions make {is}, not 44");
    Ok("repeated atomics get their first answers, and memory does not change".to_owned())
}

fn compare_swap(nic: &mut Nic<'_>) -> Check {
    let pair = with_number(nic, 40)?;
    let wrong = original(nic, &pair, &atomic(&pair, Opcode::RC_COMPARE_SWAP, 0, (7, 41)))?;
    let between = number(nic, &pair)?;
    let right = original(nic, &pair, &atomic(&pair, Opcode::RC_COMPARE_SWAP, 1, (7, 40)))?;
    let is = number(nic, &pair)?;
    must!((wrong, between, right, is) == (40, 40, 40, 7), "{wrong}, {between}, {right}, {is}");
    Ok("it swaps where the comparison holds, and returns the number before".to_owned())
}

fn misaligned(nic: &mut Nic<'_>) -> Check {
    let pair = with_number(nic, 40)?;
    let mut packet = atomic(&pair, Opcode::RC_FETCH_ADD, 0, (2, 0));
    if let Some(header) = &mut packet.extended.atomic_eth {
        header.virtual_address += 4;
    }
    let mark = nic.mark();
    nic.send(&packet)?;
    let (syndrome, ..) = nic.answer(&pair, mark)?;
    if syndrome == Syndrome::Nak(NakCode::RemoteAccess) {
        return Err(Fault::deviation("a NAK of a remote access error"));
    }
    must!(syndrome == Syndrome::Nak(NakCode::InvalidRequest), "it is answered by {syndrome:?}");
    Ok("an address that is not a multiple of eight draws a NAK of an invalid request".to_owned())
}

fn fetches(nic: &mut Nic<'_>) -> Check {
    let pair = nic.connect(Terms::default())?;
    let mark = nic.mark();
    let operands = Operands { swap_or_add: 1, ..Operands::default() };
    nic.post_work(&pair, 1, Operation::FetchAdd, 8, |work: &mut SendWork| {
        work.operands = Some(operands)
    })?;
    nic.exactly(&pair, mark, 1)?;
    let mut answer = super::packet(pair.number, Opcode::RC_ATOMIC_ACKNOWLEDGE, pair.out_psn(0));
    let aeth = Aeth { syndrome: Syndrome::ACK, message_sequence_number: 1 };
    answer.extended.aeth = Some(aeth);
    answer.extended.atomic_ack_eth = Some(AtomicAckEth { original: 0x0102_0304_0506_0708 });
    nic.send(&answer)?;
    let sent = nic.sent(&pair, 1)?;
    must!(
        sent.first().is_some_and(|done| done.status == Status::Success),
        "it completes as {sent:?}"
    );
    let octets = nic.memory(&pair, 0, 8)?;
    must!(octets == 0x0102_0304_0506_0708u64.to_le_bytes(), "memory has {octets:?}");
    Ok("the original number is where it was asked for".to_owned())
}
