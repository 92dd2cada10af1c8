//! A trace of messages of arbitrary text: accepted, or refused with the line.

use proto::params::quantity::Scale;
use proto::units::{BitRate, Bytes, Duration};
use scenario::trace::Trace;

/// The text is the file.
pub fn check(octets: &[u8]) {
    let text = String::from_utf8_lossy(octets);
    let scale = Scale { tau: Duration::from_ns(2_074), frame: Bytes::new(2_112) };
    let trace = match Trace::parse(&text, &scale) {
        Ok(trace) => trace,
        Err(why) => return assert!(why.message.starts_with("line "), "{}", why.message),
    };
    let levels = trace.levels();
    let ideal = trace.ideal(BitRate::gbps(8));
    for (place, message) in trace.messages.iter().enumerate() {
        assert!(message.from != message.to && message.size > Bytes::ZERO);
        assert!(u64::from(message.from.max(message.to)) < trace.ranks());
        assert!(message.after.iter().all(|before| levels[*before] < levels[place]));
        assert!(ideal >= message.at);
    }
}
