//! The star that most cases run on, as text of a scenario.

use proto::units::{Duration, Instant};

/// The variable that slows all live cases down beyond their profile, for a busy host. A whole number.
const SLOWER: &str = "PAUSEBED_CHECK_DILATION";

/// `profile` times the factor of the environment.
pub fn dilation(profile: u64) -> u64 {
    let factor = std::env::var(SLOWER).ok().and_then(|text| text.parse().ok());
    profile * factor.unwrap_or(1).max(1)
}

/// An instant in milliseconds of fabric time.
pub const fn ms(ms: u64) -> Instant {
    Instant::from_ps(ms * 1_000_000_000)
}

/// A length in microseconds of fabric time.
pub const fn us(us: u64) -> Duration {
    Duration::from_us(us)
}

/// A length in milliseconds, for messages.
pub fn in_ms(length: Duration) -> String {
    format!("{:.1} ms", length.as_ps() as f64 / 1e9)
}

/// A star as text of a scenario: adapters h1 to h`nics`, LIDs 1 to `nics`, at ports 1 to `nics` of
/// the switch s0.
#[derive(Clone, Copy, Debug)]
pub struct Star<'a> {
    /// How many adapters.
    pub nics: u8,
    /// How long the run is.
    pub duration: &'a str,
    /// Rate of every link, of one lane each.
    pub rate: &'a str,
    /// Lines of `[fabric]`, and keys of the link, that go with the technology.
    pub technology: (&'a str, &'a str),
    /// Further keys of the link.
    pub link: &'a str,
    /// Delays of the cables of h1, h2 …; an eighth of a frame time for those beyond, which lets a
    /// daemon run ahead of the wall a little.
    pub delays: &'a [&'a str],
    /// Further lines of `[run]`.
    pub run: &'a str,
    /// Further lines of `[fabric]`, and other tables.
    pub rest: &'a str,
}

impl Star<'_> {
    /// Two adapters at 10 Mb/s: a full frame lasts 1.66 ms and a symbol 0.8 µs.
    ///
    /// Source: preface of the conformance cases ("Live profile").
    pub const PROFILE: Star<'static> = Star {
        nics: 2,
        duration: "1 s",
        rate: "10 Mbps",
        technology: ("", "lanes = 1"),
        link: "",
        delays: &[],
        run: "",
        rest: "",
    };

    /// Three adapters at 8 Gb/s on four lanes: an octet lasts a nanosecond, a symbol four.
    pub const FAST: Star<'static> =
        Star { nics: 3, rate: "8 Gbps", technology: ("", "lanes = 4"), ..Star::PROFILE };

    /// The text.
    pub fn text(&self) -> String {
        let Star { nics, duration, rate, technology, link, delays, run, rest } = self;
        let names = (1..=*nics).map(|nic| format!("{{ name = \"h{nic}\", kind = \"nic\" }}, "));
        let cables = (1..=*nics).map(|nic| {
            let delay = delays.get(usize::from(nic) - 1).unwrap_or(&"0.125 mtu");
            format!("{{ a = \"h{nic}:1\", b = \"s0:{nic}\", delay = \"{delay}\" }}, ")
        });
        format!(
            "schema = 1\nname = \"star\"\nsource = \"live conformance cases\"\n\
             [run]\nseed = 7\nduration = \"{duration}\"\nbackend = \"udp\"\n{run}\n\
             [fabric]\nnodes = [{}{{ name = \"s0\", kind = \"switch\" }}]\nlinks = [{}]\n\
             link = {{ rate = \"{rate}\", {}{}{link} }}\n{}{rest}\n",
            names.collect::<String>(),
            cables.collect::<String>(),
            technology.1,
            if link.is_empty() { "" } else { ", " },
            technology.0,
        )
    }
}

/// A star of the profile.
pub fn star(nics: u8, duration: &str, link: &str, rest: &str) -> String {
    Star { nics, duration, link, rest, ..Star::PROFILE }.text()
}

/// An item of traffic, as text of a scenario; further keys a line each.
pub fn traffic(name: &str, from: &str, to: &str, keys: &str) -> String {
    format!("[[traffic]]\nname = \"{name}\"\nfrom = \"{from}\"\nto = \"{to}\"\n{keys}\n")
}

/// A measure from `from` to the end of the run, as text of a scenario; further keys a line each.
pub fn measure(name: &str, of: &str, at: &str, from: &str, keys: &str) -> String {
    format!(
        "[[measure]]\nname = \"{name}\"\nof = \"{of}\"\nat = \"{at}\"\nfrom = \"{from}\"\n{keys}\n"
    )
}

/// An item of full frames by UC without end; further keys a line each.
pub fn backlog(name: &str, from: &str, to: &str, keys: &str) -> String {
    let always = "arrivals = \"backlog\"\ntransport = \"uc\"\nsize = \"2048 B\"\n";
    traffic(name, from, to, &format!("{always}{keys}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use scenario::Scenario;

    #[test]
    fn a_star_of_the_profile_has_frames_of_1659_us_and_lids_by_number() {
        let text = Star { nics: 5, delays: &["0 ns", "10 ms"], ..Star::PROFILE }.text();
        let scenario = Scenario::parse(&text, &[]).expect("a good scenario");
        assert_eq!(scenario.fabric.scale.tau, us(1_659) + Duration::from_ns(200));
        let topology = &scenario.fabric.topology;
        let lids: Vec<u16> = topology.nodes.iter().take(5).map(|node| node.lid.get()).collect();
        assert_eq!(lids, [1, 2, 3, 4, 5]);
        let delays: Vec<_> = topology.cables.iter().filter_map(|cable| cable.delay).collect();
        assert_eq!(delays[..2], [Duration::ZERO, us(10_000)]);
        assert!(delays[2..].iter().all(|delay| *delay == delays[2] && *delay > us(200)));
    }
}
