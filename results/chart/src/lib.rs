//! What figures are made of: scales, paths, numbers in words, colours, and the small pictures that
//! reports, comparisons and searches share. Static SVG, independent of runs.

pub mod bullet;
pub mod curves;
pub mod heat;
pub mod number;
pub mod palette;
pub mod path;
pub mod quantiles;
pub mod scale;
pub mod shades;
pub mod words;

#[cfg(test)]
mod tests;
