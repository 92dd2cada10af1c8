//! What only the kernel's files tell: counters, and kinds of GIDs.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

const DEVICES: &str = "/sys/class/infiniband";

fn folder(device: &str) -> PathBuf {
    Path::new(DEVICES).join(device)
}

/// The counters of a device and of its first port. Those of the port come first where names are equal.
pub fn counters(device: &str) -> BTreeMap<String, u64> {
    let mut counters = BTreeMap::new();
    for part in ["hw_counters", "ports/1/counters", "ports/1/hw_counters"] {
        let Ok(files) = fs::read_dir(folder(device).join(part)) else { continue };
        for file in files.flatten() {
            let text = fs::read_to_string(file.path()).unwrap_or_default();
            if let (Some(name), Ok(value)) = (file.file_name().to_str(), text.trim().parse()) {
                // A setting, and no counter.
                if name != "lifespan" {
                    counters.insert(name.to_owned(), value);
                }
            }
        }
    }
    counters
}

/// The kind of a GID, such as `RoCE v2`; empty if the kernel does not tell.
pub fn gid_kind(device: &str, index: u8) -> String {
    let file = folder(device).join(format!("ports/1/gid_attrs/types/{index}"));
    fs::read_to_string(file).unwrap_or_default().trim().to_owned()
}
