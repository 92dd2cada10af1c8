//! A capture of Ethernet is clean, and each kind of damage is found at its frame.

use crate::verify::{Report, Settings, verify};
use proto::ids::{Dscp, Priority, Psn, QueuePairNumber};
use proto::wire::ethernet::{MacAddress, MacControl, Pause, Pfc, crc};
use proto::wire::infiniband::{Bth, Deth, ExtendedHeaders, Opcode};
use proto::wire::internet::{Ipv4, Ipv6, Udp};
use proto::wire::roce::{NetworkHeaders, PacketBuilder, notification};

const HOST: MacAddress = MacAddress::new([2, 0, 0, 0, 0, 1]);
const PEER: MacAddress = MacAddress::new([2, 0, 0, 0, 0, 2]);

fn ipv4() -> NetworkHeaders<'static> {
    let (source, destination) = ([192, 0, 2, 1].into(), [192, 0, 2, 2].into());
    let dscp = Dscp::truncate(26);
    NetworkHeaders::Ipv4(
        Ipv4 { dscp, source, destination, ..Ipv4::default() },
        &[],
        Udp::roce(50_000),
    )
}

fn ipv6() -> NetworkHeaders<'static> {
    let (source, destination) = (1u128.into(), 2u128.into());
    NetworkHeaders::Ipv6(Ipv6 { source, destination, ..Ipv6::default() }, Udp::roce(50_000))
}

fn bth(opcode: Opcode, psn: u32) -> Bth {
    Bth::new(opcode, QueuePairNumber::truncate(7), Psn::truncate(psn))
}

fn roce(network: NetworkHeaders<'_>, bth: Bth, payload: &[u8]) -> Vec<u8> {
    let octets = [0; 16];
    let extended = ExtendedHeaders::parse(bth.opcode.extended_headers(), &octets, 0).unwrap();
    let builder =
        PacketBuilder { destination: PEER, source: HOST, tag: None, network, bth, extended };
    let mut buffer = bytes::BytesMut::new();
    builder.emit(&mut buffer, payload.len(), |place| place.copy_from_slice(payload)).unwrap();
    buffer.to_vec()
}

fn send(psn: u32) -> Vec<u8> {
    roce(ipv4(), bth(Opcode::RC_SEND_ONLY, psn), &[0x5a; 40])
}

fn cnp() -> Vec<u8> {
    let bth = notification::bth(QueuePairNumber::truncate(9), Bth::DEFAULT_PARTITION);
    roce(ipv4(), bth, &[0; notification::BODY_LEN])
}

fn pfc() -> Vec<u8> {
    let pfc = Pfc::default().with(Priority::truncate(3), 0xffff);
    MacControl::Pfc(pfc).to_octets(HOST).to_vec()
}

fn with_fcs(frame: &[u8]) -> Vec<u8> {
    [frame, &crc::fcs(frame).to_le_bytes()].concat()
}

/// A pcap file of Ethernet, of whose frames this much is kept.
fn cut_pcap(frames: &[Vec<u8>], snaplen: usize) -> Vec<u8> {
    let words =
        |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<_>>();
    let mut file = words(&[0xa1b2_c3d4, 0x0004_0002, 0, 0, 65_535, 1]);
    for frame in frames {
        let kept = &frame[..frame.len().min(snaplen)];
        file.extend(words(&[0, 0, kept.len() as u32, frame.len() as u32]));
        file.extend(kept);
    }
    file
}

fn report(frames: &[Vec<u8>]) -> Report {
    verify(&cut_pcap(frames, 65_535)[..], "a test", &Settings::default(), 100).unwrap()
}

fn found(frames: &[Vec<u8>]) -> Vec<(u64, &'static str)> {
    report(frames).findings.iter().map(|finding| (finding.frame, finding.rule)).collect()
}

/// What is found in one frame changed like this.
fn amended(frame: Vec<u8>, change: impl FnOnce(&mut Vec<u8>)) -> Vec<&'static str> {
    let mut frame = frame;
    change(&mut frame);
    found(&[frame]).into_iter().map(|(_, rule)| rule).collect()
}

#[test]
fn good_frames_of_every_kind_are_clean_with_and_without_fcs() {
    let pause = MacControl::Pause(Pause { time: 1 }).to_octets(HOST).to_vec();
    let six = roce(ipv6(), bth(Opcode::UC_SEND_ONLY, 9), &[1; 9]);
    let plain = vec![send(1), send(2), cnp(), pfc(), pause, six];
    for frames in [plain.clone(), plain.iter().map(|frame| with_fcs(frame)).collect()] {
        let report = report(&frames);
        assert_eq!(report.findings, []);
        let checked = &report.tally.checked;
        assert_eq!((checked["icrc"], checked["MAC control frames"], checked["psn"]), (4, 2, 1));
        let has_fcs = frames[0].len() > plain[0].len();
        assert_eq!(checked.get("fcs"), has_fcs.then_some(&6));
    }
}

#[test]
fn every_flipped_bit_of_a_frame_with_fcs_is_found_at_its_frame() {
    for frame in [send(1), cnp(), pfc()] {
        let whole = with_fcs(&frame);
        for bit in 0..whole.len() * 8 {
            let mut damaged = whole.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            let found = found(&[send(0), damaged]);
            // Whether a frame of unknown type ends with an FCS nobody can tell.
            assert!(!found.is_empty() || (12..14).contains(&(bit / 8)), "bit {bit}");
            assert!(found.iter().all(|(frame, _)| *frame == 2), "bit {bit}: {found:?}");
        }
    }
}

#[test]
fn each_rule_of_roce_finds_its_own() {
    assert_eq!(amended(send(1), |frame| frame[24] ^= 1), ["ip-checksum"]);
    assert_eq!(amended(send(1), |frame| frame[40] ^= 1), ["udp-checksum"]);
    assert_eq!(amended(send(1), |frame| frame[39] ^= 1), ["udp-length"]);
    assert_eq!(amended(send(1), |frame| frame[16] ^= 1), ["ip-length"]);
    assert_eq!(amended(send(1), |frame| frame[14] = 0x65), ["ethernet-headers"]);
    assert_eq!(amended(send(1), |frame| frame.truncate(40)), ["ip-length"]);
    assert_eq!(amended(send(1), |frame| *frame.last_mut().unwrap() ^= 1), ["icrc"]);
    let six = roce(ipv6(), bth(Opcode::UC_SEND_ONLY, 9), &[1; 9]);
    assert_eq!(amended(six.clone(), |frame| frame[60] ^= 1), ["udp-checksum"]);
    assert_eq!(amended(six, |frame| frame[60..62].fill(0)), [""; 0], "Linux sends none");
}

#[test]
fn a_tcp_packet_before_segmentation_has_no_length() {
    let mut frame = send(1);
    (frame[23], frame[16], frame[17]) = (6, 0, 0);
    assert_eq!(found(&[frame.clone()]), []);
    frame[17] = 1;
    assert_eq!(found(&[frame]), [(1, "ip-length")]);
}

#[test]
fn transport_is_judged_as_on_infiniband() {
    assert_eq!(found(&[send(1), send(2), send(4)]), [(3, "psn-gap")]);
    assert_eq!(found(&[send(1), send(2), send(2)]), [(3, "psn-copy")]);
    let version = roce(ipv4(), Bth { version: 3, ..bth(Opcode::RC_SEND_ONLY, 1) }, &[]);
    assert_eq!(found(&[version]), [(1, "version")]);
    let middle = roce(ipv4(), bth(Opcode::RC_SEND_MIDDLE, 2), &[0; 256]);
    assert_eq!(found(&[send(1), middle]), [(2, "message-order")]);
}

#[test]
fn a_queue_pair_that_was_set_up_anew_begins_where_it_likes() {
    let deth = Deth::parse(&[0; 8]).unwrap();
    assert_eq!(deth.source.get(), 0);
    let management = QueuePairNumber::truncate(1);
    let bth = Bth { destination: management, ..bth(Opcode::UD_SEND_ONLY, 0) };
    let set_up = roce(ipv4(), bth, &[0; 256]);
    let frames = [send(100), set_up, send(7), send(8), send(8)];
    assert_eq!(found(&frames), [(5, "psn-copy")]);
}

#[test]
fn a_notification_has_its_layout() {
    let right = notification::bth(QueuePairNumber::truncate(9), Bth::DEFAULT_PARTITION);
    let with = |bth, body: &[u8]| found(&[roce(ipv4(), bth, body)]);
    assert_eq!(with(Bth { migration_request: true, ..right }, &[0; 16]), []);
    assert_eq!(with(Bth { becn: false, ..right }, &[0; 16]), [(1, "cnp")]);
    assert_eq!(with(Bth { psn: Psn::truncate(1), ..right }, &[0; 16]), [(1, "cnp")]);
    assert_eq!(with(right, &[1; 16]), [(1, "cnp")]);
    assert_eq!(with(right, &[0; 12]), [(1, "payload")]);
    assert_eq!(with(right, &[]), [(1, "payload")]);
}

#[test]
fn each_rule_of_mac_control_finds_its_own() {
    assert_eq!(amended(pfc(), |frame| frame[5] = 2), ["mac-control-address"]);
    assert_eq!(amended(pfc(), |frame| frame[6] |= 1), ["mac-control-address"]);
    assert_eq!(amended(pfc(), |frame| frame[6..12].fill(0)), ["mac-control-address"]);
    assert_eq!(amended(pfc(), |frame| frame[15] = 2), ["mac-control-opcode"]);
    assert_eq!(amended(pfc(), |frame| frame[16] = 1), ["pfc-vector"]);
    assert_eq!(amended(pfc(), |frame| frame[40] = 1), ["mac-control-reserved"]);
    assert_eq!(amended(pfc(), |frame| frame.truncate(34)), ["mac-control-length"]);
    assert_eq!(amended(pfc(), |frame| frame.truncate(20)), ["mac-control-length"]);
    let tag = |frame: &mut Vec<u8>| {
        drop(frame.splice(12..12, [0x81, 0, 0x60, 0]));
        *frame = with_fcs(frame);
    };
    assert_eq!(amended(pfc(), tag), ["mac-control-address"]);
}

#[test]
fn cut_frames_are_judged_as_far_as_they_go() {
    let frames = [send(1), send(2), send(4)];
    let report =
        |snaplen| verify(&cut_pcap(&frames, snaplen)[..], "cut", &Settings::default(), 9).unwrap();
    let enough = report(60);
    assert_eq!(enough.counts.keys().collect::<Vec<_>>(), [&"psn-gap"]);
    assert_eq!(enough.tally.not_checked["CRCs of frames cut in the file"], 3);
    let too_little = report(50);
    assert_eq!(too_little.findings, []);
    assert_eq!(too_little.tally.not_checked["Ethernet frames cut in their headers"], 3);
}
