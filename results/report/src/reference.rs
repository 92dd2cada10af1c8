//! References for comparison: points read from a published figure, and pictures (docs/spec/seeing.md 5).
//! The user provides the files.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

mod picture;
mod points;

pub use picture::{Calibration, Over, Picture};
pub use points::{Group, Points};

/// A series of the figure, or a panel, by its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Index of the panel.
    pub panel: usize,
    /// Index of the series in the panel.
    pub series: usize,
}

/// The figure that a reference is compared with: finds its parts by name.
pub trait Target {
    /// The series of these names.
    ///
    /// # Errors
    /// Which name is unknown, and which are known.
    fn find(&self, panel: &str, run: &str, series: &str) -> Result<Place, String>;

    /// The first panel of this name that has a series of `run`, by default the run of the report.
    ///
    /// # Errors
    /// As [`Target::find`].
    fn find_panel(&self, panel: &str, run: Option<&str>) -> Result<Place, String>;

    /// Checks that a point is inside its panel.
    ///
    /// # Errors
    /// If the point is before or after the run, or beyond the axis of the panel.
    fn check(&self, place: Place, t: f64, value: f64) -> Result<(), String>;
}

/// Longest reference file, octets.
const MOST: usize = 1 << 20;

/// A reference.
#[derive(Clone, Debug)]
pub enum Reference {
    /// Points, drawn hollow over the lines.
    Points(Points),
    /// A picture beside the figure, and over it if its axes are known.
    Picture(Picture),
}

/// Reads a file: a picture if it begins like one, else points. Names are those of `figure`.
///
/// # Errors
/// If it cannot be read, is neither, names what is not there, or is too large.
pub fn read(
    file: &Path,
    calibration: Option<&Calibration>,
    figure: &dyn Target,
) -> Result<Reference, String> {
    let shown = file.display();
    let read = || {
        let mut octets = Vec::new();
        File::open(file)?.take(MOST as u64 + 1).read_to_end(&mut octets)?;
        Ok(octets)
    };
    let octets = read().map_err(|error: io::Error| format!("cannot read {shown}: {error}"))?;
    let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let reference = if let Some(kind) = picture::kind(&octets) {
        Picture::read(name, kind, &octets, calibration, figure).map(Reference::Picture)
    } else if octets.len() > MOST {
        Err(format!("more than {MOST} octets are too many points"))
    } else {
        let text =
            String::from_utf8(octets).map_err(|_| "it is neither PNG nor JPEG nor text".to_owned());
        text.and_then(|text| Points::read(name, &text, figure)).map(Reference::Points)
    };
    reference.map_err(|why| format!("{shown}: {why}"))
}
