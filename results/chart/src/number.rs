//! Numbers as people read them: three significant figures, counters in full with thin spaces.

/// The space between groups of three digits.
const THIN: char = '\u{2009}';

/// `387 021`.
pub fn grouped(number: u64) -> String {
    let mut text = number.to_string();
    let mut place = text.len();
    while place > 3 {
        place -= 3;
        text.insert(place, THIN);
    }
    text
}

/// A measured number: three decimals for ratios, fewer for larger ones and for whole ones from two on, which
/// are counts; grouped from a thousand on.
pub fn measured(value: f64) -> String {
    let size = value.abs();
    if !value.is_finite() {
        return "–".to_owned();
    }
    let is_whole = value.fract() == 0.0;
    let digits = match size {
        0.0 => 0,
        1_000.0.. => {
            let sign = if value < 0.0 { "−" } else { "" };
            return format!("{sign}{}", grouped(size.round() as u64));
        }
        2.0.. if is_whole => 0,
        100.0.. => 0,
        10.0.. => 1,
        _ => 3,
    };
    // Adding zero removes the sign of -0.
    format!("{:.digits$}", value + 0.0)
}

/// A measured number where there may be none.
pub fn measured_or_dash(value: Option<f64>) -> String {
    value.map_or_else(|| "–".to_owned(), measured)
}

/// A bound of an expectation: as short as it can be without losing anything down to 1/10 000.
pub fn bound(value: f64) -> String {
    if value.abs() >= 1_000.0 {
        return measured(value);
    }
    let text = format!("{value:.4}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text.is_empty() || text == "-0" { "0".to_owned() } else { text.to_owned() }
}

/// A share of one as per cent without decimals: `30 %`.
pub fn per_cent(share: f64) -> String {
    format!("{:.0}\u{a0}%", share * 100.0)
}

/// A time in MTU times: `8 200 τ`, with a decimal below 100.
pub fn tau(value: f64) -> String {
    if value.abs() < 100.0 && (value - value.round()).abs() > 0.05 {
        format!("{value:.1}\u{a0}τ")
    } else {
        format!("{}\u{a0}τ", grouped(value.max(0.0).round() as u64))
    }
}

/// A span of time in the unit that fits: `16.8 ms`. Below a picosecond it is `0 s`.
pub fn seconds(ps: f64) -> String {
    let units = [("s", 1e12), ("ms", 1e9), ("µs", 1e6), ("ns", 1e3), ("ps", 1.0)];
    let Some((unit, size)) = units.into_iter().find(|(_, size)| ps >= *size) else {
        return "0 s".to_owned();
    };
    let value = ps / size;
    let digits = usize::from(value < 100.0) + usize::from(value < 10.0);
    format!("{value:.digits$}\u{a0}{unit}")
}

/// Octets in the unit that fits: `66.8 KiB`.
pub fn octets(value: f64) -> String {
    let units = [("MiB", 1_048_576.0), ("KiB", 1_024.0)];
    let unit = units.into_iter().find(|(_, size)| value >= *size);
    let (unit, size) = unit.unwrap_or(("B", 1.0));
    let digits = usize::from(size > 1.0 && value / size < 100.0);
    format!("{:.digits$}\u{a0}{unit}", value / size)
}

/// `1 link`, `2 links`.
pub fn count(number: u64, one: &str, many: &str) -> String {
    format!("{} {}", grouped(number), if number == 1 { one } else { many })
}

/// The name of a measure as words: `cold_ports_mean` is `cold ports mean`.
pub fn words(name: &str) -> String {
    name.replace('_', " ")
}

/// The first letter made a capital.
pub fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    match letters.next() {
        Some(first) => first.to_uppercase().chain(letters).collect(),
        None => String::new(),
    }
}
