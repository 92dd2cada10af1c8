//! The seeded random generator: xoshiro256++, one stream for each node and purpose.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::fmt::{self, Display, Write};

/// A stream of random numbers that advances only when its owner draws from it.
#[derive(Clone, Debug)]
pub struct Random(Xoshiro256PlusPlus);

impl Random {
    /// Creates the stream of `purpose` at `node` for the scenario's `seed`.
    ///
    /// A 64-bit FNV-1a hash of the three seeds the stream, so it does not depend on the order in which
    /// devices are created.
    pub fn stream(seed: u64, node: &str, purpose: impl Display) -> Random {
        let mut name = Fnv1a(0xcbf2_9ce4_8422_2325);
        name.fold(&seed.to_le_bytes());
        name.fold(node.as_bytes());
        name.fold(&[0xff]);
        write!(name, "{purpose}").expect("writing to the hash does not fail");
        Random(Xoshiro256PlusPlus::seed_from_u64(name.0))
    }

    /// The next 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A uniform number below `bound`, with a bias of at most 2^-64 · bound.
    ///
    /// # Panics
    /// If `bound` is zero.
    pub fn below(&mut self, bound: u64) -> u64 {
        assert!(bound > 0, "the bound must be above zero");
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// True with probability `numerator / denominator`.
    pub fn chance(&mut self, numerator: u64, denominator: u64) -> bool {
        self.below(denominator) < numerator
    }

    /// An exponentially distributed number with the given mean, rounded to an integer.
    ///
    /// −ln(u) is computed in fixed point (binary logarithm by repeated squaring, 32 fractional
    /// bits), so a seed gives equal arrivals on every machine and libm.
    pub fn exponential(&mut self, mean: u64) -> u64 {
        const LN_2_Q32: u128 = 2_977_044_472;
        let u = self.next_u64() | 1;
        let zeros = u.leading_zeros();
        let mut x = u << zeros;
        let mut log2_fraction = 0u64;
        for _ in 0..32 {
            let square = u128::from(x) * u128::from(x);
            log2_fraction <<= 1;
            if square >> 127 == 1 {
                log2_fraction |= 1;
                x = (square >> 64) as u64;
            } else {
                x = (square >> 63) as u64;
            }
        }
        let log2_of_inverse = ((u64::from(zeros) + 1) << 32) - log2_fraction;
        let ln_q64 = u128::from(log2_of_inverse) * LN_2_Q32;
        (((ln_q64 >> 32) * u128::from(mean)) >> 32) as u64
    }
}

/// 64-bit FNV-1a hash; formatted text is hashed as it is written.
struct Fnv1a(u64);

impl Fnv1a {
    fn fold(&mut self, octets: &[u8]) {
        for octet in octets {
            self.0 = (self.0 ^ u64::from(*octet)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
}

impl Write for Fnv1a {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.fold(text.as_bytes());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_names_give_equal_streams_and_different_names_give_different_ones() {
        let draw = |seed, node, purpose| Random::stream(seed, node, purpose).next_u64();
        assert_eq!(draw(7, "h1", "arrivals"), draw(7, "h1", "arrivals"));
        assert_ne!(draw(7, "h1", "arrivals"), draw(7, "h1", "targets"));
        assert_ne!(draw(7, "h1", "arrivals"), draw(8, "h1", "arrivals"));
        assert_ne!(draw(7, "h1", "1x"), draw(7, "h11", "x"));
    }

    #[test]
    fn the_exponential_distribution_has_the_expected_mean_and_tail() {
        let mut random = Random::stream(1, "test", "exponential");
        let n = 200_000u64;
        let draws: Vec<u64> = (0..n).map(|_| random.exponential(1_000_000)).collect();
        let mean = draws.iter().sum::<u64>() / n;
        assert!((990_000..1_010_000).contains(&mean), "mean {mean}");
        let beyond = draws.iter().filter(|d| **d > 2_000_000).count();
        let expected = (n as f64 * (-2.0f64).exp()) as usize;
        assert!(beyond.abs_diff(expected) < expected / 20, "{beyond} against {expected}");
    }
}
