//! How QEMU executes machines: by KVM where a kernel starts with it in time, else by translation.
//!
//! A device /dev/kvm says little: there are hosts where it executes a stock kernel so slowly that it never starts. So
//! a machine is started once, and the answer is kept beside the image.

use super::qemu::{Accelerator, Qemu};
use super::state;
use crate::HostError;
use crate::image::Image;
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::time::Duration;

/// Time for a start with KVM, several times what it takes where it works.
const PROBE: Duration = Duration::from_secs(8);
const FILE: &str = "accelerator.json";

#[derive(Debug, Serialize, Deserialize)]
struct Answer {
    qemu: String,
    has_device: bool,
    accelerator: Accelerator,
}

/// The accelerator for an image; found out by a start, unless the answer is cached.
pub fn of(qemu: &Qemu, image: &Image) -> Result<Accelerator, HostError> {
    let path = image.folder.join(FILE);
    let has_device = File::options().read(true).write(true).open("/dev/kvm").is_ok();
    let cached = fs::read(&path).ok().and_then(|text| serde_json::from_slice::<Answer>(&text).ok());
    if let Some(answer) =
        cached.filter(|answer| answer.qemu == qemu.version && answer.has_device == has_device)
    {
        return Ok(answer.accelerator);
    }
    let works = has_device && state::starts(qemu, image, Accelerator::Kvm, PROBE);
    let accelerator = if works { Accelerator::Kvm } else { Accelerator::Tcg };
    let answer = Answer { qemu: qemu.version.clone(), has_device, accelerator };
    let text = serde_json::to_vec(&answer).expect("it has string keys");
    fs::write(&path, text).map_err(HostError::io(path.display()))?;
    Ok(accelerator)
}
