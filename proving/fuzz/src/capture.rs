//! A capture file of arbitrary octets: reading ends, and `verify` agrees with the reader.

use capture::reader::CaptureReader;
use dissect::verify::{Pausing, Settings, table, verify};
use proto::ids::Dscp;
use proto::units::{BitRate, Duration};
use proto::wire::classify::PriorityMap;

/// The octets are the file.
pub fn check(octets: &[u8]) {
    let Ok(mut reader) = CaptureReader::new(octets) else {
        return assert!(verify(octets, "", &Settings::default(), 1).is_err());
    };
    let (mut frames, mut broken) = (0, false);
    for next in reader.by_ref() {
        match next {
            Ok(frame) => {
                assert!(frame.frame.octets.len() <= octets.len());
                frames += 1;
            }
            Err(_) => broken = true,
        }
    }
    // Every packet consumes octets of the file, so reading ends.
    let skipped: u64 = reader.skipped().values().sum();
    assert!(frames + skipped <= octets.len() as u64);

    let settings = Settings {
        symbol: Some(Duration::from_ns(4)),
        cnp_interval: Some(Duration::from_us(4)),
        cnp_dscp: Some(Dscp::truncate(48)),
        timeout: Some(14),
        rate: Some(BitRate::gbps(40)),
        jitter: Some(Duration::from_us(1)),
        pause: Some(Pausing {
            priorities: Some(PriorityMap::BY_DSCP),
            obeyed: u8::MAX,
            response: None,
        }),
    };
    let report = verify(octets, "", &settings, 10).expect("the file has a capture header");
    assert_eq!(report.frames, frames + skipped);
    assert_eq!(report.error.is_some(), broken);
    assert_eq!(report.counts.is_empty(), report.findings.is_empty());
    assert!(!table::text(&report).is_empty());
}
