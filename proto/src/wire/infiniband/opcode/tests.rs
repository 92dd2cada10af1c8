//! Tests of the opcode table: the rules of the standard that generate most of it.

use super::*;

#[test]
fn numbers_are_distinct_and_encode_the_service_in_the_upper_three_bits() {
    let mut seen = std::collections::BTreeSet::new();
    for opcode in Opcode::ALL {
        assert!(seen.insert(opcode.0), "{opcode} appears twice");
        let row = opcode.row().expect("the table has the opcode");
        let service = match opcode.0 >> 5 {
            0b000 => Transport::Rc,
            0b001 => Transport::Uc,
            0b010 => Transport::Rd,
            0b011 => Transport::Ud,
            0b100 => Transport::Cnp,
            _ => Transport::Xrc,
        };
        assert_eq!(row.transport, service, "{opcode}");
    }
    let per_service = |bits| seen.iter().filter(|code| **code >> 5 == bits).count();
    assert_eq!([0, 1, 2, 3, 4, 5, 6, 7].map(per_service), [23, 12, 22, 2, 2, 23, 0, 0]);
}

#[test]
fn the_lower_five_bits_mean_the_same_in_every_service() {
    for opcode in Opcode::ALL.iter().filter(|opcode| opcode.0 >> 5 != 0b100) {
        let row = opcode.row().expect("the table has the opcode");
        let Some(rc) = Opcode(opcode.0 & 0x1f).row() else {
            assert_eq!(*opcode, Opcode::RD_RESYNC);
            continue;
        };
        assert_eq!((row.operation, row.position), (rc.operation, rc.position), "{opcode}");
        assert_eq!(row.name.split_once(' ').map(|(_, name)| name), rc.name.get(3..));
    }
}

/// The service's headers before those of the RC operation with the same lower bits.
#[test]
fn headers_are_those_of_the_service_followed_by_those_of_rc() {
    let is_response =
        |row: &OpcodeRow| row.is_acknowledgement() || row.operation == Operation::ReadResponse;
    for opcode in Opcode::ALL.iter().filter(|opcode| opcode.0 >> 5 != 0b100) {
        let row = opcode.row().expect("the table has the opcode");
        let own: &[ExtendedHeader] = match (row.transport, is_response(row)) {
            (Transport::Rd, true) => &[ExtendedHeader::Rdeth],
            (Transport::Rd, false) => &[ExtendedHeader::Rdeth, ExtendedHeader::Deth],
            (Transport::Ud, _) => &[ExtendedHeader::Deth],
            (Transport::Xrc, false) => &[ExtendedHeader::XrcEth],
            _ => &[],
        };
        let connection = Opcode(opcode.0 & 0x1f).extended_headers();
        let expected = own.iter().fold(connection, |set, header| set.with(*header));
        assert_eq!(row.extended_headers, expected, "{opcode}");
    }
}

#[test]
fn reliable_connection_headers_are_those_of_the_standard() {
    let headers = |opcode: Opcode| opcode.extended_headers();
    let set = |members: &[ExtendedHeader]| {
        members.iter().fold(HeaderSet::EMPTY, |set, header| set.with(*header))
    };
    use ExtendedHeader as H;
    assert_eq!(headers(Opcode::RC_SEND_ONLY), set(&[]));
    assert_eq!(headers(Opcode::RC_SEND_LAST_IMMEDIATE), set(&[H::ImmDt]));
    assert_eq!(headers(Opcode::RC_SEND_ONLY_INVALIDATE), set(&[H::Ieth]));
    assert_eq!(headers(Opcode::RC_WRITE_FIRST), set(&[H::Reth]));
    assert_eq!(headers(Opcode::RC_WRITE_LAST_IMMEDIATE), set(&[H::ImmDt]));
    assert_eq!(headers(Opcode::RC_WRITE_ONLY_IMMEDIATE), set(&[H::Reth, H::ImmDt]));
    assert_eq!(headers(Opcode::RC_READ_REQUEST), set(&[H::Reth]));
    assert_eq!(headers(Opcode::RC_READ_RESPONSE_MIDDLE), set(&[]));
    assert_eq!(headers(Opcode::RC_READ_RESPONSE_ONLY), set(&[H::Aeth]));
    assert_eq!(headers(Opcode::RC_ACKNOWLEDGE), set(&[H::Aeth]));
    assert_eq!(headers(Opcode::RC_ATOMIC_ACKNOWLEDGE), set(&[H::Aeth, H::AtomicAckEth]));
    assert_eq!(headers(Opcode::RC_FETCH_ADD), set(&[H::AtomicEth]));
}

#[test]
fn unknown_opcodes_are_kept_and_named_so() {
    let unknown = Opcode(0x15);
    assert_eq!(unknown.row(), None);
    assert_eq!(unknown.extended_headers(), HeaderSet::EMPTY);
    assert_eq!(unknown.to_string(), "unknown (0x15)");
    assert_eq!(Opcode::CNP.to_string(), "CNP");
    assert_eq!((Opcode::CNP.0, Opcode::ROCEV2_CNP.0), (0x80, 0x81));
}
