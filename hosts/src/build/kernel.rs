//! A kernel from its package: the uncompressed image, which QEMU enters directly (PVH), and the modules.

use super::compression::uncompressed;
use super::modules::Modules;
use super::tree::{Node, Tree};
use crate::HostError;
use std::io;
use std::path::Path;

/// Folders of modules that an image may take from, below `lib/modules/RELEASE/kernel`.
const FOLDERS: &[&str] = &[
    "arch/x86/crypto/",
    "block/",
    "crypto/",
    "drivers/block/",
    "drivers/char/",
    "drivers/firmware/",
    "drivers/infiniband/core/",
    "drivers/infiniband/sw/",
    "drivers/net/",
    "drivers/nvme/",
    "drivers/virtio/",
    "fs/",
    "lib/",
    "net/",
];

/// A kernel.
#[derive(Debug)]
pub struct Kernel {
    /// Its release.
    pub release: String,
    /// The ELF file.
    pub image: Vec<u8>,
    /// The modules of an image.
    pub modules: Modules,
}

/// Reads a kernel and its modules from a package.
pub fn read(package: &Path) -> Result<Kernel, HostError> {
    let tree = Tree::read(package, is_wanted)?;
    let bad = |why: &str| HostError::Failed(format!("{}: {why}", package.display()));
    let release = tree.0.keys().find_map(|path| path.strip_prefix("boot/vmlinuz-"));
    let release = release.ok_or_else(|| bad("there is no /boot/vmlinuz-*"))?.to_owned();
    let boot = tree.content(&format!("boot/vmlinuz-{release}")).unwrap_or_default();
    let image = uncompressed_image(boot).map_err(|error| bad(&error.to_string()))?;
    let base = format!("usr/lib/modules/{release}/");
    let builtin = tree.content(&format!("{base}modules.builtin")).unwrap_or_default();
    let builtin = String::from_utf8_lossy(builtin).into_owned();
    let files = tree.0.into_iter().filter_map(|(path, node)| match node {
        Node::File(_, content) => Some((path.strip_prefix(&base)?.to_owned(), content)),
        _ => None,
    });
    let modules = Modules::select(files.collect(), &builtin).map_err(|error| bad(&error))?;
    Ok(Kernel { release, image, modules })
}

fn is_wanted(path: &str) -> bool {
    let Some(rest) = path.strip_prefix("usr/lib/modules/") else {
        return path.starts_with("boot/vmlinuz-");
    };
    let Some((_, inner)) = rest.split_once('/') else { return false };
    let module = inner.strip_prefix("kernel/");
    inner == "modules.builtin"
        || module.is_some_and(|path| FOLDERS.iter().any(|folder| path.starts_with(folder)))
}

/// The payload of a bzImage, uncompressed (Linux, Documentation/arch/x86/boot.rst: `setup_sects`, `payload_offset`,
/// `payload_length`). The last four octets of the payload state its length.
fn uncompressed_image(boot: &[u8]) -> io::Result<Vec<u8>> {
    let number = |at: usize| {
        let octets = boot.get(at..at + 4).and_then(|octets| <[u8; 4]>::try_from(octets).ok());
        octets.map(u32::from_le_bytes).map(|number| number as usize)
    };
    let payload = || {
        (boot.get(0x202..0x206)? == b"HdrS").then_some(())?;
        let start = (usize::from(*boot.get(0x1f1)?) + 1) * 512 + number(0x248)?;
        boot.get(start..start.checked_add(number(0x24c)?.checked_sub(4)?)?)
    };
    let payload = payload().ok_or_else(|| io::Error::other("vmlinuz is not a bzImage"))?;
    let image = uncompressed(payload)?;
    if image.starts_with(b"\x7fELF") {
        return Ok(image);
    }
    Err(io::Error::other("the kernel in vmlinuz is not an ELF file"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_that_are_no_kernels_are_refused() {
        assert!(uncompressed_image(b"text").is_err());
        assert!(uncompressed_image(&[0xff; 4096]).is_err());
    }
}
