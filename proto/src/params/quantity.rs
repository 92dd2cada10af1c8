//! Quantities of a parameter: the units of [`crate::units`], and `mtu`, which a fabric defines.

use super::Complaint;
use crate::units::{BitRate, Bytes, Duration, scale_decimal, split_quantity};

/// What one `mtu` is: a full data frame of the default link, in time and in room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale {
    /// Its wire time.
    pub tau: Duration,
    /// Its size as it is buffered.
    pub frame: Bytes,
}

impl Scale {
    /// No fabric is known: `mtu` and `tau` are refused.
    pub const ABSOLUTE: Scale = Scale { tau: Duration::ZERO, frame: Bytes::ZERO };
}

/// `"12.5 us"`, `"31 mtu"` or `"31 tau"`.
///
/// # Errors
/// If the text is not a time, or one past 213 days.
pub fn time(text: &str, scale: &Scale) -> Result<Duration, Complaint> {
    if let Some(ps) = in_frames(text, "time", &["mtu", "tau"], scale.tau.as_ps())? {
        return Ok(Duration::from_ps(ps));
    }
    text.parse()
        .map_err(|_| wrong_unit(text, "time", "s, ms, us, ns, ps, mtu (one frame time), tau"))
}

/// `"300 KB"` or `"36 mtu"`.
///
/// # Errors
/// If the text is not a size.
pub fn size(text: &str, scale: &Scale) -> Result<Bytes, Complaint> {
    if let Some(octets) = in_frames(text, "size", &["mtu"], scale.frame.get())? {
        return Ok(Bytes::new(octets));
    }
    text.parse().map_err(|_| wrong_unit(text, "size", "B, KB, MB, GB, KiB, MiB, mtu (one frame)"))
}

/// `"2048 B"`: a number of octets that a frame's size cannot define.
///
/// # Errors
/// If the text is not a size, or one in frames.
pub fn octets(text: &str) -> Result<Bytes, Complaint> {
    text.parse().map_err(|_| wrong_unit(text, "size", "B, KB, MB, GB, KiB, MiB"))
}

/// `"8 Gbps"`.
///
/// # Errors
/// If the text is not a rate, or zero.
pub fn rate(text: &str) -> Result<BitRate, Complaint> {
    text.parse().map_err(|_| match split_quantity(text, "rate") {
        Ok(((0, _), _)) => {
            Complaint::new("a rate of zero: nothing could ever leave", "for example \"8 Gbps\"")
        }
        _ => wrong_unit(text, "rate", "bps, kbps, Mbps, Gbps, Tbps"),
    })
}

fn in_frames(
    text: &str,
    what: &'static str,
    units: &[&str],
    scale: u64,
) -> Result<Option<u64>, Complaint> {
    match split_quantity(text, what) {
        Ok((number, unit)) if scale > 0 && units.contains(&unit.as_str()) => {
            scale_decimal(number, scale)
                .map(Some)
                .ok_or_else(|| Complaint::new(format!("{text:?} is too large"), ""))
        }
        _ => Ok(None),
    }
}

fn wrong_unit(text: &str, what: &'static str, units: &str) -> Complaint {
    let message = format!("{text:?} is not a {what}");
    match split_quantity(text, what) {
        Ok((_, unit)) if unit.is_empty() => {
            Complaint::new(message, format!("a number needs its unit: {units}"))
        }
        Ok((_, unit)) => {
            Complaint::new(message, format!("{unit:?} is not a unit of {what}: {units}"))
        }
        Err(error) => Complaint::new(message, error.reason),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCALE: Scale = Scale { tau: Duration::from_ns(2074), frame: Bytes::new(2112) };

    #[test]
    fn a_frame_is_a_unit_of_time_and_of_room() {
        assert_eq!(time("31 mtu", &SCALE), Ok(Duration::from_ns(64_294)));
        assert_eq!(time("0.125 tau", &SCALE), Ok(Duration::from_ps(259_250)));
        assert_eq!(size("36 mtu", &SCALE), Ok(Bytes::new(76_032)));
        assert_eq!(size("300 KB", &SCALE), Ok(Bytes::new(300_000)));
        assert!(octets("1 mtu").is_err());
    }

    #[test]
    fn a_wrong_unit_names_the_right_ones() {
        let complaint = time("8 Gbps", &SCALE).expect_err("a rate is not a time");
        assert_eq!(complaint.message, "\"8 Gbps\" is not a time");
        assert!(complaint.hint.contains("us"), "{}", complaint.hint);
        assert!(rate("0 Gbps").expect_err("zero").message.contains("zero"));
        assert!(time("99999999999999 mtu", &SCALE).expect_err("large").message.contains("large"));
    }
}
