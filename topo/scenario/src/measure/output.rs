//! A number in the output of a command: a regular expression with one group, of bounded cost.
//!
//! The crate `regex` searches in time proportional to pattern times text; both are bounded here and where output is
//! recorded.

use proto::params::Complaint;
use regex::{Regex, RegexBuilder};

/// Octets of an expression, and of the program that it becomes.
const PATTERN_MAX: usize = 256;
const PROGRAM_MAX: usize = 1 << 18;

/// Compiles an expression; `^` and `$` match at lines.
///
/// # Errors
/// If it is not an expression, has not exactly one group, or costs too much.
pub fn compile(pattern: &str) -> Result<Regex, Complaint> {
    let hint = "one group around the number, such as \"([0-9.]+) Mb/s\"";
    if pattern.len() > PATTERN_MAX {
        let message = format!("{} octets, and {PATTERN_MAX} are permitted", pattern.len());
        return Err(Complaint::new(message, hint));
    }
    let mut builder = RegexBuilder::new(pattern);
    builder.multi_line(true).size_limit(PROGRAM_MAX).dfa_size_limit(PROGRAM_MAX);
    let expression = builder.build().map_err(|error| Complaint::new(error.to_string(), hint))?;
    // The whole match counts as a group.
    match expression.captures_len() - 1 {
        1 => Ok(expression),
        groups => Err(Complaint::new(format!("the expression has {groups} groups"), hint)),
    }
}

/// The number in the first match of `pattern` in `text`.
///
/// # Errors
/// Why there is none, as a message for the user.
pub fn number(pattern: &str, text: &str) -> Result<f64, String> {
    let expression = compile(pattern).map_err(|complaint| complaint.to_string())?;
    let captures = expression.captures(text).ok_or_else(|| format!("no match of {pattern:?}"))?;
    let word = captures.get(1).map_or("", |group| group.as_str());
    let number = word.parse::<f64>().ok().filter(|number| number.is_finite());
    number.ok_or_else(|| format!("{word:?} is not a number"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_group_of_the_first_match_is_the_number() {
        let text = "#bytes  #iterations\n 65536    1000   13.29   12.50\n 65536 1 2 3\n";
        assert_eq!(number(r"^ *65536 +\d+ +[\d.]+ +([\d.]+)", text), Ok(12.5));
        assert_eq!(number("(13)", text), Ok(13.0));
        assert!(number("(none)", text).is_err_and(|why| why.contains("no match")));
        assert!(number("(bytes)", text).is_err_and(|why| why.contains("is not a number")));
    }

    #[test]
    fn an_expression_that_costs_too_much_or_has_no_group_is_refused() {
        let long = "a".repeat(PATTERN_MAX + 1);
        for pattern in ["[0-9]+", "(a)(b)", "(", r"(\w{1000}{1000})", &long] {
            assert!(compile(pattern).is_err(), "{pattern}");
        }
    }
}
