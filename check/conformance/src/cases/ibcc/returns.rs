//! IBCC-06 and IBCC-07 on the virtual clock: acknowledgements for several packets, packets that draw none, and
//! a notification field by field.

use crate::prelude::*;
use proto::wire::infiniband::{
    Aeth, Bth, Deth, ExtendedHeaders, Opcode, Packet as Parsed, Syndrome, crc,
};
use testbed::frames::infiniband::Packet;

/// A NIC with LID 1 under ib-cca with these keys of the NIC and of the scheme, and one class of traffic.
///
/// # Errors
/// If the NIC refuses them, or its link does not train.
pub fn bench(nic: &str, scheme: &str, class: &str) -> Result<Bench> {
    let keys = format!("arrivals = \"backlog\"\nmessages = 1\nsize = \"64 B\"\n{class}");
    let rest = format!(
        "sl2vl = [0, 1, 2, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]\nnic = {{ {nic} }}\n[scheme]\n\
         kind = \"ib-cca\"\n{scheme}\n{}",
        traffic("class", "h2", "h1", &keys)
    );
    let star = Star { nics: 2, link: "vls = 4", rest: &rest, ..Star::FAST };
    let mut bench = Stage::new(Level::Engine, &star.text(), "h1")?.bench()?.up()?;
    bench.clear();
    Ok(bench)
}

/// LID 2 sends a packet to the NIC, which has time for an answer it owes at once.
fn send(bench: &mut Bench, packet: Packet) {
    bench.inject(1, packet.frame());
    bench.run_for(us(4));
}

/// The packets of the NIC: opcodes, PSNs and BECN of each packet, as in "ACK 3, ACK 4 becn, CN becn".
fn answers(bench: &Bench) -> Result<String> {
    let mut answers = Vec::new();
    for sent in bench.packets(1) {
        let (packet, bth) = parsed(&sent.frame)?;
        let name = match (bth.opcode, packet.extended.aeth) {
            (Opcode::CNP, _) => "CN".to_owned(),
            (Opcode::RC_ACKNOWLEDGE, Some(Aeth { syndrome: Syndrome::ACK, .. })) => {
                format!("ACK {}", bth.psn)
            }
            (Opcode::RC_ACKNOWLEDGE, _) => format!("NAK {}", bth.psn),
            (other, _) => format!("{other} {}", bth.psn),
        };
        answers.push(if bth.becn { name + " becn" } else { name });
    }
    Ok(if answers.is_empty() { "nothing".to_owned() } else { answers.join(", ") })
}

/// A packet that the NIC has sent, taken apart, and its BTH.
fn parsed(frame: &Frame) -> Result<(Parsed<'_>, Bth)> {
    let packet = Parsed::parse(&frame.octets)?;
    let crcs = [crc::verify_vcrc(&frame.octets), crc::verify_icrc(&frame.octets)];
    ensure!(crcs.iter().all(Result::is_ok), "a CRC of a NIC's packet is wrong");
    let bth = packet.bth.ok_or("a raw packet")?;
    Ok((packet, bth))
}

/// Marked packets of LID 2, by PSN, to a NIC; what comes back.
fn answers_to(nic: &str, scheme: &str, psns: &[(u32, bool)]) -> Result<String> {
    let mut bench = bench(nic, scheme, "")?;
    for (psn, fecn) in psns {
        send(&mut bench, Packet { fecn: *fecn, ..Packet::full(2, 1, *psn) });
    }
    bench.run_for(us(100));
    answers(&bench)
}

/// IBCC-06: one acknowledgement for four packets carries one BECN for all that were marked; with becn = "cnp"
/// notifications do; a gap is refused once, and a packet that draws no acknowledgement draws a CN.
pub fn coalesced() -> Result<&'static str> {
    const MARKS: u32 = 0b1110_0000_0010_1101;
    let marked =
        |marks: u32| -> Vec<_> { (0..16).map(|psn| (psn, marks >> psn & 1 == 1)).collect() };
    let becn = |set: bool| if set { " becn" } else { "" };
    let each = (0..16).map(|psn| format!("ACK {psn}{}", becn(MARKS >> psn & 1 == 1)));
    let each = each.collect::<Vec<_>>().join(", ");
    let four = (0..4).map(|k| format!("ACK {}{}", 4 * k + 3, becn(MARKS >> (4 * k) & 15 != 0)));
    let four = four.collect::<Vec<_>>().join(", ");
    let plain = (2..16).map(|psn| format!(", ACK {psn}")).collect::<String>();
    let rows = [
        ("", "", marked(MARKS), each),
        ("ack_every = 4, ack_delay = \"50 us\"", "", marked(MARKS), four),
        ("", "becn = \"cnp\"", marked(0b11), format!("CN becn, ACK 0, CN becn, ACK 1{plain}")),
        (
            "",
            "",
            [0, 2, 3, 0].map(|psn| (psn, true)).to_vec(),
            "ACK 0 becn, NAK 1 becn, CN becn, ACK 0 becn".to_owned(),
        ),
    ];
    for (nic, scheme, psns, expected) in rows {
        same(format!("the answers with {nic}{scheme}"), answers_to(nic, scheme, &psns)?, expected)?;
    }
    Ok("; by ones, by fours, as CNs, and where no ACK is drawn")
}

/// IBCC-07: to queue pair and LID of the source, on SL 3 by VL 3, with and without a body.
pub fn field_by_field() -> Result<&'static str> {
    let source = QueuePairNumber::planned(0, Lid::new(1));
    let deth = Some(Deth { queue_key: 0x0070_6264, reserved8: 0, source });
    let ud = ExtendedHeaders { deth, ..ExtendedHeaders::NONE };
    let services =
        [("uc", Opcode::UC_SEND_ONLY, ExtendedHeaders::NONE), ("ud", Opcode::UD_SEND_ONLY, ud)];
    for (name, opcode, extended) in services {
        for (body, octets) in [("reserved16", 42), ("none", 26)] {
            let nic = format!("cnp_body = \"{body}\"");
            let mut bench = bench(&nic, "", &format!("transport = \"{name}\"\nsl = 3"))?;
            let shape =
                Packet { opcode, extended, lane: 3, level: 3, ack: false, ..Packet::new(2, 1, 0) };
            let packet = |psn, fecn| Packet { psn, fecn, payload: 512, ..shape };
            for (psn, fecn, drawn) in [(0, false, "nothing"), (1, true, "CN becn")] {
                send(&mut bench, packet(psn, fecn));
                let what = format!("what {name} with FECN {fecn} draws");
                same(what, answers(&bench)?, drawn)?;
            }
            let sent = bench.packets(1).next().ok_or("no packet")?;
            let (packet, bth) = parsed(&sent.frame)?;
            let found = format!(
                "opcode {:#04x}, {octets} octets, to LID {}, QP {:#08x}, from LID {}, SL {}, VL {}, PSN {}, P_Key {:#06x}, F {}, A {}, payload {:?}",
                bth.opcode.0,
                packet.lrh.dlid,
                bth.destination.get(),
                packet.lrh.slid,
                packet.lrh.service_level,
                packet.lrh.virtual_lane,
                bth.psn,
                bth.partition_key,
                bth.fecn,
                bth.ack_request,
                packet.payload,
                octets = sent.frame.octets.len(),
            );
            let payload = vec![0u8; octets - 26];
            let expected = format!(
                "opcode 0x80, {octets} octets, to LID 2, QP 0x010001, from LID 1, SL 3, VL 3, PSN 0, P_Key 0xffff, F false, A false, payload {payload:?}"
            );
            same(format!("the CN for {name}"), found, expected)?;
        }
    }
    Ok("; field by field, with and without a body")
}
