//! The settings that are searched: a finite grid, with an order along each parameter.

use proto::congestion::SchemeConfig;
use proto::random::Random;
use scenario::tune::{Searched, Values};

/// Greatest number of values of a range, without the file's own.
const LEVELS: usize = 33;

/// A range that spans this factor is divided evenly in its logarithm.
const LOGARITHMIC_FROM: f64 = 8.0;

/// The grid.
#[derive(Clone, Debug, PartialEq)]
pub struct Space {
    /// One parameter a dimension.
    pub dimensions: Vec<Dimension>,
    /// The file's own settings, if they are on the grid.
    pub own: Option<Point>,
}

/// A parameter and its values, in order.
#[derive(Clone, Debug, PartialEq)]
pub struct Dimension {
    /// In the scheme's own words.
    pub name: String,
    /// Its values, at least two.
    pub levels: Vec<toml::Value>,
}

/// Settings: an index into each dimension's levels.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Point(pub Vec<usize>);

impl Space {
    /// The grid over `searched`. The current values of `scheme` are on it where a range contains
    /// them.
    pub fn new(searched: &[Searched], scheme: &SchemeConfig) -> Space {
        let each = searched.iter().map(|Searched { name, values }| {
            let now = scheme.params.get(name);
            let levels = levels(values, now);
            let own = now.and_then(|now| levels.iter().position(|level| same(level, now)));
            (Dimension { name: name.clone(), levels }, own)
        });
        let (dimensions, own): (Vec<_>, Vec<_>) = each.unzip();
        Space { dimensions, own: own.into_iter().collect::<Option<_>>().map(Point) }
    }

    /// Parameters and their values at `point`.
    pub fn settings<'a>(
        &'a self,
        point: &'a Point,
    ) -> impl Iterator<Item = (&'a str, &'a toml::Value)> {
        let each = self.dimensions.iter().zip(&point.0);
        each.map(|(dimension, level)| (dimension.name.as_str(), &dimension.levels[*level]))
    }

    /// `scheme` with the settings of `point`.
    pub fn apply(&self, point: &Point, scheme: &SchemeConfig) -> SchemeConfig {
        let mut scheme = scheme.clone();
        for (name, value) in self.settings(point) {
            scheme.params.insert(name.to_owned(), value.clone());
        }
        scheme
    }

    /// `n` different points, spread evenly: a Halton sequence, shifted by the seed.
    ///
    /// Source: Halton, "On the efficiency of certain quasi-random sequences of points" (1960);
    /// Cranley and Patterson, "Randomization of number theoretic methods for multiple integration"
    /// (1976), for the shift.
    pub fn sample(&self, n: usize, seed: u64) -> Vec<Point> {
        let mut random = Random::stream(seed, "tune", "sample");
        let shift: Vec<f64> = self.dimensions.iter().map(|_| unit(&mut random)).collect();
        let mut points: Vec<Point> = Vec::new();
        // A small grid runs out of new points.
        for index in 1..=(n as u64).saturating_mul(8) {
            if points.len() == n {
                break;
            }
            let level = |(d, dimension): (usize, &Dimension)| {
                let place = (halton(index, PRIMES[d % PRIMES.len()]) + shift[d]).fract();
                (place * dimension.levels.len() as f64) as usize
            };
            let point = Point(self.dimensions.iter().enumerate().map(level).collect());
            if !points.contains(&point) {
                points.push(point);
            }
        }
        points
    }

    /// The points around `centre`: one step up and down each dimension, and as many again in random
    /// directions. A step is the dimension's length divided by 2 so many `halvings` times.
    pub fn around(&self, centre: &Point, halvings: u32, random: &mut Random) -> Vec<Point> {
        let dimensions = 0..self.dimensions.len();
        let mut points = Vec::new();
        for (d, direction) in dimensions.clone().flat_map(|d| [(d, -1), (d, 1)]) {
            let mut point = centre.clone();
            point.0[d] = self.stepped(centre, d, direction, halvings);
            points.push(point);
        }
        for _ in 0..points.len() {
            let mut step = |d| {
                let direction = random.below(3) as isize - 1;
                self.stepped(centre, d, direction, halvings)
            };
            points.push(Point(dimensions.clone().map(&mut step).collect()));
        }
        let mut unique: Vec<Point> = Vec::new();
        for point in points {
            if point != *centre && !unique.contains(&point) {
                unique.push(point);
            }
        }
        unique
    }

    /// True if a step is a single level in every dimension.
    pub fn is_finest(&self, halvings: u32) -> bool {
        (0..self.dimensions.len()).all(|d| self.step(d, halvings) == 1)
    }

    fn step(&self, d: usize, halvings: u32) -> usize {
        (self.dimensions[d].levels.len() >> halvings).max(1)
    }

    fn stepped(&self, from: &Point, d: usize, direction: isize, halvings: u32) -> usize {
        let last = self.dimensions[d].levels.len() - 1;
        from.0[d].saturating_add_signed(direction * self.step(d, halvings) as isize).min(last)
    }
}

fn levels(values: &Values, now: Option<&toml::Value>) -> Vec<toml::Value> {
    match values {
        Values::Listed(list) => list.clone(),
        Values::Whole(low, high) => {
            let mut whole: Vec<i64> = match (high - low).saturating_add(1) {
                all if all <= LEVELS as i64 => (*low..=*high).collect(),
                _ => spread(*low as f64, *high as f64).map(|x| x.round() as i64).collect(),
            };
            let now = now.and_then(toml::Value::as_integer);
            whole.extend(now.filter(|n| (low..=high).contains(&n)));
            whole.sort_unstable();
            whole.dedup();
            whole.into_iter().map(toml::Value::Integer).collect()
        }
        Values::Real(low, high) => {
            let mut real: Vec<f64> =
                spread(*low, *high).map(|x| three_digits(x).clamp(*low, *high)).collect();
            real.extend(now.and_then(toml::Value::as_float).filter(|x| (low..=high).contains(&x)));
            real.sort_by(f64::total_cmp);
            real.dedup();
            real.into_iter().map(toml::Value::Float).collect()
        }
    }
}

fn spread(low: f64, high: f64) -> impl Iterator<Item = f64> {
    let logarithmic = low > 0.0 && high / low >= LOGARITHMIC_FROM;
    (0..LEVELS).map(move |n| {
        let share = n as f64 / (LEVELS - 1) as f64;
        let x =
            if logarithmic { low * (high / low).powf(share) } else { low + (high - low) * share };
        x.clamp(low, high)
    })
}

/// Rounds to three significant digits, which are easy to read and to type.
fn three_digits(x: f64) -> f64 {
    format!("{x:.2e}").parse().unwrap_or(x)
}

fn same(a: &toml::Value, b: &toml::Value) -> bool {
    match (a, b) {
        (toml::Value::Float(a), toml::Value::Integer(b)) => *a == *b as f64,
        _ => a == b,
    }
}

fn unit(random: &mut Random) -> f64 {
    (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64
}

/// The digits of `index` in `base`, mirrored at the point.
fn halton(mut index: u64, base: u64) -> f64 {
    let (mut value, mut weight) = (0.0, 1.0 / base as f64);
    while index > 0 {
        value += (index % base) as f64 * weight;
        index /= base;
        weight /= base as f64;
    }
    value
}

/// The bases of the dimensions; from the ninth dimension on they come again, with shifts of their own.
const PRIMES: [u64; 8] = [2, 3, 5, 7, 11, 13, 17, 19];

#[cfg(test)]
mod tests;
