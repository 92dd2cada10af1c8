//! TX: what the device sends, field by field.

use super::pair::{Pair, Terms, names};
use super::{Got, Nic, Scripts};
use crate::verdict::{Check, Fault, must};
use proto::ids::Ecn;
use proto::wire::infiniband::{AtomicEth, ImmDt, Opcode, Reth};
use proto::wire::roce::checks::{verify_checksums, verify_icrc};
use verbs::pattern::{Pattern, Stream};
use verbs::work::{Operands, Operation, SendWork};

pub(super) const SCRIPTS: Scripts = &[
    ("TX-01", checks),
    ("TX-02", grammar),
    ("TX-03", pads),
    ("TX-04", fixed_fields),
    ("TX-05", migration),
    ("TX-06", traffic_class),
    ("TX-07", lengths),
    ("TX-08", ack_request),
    ("TX-09", solicited),
    ("TX-10", immediate),
    ("TX-11", write),
    ("TX-12", read),
    ("TX-13", atomics),
    ("TX-14", numbers),
    ("TX-15", source_port),
    ("TX-16", empty),
    ("TX-17", answers),
];

/// A work request's packets, of which there must be `count`.
fn sent(
    nic: &mut Nic<'_>,
    terms: Terms,
    (operation, length, count): (Operation, u32, usize),
    change: impl FnOnce(&mut SendWork),
) -> Check<(Pair, Vec<Got>)> {
    let pair = nic.connect(terms)?;
    let mark = nic.mark();
    nic.post_work(&pair, 1, operation, length, change)?;
    let got = nic.exactly(&pair, mark, count)?;
    Ok((pair, got))
}

fn plain(nic: &mut Nic<'_>, operation: Operation, length: u32, count: usize) -> Check<Vec<Got>> {
    sent(nic, Terms::default(), (operation, length, count), |_| {}).map(|(_, got)| got)
}

fn has_opcodes(got: &[Got], opcodes: &[Opcode]) -> Check<()> {
    let found: Vec<Opcode> = got.iter().map(|got| got.bth.opcode).collect();
    must!(found == opcodes, "it sends {}", names(got));
    Ok(())
}

fn checks(nic: &mut Nic<'_>) -> Check {
    let mut count = 0;
    for length in [1, 64, 1024, 3000] {
        let packets = (length as usize).div_ceil(1024);
        for got in plain(nic, Operation::Send, length, packets)? {
            verify_icrc(&got.octets).map_err(Fault::fail)?;
            verify_checksums(&got.octets).map_err(Fault::fail)?;
            must!(got.udp.destination_port == 4791, "UDP port {}", got.udp.destination_port);
            count += 1;
        }
    }
    Ok(format!("{count} packets to UDP port 4791 with right ICRC and checksums"))
}

fn grammar(nic: &mut Nic<'_>) -> Check {
    let got = plain(nic, Operation::Send, 3 * 1024 - 5, 3)?;
    has_opcodes(&got, &[Opcode::RC_SEND_FIRST, Opcode::RC_SEND_MIDDLE, Opcode::RC_SEND_LAST])?;
    let lengths: Vec<usize> = got.iter().map(|got| got.payload.len()).collect();
    must!(lengths == [1024, 1024, 1019], "payloads of {lengths:?}");
    let all: Vec<u8> = got.iter().flat_map(|got| got.payload.clone()).collect();
    let different = Pattern::of(Stream::Mixed(7)).check(&all);
    must!(different.is_none(), "the content differs at {different:?}");
    Ok("First, Middle and Last of 1024, 1024 and 1019 octets with the content of the memory"
        .to_owned())
}

fn pads(nic: &mut Nic<'_>) -> Check {
    for length in 1..=8u32 {
        let got = plain(nic, Operation::Send, length, 1)?;
        let expected = (length.wrapping_neg() % 4) as u8;
        let pad = got[0].bth.pad_count;
        must!(pad == expected, "a pad count of {pad} for {length} octets, not {expected}");
        must!(
            got[0].payload.len() == length as usize,
            "{} octets of {length}",
            got[0].payload.len()
        );
    }
    Ok("pad counts of 1 to 8 octets as they must be".to_owned())
}

fn fixed_fields(nic: &mut Nic<'_>) -> Check {
    let bth = plain(nic, Operation::Send, 64, 1)?[0].bth;
    // Bit 15 tells full members from limited ones.
    must!(bth.partition_key & 0x7fff == 0x7fff, "P_Key {:04x}", bth.partition_key);
    must!(bth.version == 0, "transport version {}", bth.version);
    must!(
        bth.reserved6 == 0 && bth.reserved7 == 0,
        "reserved bits {:x} {:x}",
        bth.reserved6,
        bth.reserved7
    );
    must!(!bth.fecn && !bth.becn, "FECN or BECN without congestion");
    Ok(format!("P_Key {:04x}, version 0, reserved bits 0", bth.partition_key))
}

fn migration(nic: &mut Nic<'_>) -> Check {
    let bth = plain(nic, Operation::Send, 64, 1)?[0].bth;
    if bth.migration_request {
        return Ok("MigReq is 1".to_owned());
    }
    Err(Fault::deviation("MigReq is 0; some adapters treat such packets as slow ones"))
}

fn traffic_class(nic: &mut Nic<'_>) -> Check {
    let terms = Terms { traffic_class: 26 << 2 | 2, ..Terms::default() };
    let (_, got) = sent(nic, terms, (Operation::Send, 64, 1), |_| {})?;
    let (dscp, ecn) = (got[0].ip.dscp.get(), got[0].ip.ecn);
    if (dscp, ecn) == (26, Ecn::Capable0) {
        return Ok("DSCP 26 and ECT(0) as asked".to_owned());
    }
    Err(Fault::deviation(format!("asked for DSCP 26 and ECT(0), it sends DSCP {dscp} and {ecn:?}")))
}

fn lengths(nic: &mut Nic<'_>) -> Check {
    for got in plain(nic, Operation::Send, 1500, 2)? {
        let ip = usize::from(got.ip.total_length);
        must!(
            ip + 14 == got.octets.len(),
            "IP says {ip} octets, the frame has {}",
            got.octets.len()
        );
        must!(usize::from(got.udp.length) + 20 == ip, "UDP says {} octets in {ip}", got.udp.length);
        must!(!got.ip.more_fragments && got.ip.fragment_offset == 0, "a fragment");
        must!(got.ip.time_to_live > 0, "a TTL of 0");
    }
    Ok("lengths of IP and UDP are those of the frame; no fragment".to_owned())
}

fn ack_request(nic: &mut Nic<'_>) -> Check {
    let got = plain(nic, Operation::Send, 2048, 2)?;
    must!(got[1].bth.ack_request, "the last packet of a signaled request asks for no answer");
    Ok(format!("AckReq: First {}, Last {}", got[0].bth.ack_request, got[1].bth.ack_request))
}

fn solicited(nic: &mut Nic<'_>) -> Check {
    for wanted in [false, true] {
        let change = |work: &mut SendWork| work.solicited = wanted;
        let (_, got) = sent(nic, Terms::default(), (Operation::Send, 2048, 2), change)?;
        must!(got[1].bth.solicited == wanted, "asked for {wanted}, SE is {}", got[1].bth.solicited);
        must!(!got[0].bth.solicited, "SE in a First");
    }
    Ok("SE in the last packet, where it is asked for".to_owned())
}

fn immediate(nic: &mut Nic<'_>) -> Check {
    let change = |work: &mut SendWork| work.immediate = Some(0x0102_0304);
    let (_, got) = sent(nic, Terms::default(), (Operation::Send, 64, 1), change)?;
    has_opcodes(&got, &[Opcode::RC_SEND_ONLY_IMMEDIATE])?;
    let data = got[0].extended.immdt;
    must!(data == Some(ImmDt { data: [1, 2, 3, 4] }), "{data:?}");
    Ok("SEND Only with Immediate, most significant octet first".to_owned())
}

fn write(nic: &mut Nic<'_>) -> Check {
    let got = plain(nic, Operation::Write, 2500, 3)?;
    has_opcodes(&got, &[Opcode::RC_WRITE_FIRST, Opcode::RC_WRITE_MIDDLE, Opcode::RC_WRITE_LAST])?;
    let expected =
        Reth { virtual_address: 0x1234_5678_9abc_0000, remote_key: 0x0bad_cafe, dma_length: 2500 };
    must!(got[0].extended.reth == Some(expected), "{:?}", got[0].extended.reth);
    Ok("address, R_Key and the length of the whole message in the First alone".to_owned())
}

fn read(nic: &mut Nic<'_>) -> Check {
    let got = plain(nic, Operation::Read, 2500, 1)?;
    has_opcodes(&got, &[Opcode::RC_READ_REQUEST])?;
    let expected =
        Reth { virtual_address: 0x1234_5678_9abc_0000, remote_key: 0x0bad_cafe, dma_length: 2500 };
    must!(got[0].extended.reth == Some(expected), "{:?}", got[0].extended.reth);
    must!(got[0].payload.is_empty(), "{} octets of payload", got[0].payload.len());
    Ok("one request with address, R_Key and length".to_owned())
}

fn atomics(nic: &mut Nic<'_>) -> Check {
    let operands = Operands { compare: 0x1111, swap_or_add: 0x2222, ..Operands::default() };
    for (operation, opcode) in [
        (Operation::CompareSwap, Opcode::RC_COMPARE_SWAP),
        (Operation::FetchAdd, Opcode::RC_FETCH_ADD),
    ] {
        let change = |work: &mut SendWork| work.operands = Some(operands);
        let (_, got) = sent(nic, Terms::default(), (operation, 8, 1), change)?;
        has_opcodes(&got, &[opcode])?;
        let found = got[0].extended.atomic_eth;
        let AtomicEth { virtual_address, remote_key, swap_or_add, compare } =
            found.ok_or_else(|| Fault::fail("no AtomicETH"))?;
        must!(virtual_address == 0x1234_5678_9abc_0000 && remote_key == 0x0bad_cafe, "{found:?}");
        must!(swap_or_add == 0x2222, "{found:?}");
        must!(operation == Operation::FetchAdd || compare == 0x1111, "{found:?}");
    }
    Ok("CmpSwap and FetchAdd with address, R_Key and operands".to_owned())
}

fn numbers(nic: &mut Nic<'_>) -> Check {
    let terms = Terms { send_psn: 0xff_fffe, ..Terms::default() };
    let (pair, got) = sent(nic, terms, (Operation::Send, 4096, 4), |_| {})?;
    for (n, got) in (0..).zip(&got) {
        let expected = pair.out_psn(n);
        must!(got.bth.psn == expected, "packet {n} has PSN {:06x}", got.bth.psn.get());
    }
    Ok("from the PSN of the connection on, one more each, over the wrap".to_owned())
}

fn source_port(nic: &mut Nic<'_>) -> Check {
    let got = plain(nic, Operation::Send, 4096, 4)?;
    let ports: Vec<u16> = got.iter().map(|got| got.udp.source_port).collect();
    must!(ports.iter().all(|port| *port == ports[0]), "source ports {ports:?} in one message");
    if ports[0] < 0xc000 {
        return Err(Fault::deviation(format!("source port {}, below 49152", ports[0])));
    }
    Ok(format!("source port {} in every packet", ports[0]))
}

fn empty(nic: &mut Nic<'_>) -> Check {
    let got = plain(nic, Operation::Send, 0, 1)?;
    has_opcodes(&got, &[Opcode::RC_SEND_ONLY])?;
    must!(
        got[0].payload.is_empty() && got[0].bth.pad_count == 0,
        "{} octets",
        got[0].payload.len()
    );
    verify_icrc(&got[0].octets).map_err(Fault::fail)?;
    Ok("SEND Only without payload".to_owned())
}

fn answers(nic: &mut Nic<'_>) -> Check {
    let pair = nic.connect(Terms::default())?;
    nic.post_receives(&pair, 1)?;
    let mark = nic.mark();
    nic.send(&pair.message(0))?;
    let got = nic.exactly(&pair, mark, 1)?;
    has_opcodes(&got, &[Opcode::RC_ACKNOWLEDGE])?;
    verify_icrc(&got[0].octets).map_err(Fault::fail)?;
    verify_checksums(&got[0].octets).map_err(Fault::fail)?;
    must!(
        got[0].payload.is_empty() && got[0].bth.pad_count == 0,
        "an acknowledgement with payload"
    );
    must!(!got[0].bth.ack_request && !got[0].bth.solicited, "AckReq or SE in an acknowledgement");
    Ok("an acknowledgement with right ICRC and without payload".to_owned())
}
