//! Jain's fairness index.

/// Jain's index: (Σx)² / (n·Σx²). 1 if all shares are equal, 1/n if one share is everything; `None` if all
/// are zero.
///
/// Source: Jain, Chiu and Hawe, "A quantitative measure of fairness and discrimination for resource
/// allocation in shared computer systems", DEC TR-301 (1984).
pub fn jain(shares: &[f64]) -> Option<f64> {
    let sum: f64 = shares.iter().sum();
    let squares: f64 = shares.iter().map(|share| share * share).sum();
    (squares > 0.0).then(|| sum * sum / (shares.len() as f64 * squares))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_shares_are_one_and_a_single_owner_is_one_nth() {
        assert_eq!(jain(&[2.0, 2.0, 2.0]), Some(1.0));
        assert_eq!(jain(&[0.0, 5.0, 0.0, 0.0]), Some(0.25));
        // (1 + 3)² / (2 · (1 + 9)) = 16/20.
        assert_eq!(jain(&[1.0, 3.0]), Some(0.8));
        assert_eq!(jain(&[0.0, 0.0]), None);
        assert_eq!(jain(&[]), None);
    }
}
