//! Images of virtual machines.

use crate::HostError;

/// A kernel and an initial file system for machines.
#[derive(Clone, Debug)]
pub struct Image {}

impl Image {
    /// Finds the image with this kernel, or the default image.
    ///
    /// # Errors
    /// If there is none.
    pub fn find(_kernel: Option<&str>) -> Result<Image, HostError> {
        Err(HostError::NoImage("there is no image".to_owned()))
    }
}
