//! What others found, laid beside ours: points that somebody read off a figure, and pictures (seeing.md 5).
//! Whoever asks brings the file; none is ours.

use super::figure::Figure;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

mod picture;
mod points;

pub use picture::{Calibration, Over, Picture};
pub use points::{Group, Points};

/// Nothing longer than this is a reference, octets.
const MOST: usize = 1 << 20;

/// Why a file is no reference.
#[derive(Debug, thiserror::Error)]
pub enum ReferenceError {
    /// It cannot be read.
    #[error("cannot read {}: {source}", file.display())]
    Read {
        /// Which.
        file: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// It is not what it should be.
    #[error("{}: {why}", file.display())]
    Content {
        /// Which.
        file: PathBuf,
        /// What is wrong with it, and in which line if it has lines.
        why: String,
    },
    /// What was said about it does not fit.
    #[error("{0}")]
    Option(String),
}

/// A reference.
#[derive(Clone, Debug)]
pub enum Reference {
    /// Points, drawn hollow over our lines.
    Points(Points),
    /// A picture beside ours, and over it where its axes are known.
    Picture(Picture),
}

/// Reads a file: a picture if it begins like one, else points. Names are those of `figure`.
///
/// # Errors
/// If it cannot be read, is neither, names what is not there, or is too large.
pub fn read(
    file: &Path,
    calibration: Option<&Calibration>,
    figure: &Figure<'_>,
) -> Result<Reference, ReferenceError> {
    let read = || {
        let mut octets = Vec::new();
        File::open(file)?.take(MOST as u64 + 1).read_to_end(&mut octets)?;
        Ok(octets)
    };
    let octets = read().map_err(|source| ReferenceError::Read { file: file.to_owned(), source })?;
    let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let content = |why: String| ReferenceError::Content { file: file.to_owned(), why };
    if let Some(kind) = picture::kind(&octets) {
        let picture = Picture::read(name, kind, &octets, calibration, figure);
        return picture.map(Reference::Picture).map_err(content);
    }
    if octets.len() > MOST {
        return Err(content(format!("more than {MOST} octets are too many points")));
    }
    let text = String::from_utf8(octets)
        .map_err(|_| content("it is neither PNG nor JPEG nor text".to_owned()))?;
    Points::read(name, &text, figure).map(Reference::Points).map_err(content)
}
