//! Frames against the rate of the line by which they came, and against a pause, as well as the tester's clock can tell.
//!
//! A frame is read at most [`Line::doubt`] after it has come. So frames in less than their line time less the doubt came faster
//! than a line of that rate carries them. Preamble and gap are left out: a line without them is within the doubt.

use super::line::Line;
use super::pace::CoreTime;
use super::verdict::{Check, Fault, Verdict, must};
use proto::frame::ethernet_size;
use proto::units::{BitRate, Bytes, Duration, Instant};
use testbed::Seen;

/// Frames must fill the line for so many times the doubt, or they say nothing.
const DOUBTS: u64 = 4;

/// A frame that has come: when it was read, and its octets without FCS.
pub type Came = (Instant, usize);

/// The frames of `port` from the mark on of which `is` holds.
pub fn came(line: &Line, mark: usize, port: u8, is: impl Fn(&Seen) -> bool) -> Vec<Came> {
    let here = line.seen[mark..].iter().filter(|seen| seen.port == port && is(seen));
    here.map(|seen| (seen.at, seen.frame.octets.len())).collect()
}

/// What two measurements of three say: a host that stands still for a moment hands over late frames at once, and a device that
/// breaks the rule breaks it again. On a busy host such moments are frequent, so a FAIL says nothing there.
pub fn two_of_three(mut measure: impl FnMut() -> Check) -> Check {
    let began = CoreTime::now();
    let (first, second) = (measure(), measure());
    let verdict = |check: &Check| check.as_ref().err().map(|fault| fault.verdict);
    let found = if verdict(&first) == verdict(&second) { second } else { measure() };
    let is_busy = CoreTime::now().is_busy_since(began);
    found.map_err(|fault| match fault.verdict {
        Verdict::Fail if is_busy => {
            Fault::unclear(format!("{}, but the host had other work", fault.observed))
        }
        _ => fault,
    })
}

fn in_us(time: Duration) -> u64 {
    time.as_ps() / 1_000_000
}

/// Holds if the frames came no faster than a line of `mbps` carries them.
///
/// # Errors
/// FAIL if they came faster, INCONCLUSIVE if there are too few to tell.
pub fn no_faster(frames: &[Came], mbps: u64, doubt: Duration) -> Check {
    let rate = BitRate::mbps(mbps);
    let Some(((first, _), rest)) = frames.split_first() else {
        return Err(Fault::unclear("no frame comes"));
    };
    // The earliest instant at which a line of this rate has carried the frame; and the burst that it belongs to.
    let (mut earliest, mut began) = (*first, *first);
    let (mut octets, mut ahead) = (Bytes::ZERO, Duration::ZERO);
    for (at, length) in rest {
        let size = ethernet_size(*length);
        if earliest + size.time_at(rate) <= *at {
            (earliest, began, octets) = (*at, *at, Bytes::ZERO);
            continue;
        }
        earliest = earliest + size.time_at(rate);
        octets += size;
        ahead = ahead.max(earliest.since(*at));
        must!(
            earliest <= *at + doubt,
            "{} octets within {} us, which take {} us at {mbps} Mb/s; the clock is good for {} us",
            octets.get(),
            in_us(at.since(began)),
            in_us(octets.time_at(rate)),
            in_us(doubt)
        );
    }
    let all: u64 = rest.iter().map(|(_, length)| ethernet_size(*length).get()).sum();
    if Bytes::new(all).time_at(rate) < doubt * DOUBTS {
        return Err(Fault::unclear(format!(
            "{} frames take {} us at {mbps} Mb/s, and the clock is good for {} us",
            frames.len(),
            in_us(Bytes::new(all).time_at(rate)),
            in_us(doubt)
        )));
    }
    Ok(format!(
        "{} frames, at most {} us sooner than a line of {mbps} Mb/s carries them; the clock is good for {} us",
        frames.len(),
        in_us(ahead),
        in_us(doubt)
    ))
}

/// Holds if none of the frames came between `from`, when a pause was sent, and `to`; those that a port may still send, within
/// the response time and a frame under way, come within the doubt. Returns how many came before.
///
/// # Errors
/// FAIL if one came.
pub fn silent(
    frames: &[Came],
    (from, to): (Instant, Instant),
    mbps: u64,
    doubt: Duration,
) -> Check<usize> {
    let longest = frames.iter().map(|(_, length)| *length).max().unwrap_or(0);
    let rate = BitRate::mbps(mbps);
    let under_way = ethernet_size(longest).time_at(rate) * 2 + response(rate);
    let limit = from + under_way + doubt;
    let late: Vec<_> = frames.iter().filter(|(at, _)| *at > limit && *at < to).collect();
    must!(
        late.is_empty(),
        "{} frames come in the pause, the last {} us after it was sent; {} us are permitted",
        late.len(),
        late.last().map_or(0, |(at, _)| in_us(at.since(from))),
        in_us(under_way + doubt)
    );
    Ok(frames.iter().filter(|(at, _)| *at <= limit).count())
}

/// The longest time in which a port reacts, which is that of 100 Gb/s in quanta. Source: IEEE 802.3, 31B.3.7.
fn response(rate: BitRate) -> Duration {
    Bytes::new(394 * 64).time_at(rate)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn us(n: u64) -> Instant {
        Instant::ZERO + Duration::from_us(n)
    }

    /// Frames of 1000 octets with FCS, which take 40 us at 200 Mb/s, read in turns.
    fn read(count: u64, every: u64, turn: u64) -> Vec<Came> {
        (1..=count).map(|n| (us((n * every).next_multiple_of(turn)), 996)).collect()
    }

    fn verdict(frames: &[Came], doubt: u64) -> Verdict {
        no_faster(frames, 200, Duration::from_us(doubt))
            .map_or_else(|fault| fault.verdict, |_| Verdict::Pass)
    }

    #[test]
    fn a_line_that_is_full_passes_however_it_is_read_and_a_faster_one_does_not() {
        assert_eq!(verdict(&read(500, 40, 1), 0), Verdict::Pass);
        assert_eq!(verdict(&read(500, 40, 200), 200), Verdict::Pass);
        assert_eq!(verdict(&read(500, 38, 200), 200), Verdict::Fail, "5 % too fast");
        assert_eq!(verdict(&read(500, 0, 200), 200), Verdict::Fail, "all at once");
        // After a pause nothing is made up for.
        let mut resumed = read(250, 40, 1);
        resumed.extend(read(20, 0, 1).iter().map(|(_, length)| (us(50_000), *length)));
        assert_eq!(verdict(&resumed, 200), Verdict::Fail);
        assert_eq!(verdict(&read(500, 40, 1), 6_000), Verdict::Inconclusive);
        assert_eq!(verdict(&[], 200), Verdict::Inconclusive);
    }

    #[test]
    fn one_measurement_of_three_decides_nothing() {
        let said = |mut all: Vec<u8>| {
            two_of_three(|| match all.remove(0) {
                0 => Err(Fault::fail("too fast")),
                _ => Ok("good".to_owned()),
            })
        };
        assert!(said(vec![0, 1, 1]).is_ok());
        assert!(said(vec![1, 0, 0]).is_err());
        assert!(said(vec![0, 0]).is_err());
        assert!(said(vec![1, 1]).is_ok());
    }

    #[test]
    fn frames_in_a_pause_fail_and_those_under_way_do_not() {
        let pause = (us(4_000), us(30_000));
        let stops = |last: u64| {
            let (at, doubt) = (last * 40, Duration::from_us(200));
            let frames: Vec<Came> =
                read(last, 40, 1).into_iter().chain([(us(30_001), 996)]).collect();
            silent(&frames, pause, 200, doubt).map_err(|fault| (fault.verdict, at))
        };
        assert_eq!(stops(100), Ok(100));
        // 200 us of doubt, two frames, and 1009 us of response.
        assert_eq!(stops(132), Ok(132));
        assert_eq!(stops(133), Err((Verdict::Fail, 5_320)));
    }
}
