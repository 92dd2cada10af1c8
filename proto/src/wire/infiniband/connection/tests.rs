//! Connection messages: round trips, short and foreign datagrams.

use super::*;
use proptest::prelude::*;

#[test]
fn the_fixed_parts_leave_the_private_data_of_the_standard() {
    let zeros = [0; Mad::DATAGRAM];
    let rooms: Vec<usize> = (0x10..=0x16)
        .map(|attribute| {
            let mut octets = zeros;
            Mad::connection(attribute, 1).emit(&mut octets);
            Message::parse(&octets).expect("a known attribute").2.len()
        })
        .collect();
    assert_eq!(rooms, [92, 222, 148, 196, 224, 220, 224]);
}

#[test]
fn other_management_datagrams_and_short_ones_are_refused() {
    let mut octets = [0; Mad::DATAGRAM];
    let mad = Mad::connection(0x10, 1);
    for foreign in [
        Mad { class: 1, ..mad },
        Mad { class_version: 1, ..mad },
        Mad { method: 1, ..mad },
        Mad { response: true, ..mad },
        Mad { attribute: 0x0f, ..mad },
        Mad { attribute: 0x17, ..mad },
    ] {
        foreign.emit(&mut octets);
        assert!(Message::parse(&octets).is_err(), "{foreign:?}");
    }
    mad.emit(&mut octets);
    for present in 0..Mad::DATAGRAM {
        assert!(Message::parse(&octets[..present]).is_err(), "{present} octets");
    }
}

#[test]
fn private_data_are_cut_to_their_room() {
    let ready = Message::Ready(Ready { local_id: 1, remote_id: 2 });
    let octets = ready.to_octets(7, &[9; 300]);
    assert_eq!(octets[Mad::LEN + Ready::LEN..], [9; 224]);
    assert_eq!(IpAddressing::port(IpAddressing::service(7174)), Some(7174));
    assert_eq!(IpAddressing::port(0x0111_0000), None);
}

proptest! {
    #[test]
    fn any_connection_message_round_trips(
        body in prop::collection::vec(any::<u8>(), BODY), attribute in 0x10u16..=0x16, id: u64,
    ) {
        let mut octets = [0; Mad::DATAGRAM];
        Mad::connection(attribute, id).emit(&mut octets);
        octets[Mad::LEN..].copy_from_slice(&body);
        let (mad, message, private) = Message::parse(&octets)?;
        prop_assert_eq!(message.attribute(), attribute);
        prop_assert_eq!(message.under(&mad, private), octets);
        prop_assert_eq!(message.to_octets(id, private), octets);
    }

    #[test]
    fn no_octets_make_it_panic(octets in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = Message::parse(&octets);
    }
}
