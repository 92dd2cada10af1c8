//! Draws values from the declarations of keys: any kind, at its bounds, near its default and between.

use proto::params::{Key, KeyTable, Kind, Need};
use proto::random::Random;
use toml::{Table, Value};

/// A source of random values. Equal seeds draw equal values.
pub struct Draw {
    random: Random,
    /// Only values with which all times are whole picoseconds.
    is_exact: bool,
}

impl Draw {
    /// The values of scenario `seed`.
    pub fn new(seed: u64, is_exact: bool) -> Draw {
        Draw { random: Random::stream(seed, "laws", "scenario"), is_exact }
    }

    /// A uniform number below `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.random.below(bound)
    }

    /// True in `n` of 100 cases.
    pub fn percent(&mut self, n: u64) -> bool {
        self.random.chance(n, 100)
    }

    /// A uniform number from `least` to `most`, both included.
    pub fn whole(&mut self, least: u64, most: u64) -> u64 {
        least + self.below(most - least + 1)
    }

    /// A number from `least` to `most` whose magnitude is uniform: small ones are as likely as large ones.
    pub fn magnitude(&mut self, least: u64, most: u64) -> u64 {
        let (low, high) = ((least.max(1) as f64).ln(), (most.max(1) as f64).ln());
        let drawn = (low + (high - low) * self.share()).exp().round() as u64;
        drawn.clamp(least, most)
    }

    /// A uniform number in [0, 1).
    pub fn share(&mut self) -> f64 {
        self.below(1 << 53) as f64 / (1u64 << 53) as f64
    }

    /// One of `choices`.
    pub fn pick<T: Clone>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize].clone()
    }

    /// Some of `choices`, at least one, in their order.
    pub fn some<T: Clone>(&mut self, choices: &[T]) -> Vec<T> {
        let percent = self.pick(&[20, 50, 80]);
        let mut kept: Vec<T> =
            choices.iter().filter(|_| self.random.chance(percent, 100)).cloned().collect();
        if kept.is_empty() {
            kept.push(self.pick(choices));
        }
        kept
    }

    /// A value that `kind` accepts; `None` for text and tables, which only their key explains.
    pub fn value(&mut self, kind: &Kind, default: Option<&str>) -> Option<Value> {
        let near = self.percent(40).then_some(default).flatten();
        Some(match kind {
            Kind::Text | Kind::Table(_) | Kind::Tables(_) => return None,
            Kind::Word(words) => Value::String(self.pick(&words()).to_owned()),
            Kind::Flag => Value::Boolean(self.percent(50)),
            Kind::Whole(least, most) => self.number(*least, *most, near).into(),
            Kind::Real(above, most) => self.real(*above, *most).into(),
            Kind::Gain => {
                let divisor = self.magnitude(1, 1 << 40);
                format!("1/{divisor}").into()
            }
            Kind::Time => match self.percent(10) {
                true => "0 ns".into(),
                false => self.time(near).into(),
            },
            Kind::Span => self.time(near).into(),
            Kind::Rate => self.rate(near).into(),
            Kind::Size => match self.percent(25) {
                true => format!("{} mtu", self.magnitude(1, 100)).into(),
                false => self.size(near).into(),
            },
            Kind::Octets => self.size(near).into(),
            Kind::List(of) => {
                let length = match default.map(proto::params::parse_default) {
                    Some(Value::Array(list)) if !list.is_empty() && !self.percent(10) => list.len(),
                    _ => self.whole(1, 4) as usize,
                };
                self.list(length, of)?
            }
            Kind::UpTo(most, of) => {
                let length = self.magnitude(1, (*most).min(64) as u64) as usize;
                self.list(length, of)?
            }
            Kind::Either(kinds) => {
                let first = self.below(kinds.len() as u64) as usize;
                let mut turns = kinds.iter().cycle().skip(first).take(kinds.len());
                turns.find_map(|kind| self.value(kind, default))?
            }
        })
    }

    fn list(&mut self, length: usize, of: &Kind) -> Option<Value> {
        let elements: Option<Vec<Value>> = (0..length).map(|_| self.value(of, None)).collect();
        elements.map(Value::Array)
    }

    fn number(&mut self, least: i64, most: i64, near: Option<&str>) -> i64 {
        let near = near.and_then(|text| text.parse::<i64>().ok());
        let (low, high) = match near {
            Some(near) => (near.saturating_sub(3).max(least), near.saturating_add(3).min(most)),
            None if self.percent(15) => return least,
            None if self.percent(15) && most < i64::MAX => return most,
            None => (least, most),
        };
        let width = self.magnitude(0, high.abs_diff(low).min(1 << 40));
        low.saturating_add_unsigned(width)
    }

    fn real(&mut self, above: f64, most: f64) -> f64 {
        let (above, most) = (above.max(-1e6), most.min(1e6));
        let width = most - above;
        match self.below(4) {
            0 => most,
            1 => above + width * 10f64.powi(-(self.whole(1, 6) as i32)),
            _ => most - width * self.share(),
        }
    }

    /// Default times this factor, from a hundredth to a hundred.
    fn factor(&mut self) -> f64 {
        100f64.powf(2.0 * self.share() - 1.0)
    }

    fn time(&mut self, near: Option<&str>) -> String {
        let near = near.and_then(|text| text.parse::<proto::units::Duration>().ok());
        match near.filter(|near| near.as_ps() > 1000) {
            Some(near) => format!("{} ns", (near.as_ps() as f64 / 1e3 * self.factor()).ceil()),
            None if self.percent(20) => format!("{} ps", self.magnitude(1, 1_000_000)),
            None => format!("{} ns", self.magnitude(1, 20_000_000)),
        }
    }

    fn rate(&mut self, near: Option<&str>) -> String {
        let near = near.and_then(|text| text.parse::<proto::units::BitRate>().ok());
        match near {
            Some(near) => format!("{} bps", (near.get() as f64 * self.factor()).ceil()),
            None if self.percent(30) => self.line_rate(),
            None => format!("{} kbps", self.magnitude(100, 800_000_000)),
        }
    }

    fn size(&mut self, near: Option<&str>) -> String {
        let near = near.and_then(|text| text.parse::<proto::units::Bytes>().ok());
        match near.filter(|near| near.get() > 0) {
            Some(near) => format!("{} B", (near.get() as f64 * self.factor()).ceil()),
            None => format!("{} B", self.magnitude(1, 4_000_000)),
        }
    }

    /// A rate of a line: of a standard mostly, any other sometimes.
    pub fn line_rate(&mut self) -> String {
        // An octet at these lasts a multiple of eight picoseconds, which a shift of ib-cca's table leaves whole.
        const EXACT: [&str; 11] = [
            "1 Gbps",
            "2500 Mbps",
            "5 Gbps",
            "8 Gbps",
            "10 Gbps",
            "20 Gbps",
            "25 Gbps",
            "40 Gbps",
            "50 Gbps",
            "100 Gbps",
            "200 Gbps",
        ];
        const OTHERS: [&str; 5] = ["16 Gbps", "32 Gbps", "56 Gbps", "400 Gbps", "800 Gbps"];
        match self.below(100) {
            _ if self.is_exact => self.pick(&EXACT).to_owned(),
            0..55 => self.pick(&EXACT).to_owned(),
            55..85 => self.pick(&OTHERS).to_owned(),
            _ => format!("{} Mbps", self.magnitude(1_000, 800_000)),
        }
    }

    /// Nanoseconds that a run lasts: some turns of the longest cable, and mostly some periods of timers. The limit on steps
    /// ends runs with fast lines earlier.
    pub fn duration(&mut self) -> u64 {
        self.magnitude(50_000, 4_000_000)
    }

    /// The delay of a cable, 10 ns to 100 us.
    pub fn delay(&mut self) -> String {
        match self.percent(80) {
            true => format!("{} ns", self.magnitude(10, 5_000)),
            false => format!("{} ns", self.magnitude(5_000, 100_000)),
        }
    }
}

/// A key that names parts of the fabric: its path, and its value for this fabric.
pub type Naming<'a> = dyn FnMut(&mut Draw, &str) -> Option<Value> + 'a;

/// Adds keys to a table, as the table's declaration permits.
pub struct Decorator<'a> {
    /// Where values come from.
    pub draw: &'a mut Draw,
    /// By path: in how many of 100 cases a key that may be left out is written.
    pub percent: &'a dyn Fn(&str) -> u64,
    /// Values of keys that name parts of the fabric.
    pub naming: &'a mut Naming<'a>,
    /// By key: the words of the tables around.
    pub words: Vec<(String, String)>,
}

impl Decorator<'_> {
    /// Gives keys that `table` may have and does not have yet a value; required keys always.
    pub fn decorate(&mut self, table: &mut Table, keys: &KeyTable, path: &str) {
        let outside = self.words.len();
        for key in keys.keys {
            self.key(table, key, path);
        }
        self.remember(table, keys.keys);
        let words = self.words.clone();
        let word = |by: &str| {
            let known = words.iter().rev().find(|(name, _)| name == by);
            known.map(|(_, word)| word.clone())
        };
        for key in keys.keys_for(word).iter().skip(keys.keys.len()) {
            self.key(table, key, path);
        }
        self.words.truncate(outside);
    }

    /// Keeps the words of a table, for the tables inside it.
    fn remember(&mut self, table: &Table, keys: &[Key]) {
        for key in keys.iter().filter(|key| matches!(key.kind, Kind::Word(_))) {
            let written = table.get(key.name).and_then(Value::as_str);
            let default = key.need.text(|_| None).map(|text| text.trim_matches('"'));
            if let Some(word) = written.or(default) {
                self.words.push((key.name.to_owned(), word.to_owned()));
            }
        }
    }

    fn key(&mut self, table: &mut Table, key: &Key, path: &str) {
        let path =
            if path.is_empty() { key.name.to_owned() } else { format!("{path}.{}", key.name) };
        match (table.get_mut(key.name), &key.kind) {
            (Some(Value::Table(inner)), Kind::Table(keys)) => {
                return self.decorate(inner, keys, &path);
            }
            (Some(Value::Array(list)), Kind::Tables(keys)) => {
                for element in list.iter_mut().filter_map(Value::as_table_mut) {
                    self.decorate(element, keys, &path);
                }
                return;
            }
            (Some(_), _) => return,
            (None, _) => {}
        }
        let percent = (self.percent)(&path);
        if !matches!(key.need, Need::Required) && !self.draw.percent(percent) {
            return;
        }
        let value = match &key.kind {
            Kind::Table(keys) => {
                let mut inner = Table::new();
                self.decorate(&mut inner, keys, &path);
                Some(Value::Table(inner))
            }
            Kind::Tables(keys) => {
                let count = self.draw.whole(1, 2);
                let one = |_| {
                    let mut inner = Table::new();
                    self.decorate(&mut inner, keys, &path);
                    Value::Table(inner)
                };
                Some(Value::Array((0..count).map(one).collect()))
            }
            kind => {
                let named = (self.naming)(self.draw, &path);
                let row = self.draw.below(3) as usize;
                let default = key.need.text(|_| Some(row));
                named.or_else(|| self.draw.value(kind, default))
            }
        };
        if let Some(value) = value {
            table.insert(key.name.to_owned(), value);
        }
    }
}
