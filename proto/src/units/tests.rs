//! Tests of units: exact times, round trips through text, and errors that name the permitted units.

use super::*;

#[test]
fn a_full_infiniband_frame_lasts_2074_ns_at_8_gbps() {
    let tau = Bytes::new(2074).time_at(BitRate::gbps(8));
    assert_eq!(tau, Duration::from_ns(2074));
}

#[test]
fn text_and_value_round_trip() {
    for text in ["8 Gbps", "2500 Mbps", "1 bps"] {
        assert_eq!(text.parse::<BitRate>().unwrap().to_string(), text);
    }
    for text in ["2074 ns", "5 us", "1 ps", "3 s"] {
        assert_eq!(text.parse::<Duration>().unwrap().to_string(), text);
    }
    assert_eq!("2.5 us".parse::<Duration>().unwrap(), Duration::from_ns(2500));
    assert_eq!("2 KiB".parse::<Bytes>().unwrap(), Bytes::new(2048));
    assert_eq!(Bytes::ZERO.to_string(), "0 B");
}

#[test]
fn bare_numbers_wrong_units_and_zero_rates_are_refused() {
    assert!("8".parse::<BitRate>().unwrap_err().reason.contains("Gbps"));
    assert!("8 us".parse::<BitRate>().is_err());
    assert!("0 Gbps".parse::<BitRate>().unwrap_err().reason.contains("zero"));
    assert!("fast".parse::<Duration>().is_err());
    assert!("1.2.3 us".parse::<Duration>().is_err());
    assert!("99999999999 s".parse::<Duration>().is_err());
}

#[test]
fn a_line_carries_a_frame_in_its_transmission_time() {
    let rate = BitRate::gbps(40);
    assert_eq!(rate.octets_in(Bytes::new(1522).time_at(rate)), Bytes::new(1522));
    assert_eq!(rate.octets_in(Duration::from_ps(1)), Bytes::new(1));
    assert_eq!(rate.octets_in(Duration::ZERO), Bytes::ZERO);
}
