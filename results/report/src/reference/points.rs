//! Points of a published figure as CSV: `panel,run,series,t_tau,value`, with the names of `over-time.csv`
//! and the units of the panel's axis.

use super::{Place, Target};

/// The header, and with it the order of fields.
const HEADER: [&str; 5] = ["panel", "run", "series", "t_tau", "value"];
/// Greatest number of points in a file.
const MOST: usize = 10_000;

/// Points of one series.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// Which series of which panel.
    pub place: Place,
    /// Time in τ and value, in the order of the file.
    pub points: Vec<(f64, f64)>,
}

/// The points of a file.
#[derive(Clone, Debug, PartialEq)]
pub struct Points {
    /// The file's name.
    pub name: String,
    /// Its points, series by series.
    pub groups: Vec<Group>,
}

impl Points {
    /// Parses a file.
    ///
    /// # Errors
    /// What is wrong, and in which line.
    pub fn read(name: String, text: &str, figure: &dyn Target) -> Result<Points, String> {
        let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(text.as_bytes());
        let mut groups: Vec<Group> = Vec::new();
        let mut count = 0;
        for (row, record) in reader.records().enumerate() {
            let record = record.map_err(|error| error.to_string())?;
            let line = record.position().map_or(0, csv::Position::line);
            let wrong = |why: String| format!("line {line}: {why}");
            let fields: Vec<&str> = record.iter().map(str::trim).collect();
            if row == 0 {
                // Spreadsheets write a byte order mark.
                let first = fields[0].trim_start_matches('\u{feff}');
                if [&[first], &fields[1..]].concat() != HEADER {
                    return Err(wrong(format!("the header is to be {}", HEADER.join(","))));
                }
                continue;
            }
            count += 1;
            if count > MOST {
                return Err(wrong(format!("more than {MOST} points")));
            }
            // The reader checks that rows have the length of the header.
            let [panel, run, series, t, value] = fields[..] else {
                return Err(wrong(format!("it has {} fields, not 5", fields.len())));
            };
            let place = figure.find(panel, run, series).map_err(wrong)?;
            let number = |text: &str, what: &str| {
                let number = text.parse::<f64>().ok().filter(|number| number.is_finite());
                number.ok_or_else(|| wrong(format!("{what} {text:?} is not a number")))
            };
            let (t, value) = (number(t, "t_tau")?, number(value, "value")?);
            figure.check(place, t, value).map_err(wrong)?;
            match groups.iter_mut().find(|group| group.place == place) {
                Some(group) => group.points.push((t, value)),
                None => groups.push(Group { place, points: vec![(t, value)] }),
            }
        }
        if groups.is_empty() {
            return Err(format!("there are no points below a header of {}", HEADER.join(",")));
        }
        Ok(Points { name, groups })
    }
}
