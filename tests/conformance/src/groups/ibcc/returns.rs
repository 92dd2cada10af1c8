//! What a NIC returns for FECN: marked packets in, acknowledgements and notifications out.

use crate::bench::Bench;
use crate::bench::devices::{MTU, burst, class, nic};
use crate::bench::packets::{frame, marked, parsed, send_only, with_opcode};
use crate::case::{Failure, Finding, ensure, same};
use nicd::config::{CnpBody, NicConfig, Transport};
use nicd::nic::Nic;
use proto::ids::{Lid, QueuePairNumber, ServiceLevel, VirtualLane};
use proto::units::{Duration, Instant};
use proto::wire::infiniband::{Aeth, Bth, Deth, ExtendedHeaders, Opcode, PacketBuilder, Syndrome};

/// Longer than a NIC takes for an answer it owes at once.
const A_WHILE: Duration = Duration::from_us(4);

/// A NIC with LID 1 under ib-cca, alone on its link.
fn bench(mut config: NicConfig, params: &str) -> Result<Bench<Nic>, Failure> {
    config.scheme.kind = "ib-cca".to_owned();
    config.scheme.params = params.parse().map_err(|error| format!("{params}: {error}"))?;
    let lanes = config.link.data_lanes();
    Bench::up(Nic::new(config).map_err(|error| error.to_string())?, lanes)
}

/// LID 2 sends a packet to the NIC and waits a while.
fn send(bench: &mut Bench<Nic>, builder: PacketBuilder, payload: usize) {
    bench.send(1, frame(&builder, payload));
    bench.run_for(A_WHILE);
}

/// What the NIC has sent: opcodes, PSNs and BECN of each packet, as in "ACK 3, ACK 4 becn, CN becn".
fn answers(bench: &Bench<Nic>) -> Result<String, Failure> {
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

/// A total of the NIC's under an operator's name.
fn total(bench: &mut Bench<Nic>, name: &str) -> u64 {
    let reading = bench.reading();
    let named = reading.ports[0].named.iter().find(|(other, _)| other == name);
    named.map_or(0, |(_, value)| *value)
}

/// Sixteen packets of LID 2, those of `marks` with FECN; what comes back.
fn answers_to(config: NicConfig, params: &str, marks: u16) -> Result<String, Failure> {
    let mut bench = bench(config, params)?;
    bench.forget();
    for psn in 0..16 {
        send(&mut bench, marked(send_only(2, 1, psn), marks & 1 << psn != 0), MTU);
    }
    bench.run_for(Duration::from_us(100));
    answers(&bench)
}

pub(super) fn each_marked_packet_returns_one_becn_on_its_acknowledgement() -> Finding {
    const MARKS: u16 = 0b1110_0000_0010_1101;
    let becn = |set: bool| if set { " becn" } else { "" };
    let each = (0..16).map(|psn| format!("ACK {psn}{}", becn(MARKS & 1 << psn != 0)));
    let each = each.collect::<Vec<_>>().join(", ");
    same("the answers to 16 packets", answers_to(nic(1, 1), "", MARKS)?, each)?;
    // Coalesced: one acknowledgement for four packets, one BECN for all that were marked.
    let every_four = NicConfig { ack_every: 4, ack_delay: Duration::from_us(50), ..nic(1, 1) };
    let four = (0..4).map(|k| format!("ACK {}{}", 4 * k + 3, becn(MARKS >> (4 * k) & 15 != 0)));
    let four = four.collect::<Vec<_>>().join(", ");
    same("the answers at ack_every 4", answers_to(every_four, "", MARKS)?, four)?;
    let own = answers_to(nic(1, 1), "becn = \"cnp\"", 0b11)?;
    let plain = (2..16).map(|psn| format!(", ACK {psn}")).collect::<String>();
    same("the answers with CNs", own, format!("CN becn, ACK 0, CN becn, ACK 1{plain}"))?;
    what_draws_no_acknowledgement()?;
    Ok(format!(
        "16 packets, {} marked: as many ACKs with BECN, 3 of 4 at one ACK for four; a marked packet \
         that draws no ACK draws a CN",
        MARKS.count_ones()
    ))
}

/// Marked packets that are not taken: a gap is refused once, a packet seen before is confirmed again.
fn what_draws_no_acknowledgement() -> Result<(), Failure> {
    let mut bench = bench(nic(1, 1), "")?;
    bench.forget();
    for psn in [0, 2, 3, 0] {
        send(&mut bench, marked(send_only(2, 1, psn), true), MTU);
    }
    let expected = "ACK 0 becn, NAK 1 becn, CN becn, ACK 0 becn".to_owned();
    same("the answers to marked PSNs 0, 2, 3 and 0", answers(&bench)?, expected)?;
    same("BECNs counted on ACKs", total(&mut bench, "np_becn_sent"), 3)?;
    same("CNs counted", total(&mut bench, "np_cnp_sent"), 1)
}

/// A packet of LID 2 for the NIC on service level 3, lane 3.
fn on_level_three(opcode: Opcode, psn: u32) -> PacketBuilder {
    let deth = Deth {
        queue_key: 0x0070_6264,
        reserved8: 0,
        source: QueuePairNumber::planned(0, Lid::new(1)),
    };
    let deth = (opcode == Opcode::UD_SEND_ONLY).then_some(deth);
    let plain = with_opcode(opcode, 2, 1, psn);
    PacketBuilder {
        virtual_lane: VirtualLane::truncate(3),
        service_level: ServiceLevel::truncate(3),
        extended: ExtendedHeaders { deth, ..ExtendedHeaders::NONE },
        bth: Bth { ack_request: false, ..plain.bth },
        ..plain
    }
}

pub(super) fn a_service_without_acknowledgements_returns_a_packet() -> Finding {
    let services =
        [("UC", Transport::Uc, Opcode::UC_SEND_ONLY), ("UD", Transport::Ud, Opcode::UD_SEND_ONLY)];
    for (name, transport, opcode) in services {
        for (cnp_body, octets) in [(CnpBody::Reserved16, 42), (CnpBody::None, 26)] {
            let classes = vec![class(transport, 3)];
            let mut bench = bench(NicConfig { classes, cnp_body, ..nic(1, 4) }, "")?;
            bench.forget();
            send(&mut bench, on_level_three(opcode, 0), 512);
            same(
                format!("what an unmarked {name} packet draws"),
                answers(&bench)?,
                "nothing".to_owned(),
            )?;
            send(&mut bench, marked(on_level_three(opcode, 1), true), 512);
            same(
                format!("what a marked {name} packet draws"),
                answers(&bench)?,
                "CN becn".to_owned(),
            )?;
            let sent = bench.packets(1).next().ok_or_else(|| "no packet".to_owned())?;
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
    Ok("UC and UD: opcode 0x80, PSN 0, BECN, to the source's LID and queue pair on SL 3 by VL 3; 42 octets, or 26 without a body".to_owned())
}

pub(super) fn answers_and_groups_are_never_answered() -> Finding {
    let start = Instant::ZERO + Duration::from_us(60);
    let traffic = vec![burst(2, 0, 256, 2, start)];
    let mut bench = bench(NicConfig { traffic, ..nic(1, 1) }, "")?;
    bench.run_until(start + A_WHILE);
    same(
        "what the NIC sent first",
        answers(&bench)?,
        format!("{0} 0, {0} 1", Opcode::RC_SEND_ONLY),
    )?;
    bench.forget();
    let aeth = Some(Aeth { syndrome: Syndrome::ACK, message_sequence_number: 1 });
    let ack = PacketBuilder {
        extended: ExtendedHeaders { aeth, ..ExtendedHeaders::NONE },
        ..with_opcode(Opcode::RC_ACKNOWLEDGE, 2, 1, 0)
    };
    let group = PacketBuilder { dlid: Lid::new(0xc001), ..on_level_three(Opcode::UD_SEND_ONLY, 0) };
    let group = PacketBuilder { virtual_lane: VirtualLane::ZERO, ..group };
    for (kind, builder, payload) in [
        ("ACK", ack, 0),
        ("CN", with_opcode(Opcode::CNP, 2, 1, 0), 16),
        ("multicast packet", group, 256),
    ] {
        let before = total(&mut bench, "port_rcv_fecn");
        send(&mut bench, marked(builder, true), payload);
        same(format!("what FECN on a {kind} draws"), answers(&bench)?, "nothing".to_owned())?;
        let seen = total(&mut bench, "port_rcv_fecn") - before;
        ensure(seen == 1, || {
            format!("the FECN of the {kind} was counted {seen} times, expected 1")
        })?;
    }
    bench.run_for(Duration::from_us(200));
    same("what they draw later", answers(&bench)?, "nothing".to_owned())?;
    send(&mut bench, marked(send_only(2, 1, 0), true), 256);
    same("what FECN on data draws", answers(&bench)?, "ACK 0 becn".to_owned())?;
    Ok("FECN on ACK, CN and multicast is counted and draws nothing; on data it draws a BECN"
        .to_owned())
}
