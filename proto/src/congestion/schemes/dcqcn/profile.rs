//! The numbers of DCQCN: three published sets as data, and what a place makes of one of them.
//!
//! A profile is written down for a line of 40 Gb/s. On another line its sizes and rates grow with the
//! line, times and shares stay: R_AI and B left alone would keep the sum of a few senders at half the
//! line for the first 11 ms at 400 Gb/s (algorithms.md 8.4).

use crate::congestion::Place;
use crate::congestion::schemes::params;
use crate::units::{BitRate, Bytes, Duration};

/// Binary places of α, of g and of shares.
pub const PLACES: u32 = 48;
/// One, with so many places.
pub const ONE: u64 = 1 << PLACES;

/// The line that profiles are written down for.
const LINE: BitRate = BitRate::gbps(40);

/// When α changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AlphaTimer {
    /// It rises with each CNP, and falls whenever there was none for an interval.
    SinceCnp,
    /// A timer runs freely; α rises if there was a CNP since it last rang, and falls if not.
    Free,
}

/// What a CNP changes first, where it changes both at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CnpOrder {
    /// The rate, by the α from before.
    CutAlpha,
    /// α, which the cut then goes by.
    AlphaCut,
}

/// How often the rate is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// At once, for each CNP.
    PerCnp,
    /// At the end of each period with a CNP in it; periods are counted from a flow's first CNP, which
    /// sets α to one and the rate to a share of what it was.
    PerPeriod {
        /// The period.
        period: Duration,
        /// The share, with [`PLACES`].
        first_cnp_rate: u64,
    },
}

/// When the target rate follows the current rate down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClampTarget {
    /// With each cut.
    Always,
    /// With the first cut after an increase: later ones leave it, and recovery may overshoot.
    AfterIncrease,
}

/// How the target grows after the additive stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hyper {
    /// By i·R_HAI once both counters are past it, i counting from 1. Source: IEEE 802.1Q, 32.11.14.
    Growing,
    /// By R_HAI, one stage after F, which alone is additive.
    Flat,
}

/// Everything the three roles go by, at one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Up to this queue nothing is marked.
    pub kmin: Bytes,
    /// Above this one everything is.
    pub kmax: Bytes,
    /// The chance of a mark at `kmax`, in millionths.
    pub pmax: u64,
    /// Frames are judged as they come, not as they leave.
    pub marks_at_enqueue: bool,
    /// N.
    pub cnp_interval: Duration,
    /// The gain of α, with [`PLACES`].
    pub g: u64,
    /// K.
    pub alpha_interval: Duration,
    /// When α changes.
    pub alpha_timer: AlphaTimer,
    /// Binary places that α keeps.
    pub alpha_bits: u32,
    /// What a CNP changes first.
    pub cnp_order: CnpOrder,
    /// How often the rate is cut.
    pub cut: Cut,
    /// The largest share that one cut takes, with [`PLACES`].
    pub cut_max: u64,
    /// When the target follows.
    pub clamp_target: ClampTarget,
    /// T.
    pub time_reset: Duration,
    /// B, if octets are counted at all.
    pub byte_reset: Option<Bytes>,
    /// F.
    pub stages: u32,
    /// How the target grows at last.
    pub hyper: Hyper,
    /// R_AI, in bit/s.
    pub rate_ai: u64,
    /// R_HAI, in bit/s.
    pub rate_hai: u64,
    /// No rate is cut below this, in bit/s.
    pub rate_min: u64,
}

const MEGA: u64 = 1_000_000;

/// SIGCOMM 2015, table 14 and section 5; R_HAI and the least rate are ours: 10·R_AI, C/400.
const PAPER: Settings = Settings {
    kmin: Bytes::new(5_000),
    kmax: Bytes::new(200_000),
    pmax: 10_000,
    marks_at_enqueue: false,
    cnp_interval: Duration::from_us(50),
    g: ONE / 256,
    alpha_interval: Duration::from_us(55),
    alpha_timer: AlphaTimer::SinceCnp,
    alpha_bits: PLACES,
    cnp_order: CnpOrder::CutAlpha,
    cut: Cut::PerCnp,
    cut_max: ONE / 2,
    clamp_target: ClampTarget::Always,
    time_reset: Duration::from_us(55),
    byte_reset: Some(Bytes::new(10_000_000)),
    stages: 5,
    hyper: Hyper::Growing,
    rate_ai: 40 * MEGA,
    rate_hai: 400 * MEGA,
    rate_min: 100 * MEGA,
};

/// An adapter's defaults; of switches they say nothing, so those are the paper's.
const CX: Settings = Settings {
    cnp_interval: Duration::from_us(4),
    g: 5 * ONE / 1024,
    alpha_interval: Duration::from_us(1),
    alpha_timer: AlphaTimer::Free,
    alpha_bits: 10,
    cut: Cut::PerPeriod { period: Duration::from_us(4), first_cnp_rate: ONE },
    clamp_target: ClampTarget::AfterIncrease,
    time_reset: Duration::from_us(300),
    byte_reset: Some(Bytes::new(32_767)),
    stages: 1,
    rate_ai: 5 * MEGA,
    rate_hai: 50 * MEGA,
    rate_min: MEGA,
    ..PAPER
};

/// The simulator's documented configuration. There each acknowledgement of a marked packet says so;
/// here a CNP for each tick of α tells as much.
const HPCC: Settings = Settings {
    kmin: Bytes::new(160_000),
    kmax: Bytes::new(640_000),
    pmax: 200_000,
    cnp_interval: Duration::from_us(1),
    alpha_interval: Duration::from_us(1),
    alpha_timer: AlphaTimer::Free,
    cut: Cut::PerPeriod { period: Duration::from_us(4), first_cnp_rate: ONE },
    clamp_target: ClampTarget::AfterIncrease,
    time_reset: Duration::from_us(900),
    byte_reset: None,
    stages: 1,
    hyper: Hyper::Flat,
    rate_ai: 50 * MEGA,
    rate_hai: 100 * MEGA,
    rate_min: 100 * MEGA,
    ..PAPER
};

impl Settings {
    /// What `place` is told: its profile, scaled to its line, and over that what it is told by name.
    pub fn new(place: &Place<'_>) -> Settings {
        let profile = match params::word(place.params, "profile", "paper") {
            "cx" => CX,
            "hpcc" => HPCC,
            _ => PAPER,
        };
        profile.scaled_to(place.line_rate).overridden_by(place.params)
    }

    fn scaled_to(self, line: BitRate) -> Settings {
        let scaled = |value: u64| {
            let product = u128::from(value) * u128::from(line.get()) / u128::from(LINE.get());
            (product as u64).max(1)
        };
        let size = |octets: Bytes| Bytes::new(scaled(octets.get()));
        Settings {
            kmin: size(self.kmin),
            kmax: size(self.kmax),
            byte_reset: self.byte_reset.map(size),
            rate_ai: scaled(self.rate_ai),
            rate_hai: scaled(self.rate_hai),
            rate_min: scaled(self.rate_min),
            ..self
        }
    }

    fn overridden_by(self, table: &toml::Table) -> Settings {
        let size = |key, other| params::quantity::<Bytes>(table, key).unwrap_or(other);
        let time = |key, other| params::quantity::<Duration>(table, key).unwrap_or(other);
        let rate = |key, other| params::quantity(table, key).map_or(other, BitRate::get);
        let share = |key, other| params::binary_fraction(table, key, PLACES).unwrap_or(other);
        let kmin = size("kmin", self.kmin);
        let byte_reset = size("byte_reset", self.byte_reset.unwrap_or(Bytes::ZERO));
        Settings {
            kmin,
            kmax: size("kmax", self.kmax).max(kmin),
            pmax: params::millionths(table, "pmax").unwrap_or(self.pmax),
            marks_at_enqueue: params::word(table, "mark_at", "dequeue") == "enqueue",
            cnp_interval: time("cnp_interval", self.cnp_interval),
            g: share("g", self.g),
            alpha_interval: time("alpha_interval", self.alpha_interval),
            alpha_timer: match params::word(table, "alpha_timer", "") {
                "since-cnp" => AlphaTimer::SinceCnp,
                "free" => AlphaTimer::Free,
                _ => self.alpha_timer,
            },
            alpha_bits: params::integer(table, "alpha_bits", self.alpha_bits.into()) as u32,
            cnp_order: match params::word(table, "cnp_order", "") {
                "cut-alpha" => CnpOrder::CutAlpha,
                "alpha-cut" => CnpOrder::AlphaCut,
                _ => self.cnp_order,
            },
            cut: self.cut.overridden_by(table),
            cut_max: share("cut_max", self.cut_max),
            clamp_target: match params::word(table, "clamp_target", "") {
                "always" => ClampTarget::Always,
                "after-increase" => ClampTarget::AfterIncrease,
                _ => self.clamp_target,
            },
            time_reset: time("time_reset", self.time_reset),
            byte_reset: (byte_reset > Bytes::ZERO).then_some(byte_reset),
            stages: params::integer(table, "stages", self.stages.into()) as u32,
            hyper: match params::word(table, "hyper", "") {
                "growing" => Hyper::Growing,
                "flat" => Hyper::Flat,
                _ => self.hyper,
            },
            rate_ai: rate("rate_ai", self.rate_ai),
            rate_hai: rate("rate_hai", self.rate_hai),
            rate_min: rate("rate_min", self.rate_min),
        }
    }
}

impl Cut {
    fn overridden_by(self, table: &toml::Table) -> Cut {
        let (period, first_cnp_rate) = match self {
            Cut::PerCnp => (Duration::from_us(4), ONE),
            Cut::PerPeriod { period, first_cnp_rate } => (period, first_cnp_rate),
        };
        let per_period = Cut::PerPeriod {
            period: params::quantity(table, "cut_period").unwrap_or(period),
            first_cnp_rate: params::binary_fraction(table, "first_cnp_rate", PLACES)
                .unwrap_or(first_cnp_rate),
        };
        match (params::word(table, "cut", ""), self) {
            ("per-cnp", _) | ("", Cut::PerCnp) => Cut::PerCnp,
            _ => per_period,
        }
    }
}
