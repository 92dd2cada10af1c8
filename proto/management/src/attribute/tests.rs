//! Every table: no bit twice, no name twice, and what is written reads back.

use super::*;
use crate::datagram::{self, data_range};
use proptest::prelude::*;

const CLASSES: [u8; 3] = [datagram::SUBNET_DIRECTED, datagram::PERFORMANCE, datagram::CONGESTION];

fn all() -> impl Iterator<Item = (u8, &'static Attribute)> {
    let of = |class| match class {
        datagram::PERFORMANCE => performance::ATTRIBUTES,
        datagram::CONGESTION => congestion::ATTRIBUTES,
        _ => subnet::ATTRIBUTES,
    };
    CLASSES.into_iter().flat_map(move |class| of(class).iter().map(move |it| (class, *it)))
}

/// The first bits of every field of the row.
fn places(field: &Field) -> impl Iterator<Item = usize> {
    (0..field.count).map(|index| field.first + index * field.stride)
}

#[test]
fn no_two_fields_share_a_bit_and_all_lie_within_their_attribute() {
    for (class, attribute) in all() {
        let room = data_range(class, attribute.id).len();
        assert!(attribute.octets <= room, "{} is longer than its place", attribute.name);
        let mut taken = vec![None; attribute.octets * 8];
        for field in attribute.fields {
            assert!((1..=64).contains(&field.bits), "{}.{}", attribute.name, field.name);
            for bit in places(field).flat_map(|first| first..first + field.bits) {
                let before = taken[bit].replace(field.name);
                assert_eq!(before, None, "{}.{} at bit {bit}", attribute.name, field.name);
            }
        }
    }
}

#[test]
fn numbers_and_names_are_unique_within_a_class() {
    for class in CLASSES {
        let of_class = || all().filter(move |(other, _)| *other == class).map(|(_, it)| it);
        for attribute in of_class() {
            assert_eq!(find(class, attribute.id), Some(attribute));
            assert_eq!(of_class().filter(|other| other.name == attribute.name).count(), 1);
            for field in attribute.fields {
                let alike = attribute.fields.iter().filter(|other| other.name == field.name);
                assert_eq!(alike.count(), 1, "{}.{}", attribute.name, field.name);
            }
        }
    }
    assert_eq!(find(datagram::SUBNET_DIRECTED, 0xff90), None);
    assert_eq!(find(datagram::ADMINISTRATION, 0x35), None);
}

proptest! {
    /// A field that is written reads back, and no other bit changes.
    #[test]
    fn a_written_field_reads_back_and_nothing_else_changes(
        before: [[u8; 32]; 8], value: u64, choice: prop::sample::Index,
    ) {
        let before = before.concat();
        let attributes: Vec<_> = all().collect();
        let (_, attribute) = attributes[choice.index(attributes.len())];
        for field in attribute.fields {
            for index in [0, field.count - 1] {
                let mut octets = before.clone();
                field.set_at(index, &mut octets, value);
                prop_assert_eq!(field.at(index, &octets), value & field.max());
                field.set_at(index, &mut octets, field.at(index, &before));
                prop_assert_eq!(&octets, &before);
            }
        }
    }
}
