//! ENC: encoders, decoders and CRCs.

use crate::case::Scripts;

mod checks;
mod congestion;
mod control;
mod ecn;
mod frames;
mod layout;
mod octets;
mod roce;
pub mod scapy;
mod wireshark;

/// The scripts of the group, by case.
pub const SCRIPTS: Scripts = &[
    ("ENC-01", checks::icrc_of_the_sample),
    ("ENC-02", checks::vcrc_of_the_sample),
    ("ENC-03", roce::icrc_of_a_captured_notification),
    ("ENC-04", roce::a_published_sample_that_is_wrong),
    ("ENC-05", checks::icrc_is_blind_to_the_variant_fields),
    ("ENC-06", roce::notification_layout),
    ("ENC-07", layout::native_congestion_notification),
    ("ENC-08", control::pfc_layout),
    ("ENC-09", control::pause_layout),
    ("ENC-10", congestion::message_layout),
    ("ENC-11", congestion::tag_position),
    ("ENC-12", layout::lrh_packing),
    ("ENC-13", layout::link_packet_layout),
    ("ENC-14", layout::packet_length_and_padding),
    ("ENC-15", octets::round_trip),
    ("ENC-16", octets::truncations_are_errors),
    ("ENC-17", wireshark::agreement_with_wireshark),
    ("ENC-18", scapy::agreement_with_scapy),
    ("ENC-19", ecn::checksum_after_the_mark),
];
