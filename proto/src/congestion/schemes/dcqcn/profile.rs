//! The parameters of DCQCN: three published sets as defaults, and their values on a given line.
//!
//! The published sets are for a line of 40 Gb/s. On another line, default sizes and rates grow with the
//! line; times and shares stay, and so does every value that is written. R_AI and B left unscaled would
//! keep the sum of a few senders at half the line for the first 11 ms at 400 Gb/s.

use crate::params::{FromValue, Millionths, Value};
use crate::units::{BitRate, Bytes, Duration};

/// Binary places of α, of g and of shares.
pub const PLACES: u32 = 48;
/// One, with so many places.
pub const ONE: u64 = 1 << PLACES;

/// The line of the published sets.
const LINE: BitRate = BitRate::gbps(40);

/// A share of one, with [`PLACES`]; exact for a whole number of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share(pub u64);

impl FromValue for Share {
    fn from_value(value: &Value) -> Option<Share> {
        f64::from_value(value).map(|share| Share((share * ONE as f64).round() as u64))
    }
}

crate::params! {
    /// Parameters of DCQCN. `profile` selects the defaults: `paper`, `cx` or `hpcc`.
    pub struct Settings {
        /// The set of defaults: SIGCOMM 2015 (table 14 and section 5), a ConnectX adapter with the paper's switch,
        /// or the simulator of HPCC. Default sizes and rates are for 40 Gb/s and grow with the line.
        profile: Profile = Profile::KIND, Default("paper");
        /// Kmin: up to this queue length nothing is marked.
        kmin: Bytes = Octets, By("profile", &["5 KB", "5 KB", "160 KB"]), "Zhu et al., 2015";
        /// Kmax: above this queue length every frame is marked.
        kmax: Bytes = Octets, By("profile", &["200 KB", "200 KB", "640 KB"]), "Zhu et al., 2015";
        /// Pmax, the probability of a mark at `kmax`.
        pmax: Millionths = Real(0.0, 1.0), By("profile", &["0.01", "0.01", "0.2"]), "Zhu et al., 2015";
        /// When a frame is judged.
        mark_at: MarkAt = MarkAt::KIND, Default("dequeue");
        /// N, the least time between two CNPs of a flow.
        cnp_interval: Duration = Span, By("profile", &["50 us", "4 us", "1 us"]), "Zhu et al., 2015";
        /// Whether senders obey. A frozen one keeps the line's rate.
        reaction: Reaction = Reaction::KIND, Default("obeys");
        /// g, the gain of α.
        g: Share = Real(0.0, 1.0), By("profile", &["0.00390625", "0.0048828125", "0.00390625"]), "Zhu et al., 2015";
        /// K, the period after which α falls without a CNP.
        alpha_interval: Duration = Span, By("profile", &["55 us", "1 us", "1 us"]), "Zhu et al., 2015";
        /// Whether the timer of α restarts with each CNP, or runs freely.
        alpha_timer: AlphaTimer = AlphaTimer::KIND, By("profile", &["since-cnp", "free", "free"]);
        /// Binary places of α.
        alpha_bits: u32 = Whole(8, 48), By("profile", &["48", "10", "48"]), "NVIDIA DOC-2790";
        /// What a CNP changes first. With `alpha_timer` = `free` both orders are equal.
        cnp_order: CnpOrder = CnpOrder::KIND, Default("cut-alpha") => Is("cut", &["per-cnp"]);
        /// A cut for each CNP, or one at the end of each period with a CNP.
        cut: Cut = Cut::KIND, By("profile", &["per-cnp", "per-period", "per-period"]), "NVIDIA DOC-2790";
        /// The period between two cuts, counted from a flow's first CNP.
        cut_period: Duration = Span, Default("4 us"), "NVIDIA DOC-2790" => Is("cut", &["per-period"]);
        /// The largest share that one cut takes.
        cut_max: Share = Real(0.0, 1.0), Default("0.5");
        /// The rate after a flow's first CNP, as a share of the rate before.
        first_cnp_rate: Share = Real(0.0, 1.0), Default("1"), "NVIDIA DOC-2790" => Is("cut", &["per-period"]);
        /// Whether the target follows each cut, or only the first after an increase.
        clamp_target: ClampTarget = ClampTarget::KIND, By("profile", &["always", "after-increase", "after-increase"]), "NVIDIA DOC-2790";
        /// T, the period of the timer.
        time_reset: Duration = Span, By("profile", &["55 us", "300 us", "900 us"]), "Zhu et al., 2015";
        /// B, the period of the byte counter; 0 octets for none.
        byte_reset: Bytes = Octets, By("profile", &["10 MB", "32767 B", "0 B"]), "Zhu et al., 2015";
        /// F, stages of fast recovery.
        stages: u32 = Whole(1, 31), By("profile", &["5", "1", "1"]), "Zhu et al., 2015";
        /// Growth of the target past the additive stage.
        hyper: Hyper = Hyper::KIND, By("profile", &["growing", "growing", "flat"]);
        /// R_AI, the additive increase of the target.
        rate_ai: BitRate = Rate, By("profile", &["40 Mbps", "5 Mbps", "50 Mbps"]), "Zhu et al., 2015";
        /// R_HAI, the increase of the target in hyper increase.
        rate_hai: BitRate = Rate, By("profile", &["400 Mbps", "50 Mbps", "100 Mbps"]), "Zhu et al., 2015";
        /// The lowest rate.
        rate_min: BitRate = Rate, By("profile", &["100 Mbps", "1 Mbps", "100 Mbps"]);
    }
}

crate::words! {
    /// A published set of defaults.
    pub enum Profile {
        /// SIGCOMM 2015, table 14 and section 5. R_HAI and the lowest rate are this project's: 10·R_AI, C/400.
        Paper = "paper",
        /// A ConnectX adapter; its documents define no switch, so that is the paper's.
        Cx = "cx",
        /// The documented configuration of the HPCC simulator. There each acknowledgement of a marked packet
        /// carries the mark; here a CNP for each tick of α is equivalent.
        Hpcc = "hpcc",
    }

    /// When a frame is judged.
    pub enum MarkAt {
        /// When it leaves.
        Dequeue = "dequeue",
        /// When it arrives.
        Enqueue = "enqueue",
    }

    /// Whether senders obey.
    pub enum Reaction {
        /// They do.
        Obeys = "obeys",
        /// They keep the line's rate.
        Frozen = "frozen",
    }

    /// When α changes.
    pub enum AlphaTimer {
        /// It rises with each CNP, and falls after each interval without one.
        SinceCnp = "since-cnp",
        /// A timer runs freely; at each expiry α rises if there was a CNP since the last one, else falls.
        Free = "free",
    }

    /// What a CNP changes first, if it changes both at once.
    pub enum CnpOrder {
        /// The rate, with the old α.
        CutAlpha = "cut-alpha",
        /// α, and then the rate with the new one.
        AlphaCut = "alpha-cut",
    }

    /// How often the rate is cut.
    pub enum Cut {
        /// At once, for each CNP.
        PerCnp = "per-cnp",
        /// At the end of each period with a CNP. Periods are counted from a flow's first CNP, which sets α to one
        /// and the rate to a share of what it was.
        PerPeriod = "per-period",
    }

    /// When the target rate follows the current rate down.
    pub enum ClampTarget {
        /// With each cut.
        Always = "always",
        /// With the first cut after an increase: later ones leave it, and recovery may overshoot.
        AfterIncrease = "after-increase",
    }

    /// How the target grows after the additive stage.
    pub enum Hyper {
        /// By i·R_HAI once both counters are past it, i counting from 1. Source: IEEE 802.1Q, 32.11.14.
        Growing = "growing",
        /// By R_HAI, one stage after F, which alone is additive.
        Flat = "flat",
    }
}

impl Settings {
    /// The settings on a line: sizes and rates that are not in `written` are scaled to it.
    pub fn on_line(&self, line: BitRate, written: &[&str]) -> Settings {
        let scaled = |key, value: u64| {
            let product = u128::from(value) * u128::from(line.get()) / u128::from(LINE.get());
            if written.contains(&key) || value == 0 { value } else { (product as u64).max(1) }
        };
        let size = |key, size: Bytes| Bytes::new(scaled(key, size.get()));
        let rate = |key, rate: BitRate| BitRate::new(scaled(key, rate.get())).unwrap_or(rate);
        let kmin = size("kmin", self.kmin);
        Settings {
            kmin,
            kmax: size("kmax", self.kmax).max(kmin),
            byte_reset: size("byte_reset", self.byte_reset),
            rate_ai: rate("rate_ai", self.rate_ai),
            rate_hai: rate("rate_hai", self.rate_hai),
            rate_min: rate("rate_min", self.rate_min),
            ..self.clone()
        }
    }
}
