//! Images of virtual machines in the cache of this user: a kernel, an initial file system, and what they were made of.

use crate::HostError;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The uncompressed kernel.
pub const KERNEL: &str = "vmlinux";
/// The initial file system.
pub const INITRAMFS: &str = "initramfs.cpio";
const MANIFEST: &str = "manifest.json";
/// The link to the image that is taken without a choice of kernel.
const DEFAULT: &str = "default";
/// Memory in MiB with which the kernel starts, and the steps in which memory is counted.
const KERNEL_MIB: u32 = 96;
const MEMORY_STEP_MIB: u32 = 64;
/// Changes whenever images are laid out differently.
const LAYOUT: u32 = 1;

/// What an image holds, and what it was made of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// Version of the layout.
    pub layout: u32,
    /// Version of the protocol with the guest.
    pub protocol: u32,
    /// Release of the kernel, such as `6.1.0-56-amd64`.
    pub kernel: String,
    /// SHA-256 of the first process.
    pub guestd: String,
    /// File names of the packages, which hold their versions.
    pub packages: Vec<String>,
    /// SHA-256 of each file of the image.
    pub files: BTreeMap<String, String>,
}

/// An image whose files have been checked.
#[derive(Clone, Debug)]
pub struct Image {
    /// Its folder.
    pub folder: PathBuf,
    /// Its manifest.
    pub manifest: Manifest,
}

impl Image {
    /// Finds the image with this release of the kernel (with or without `-amd64`), or the default image, and checks
    /// the hashes of its files.
    ///
    /// # Errors
    /// If there is none, or it was made by another version, or a file has changed.
    pub fn find(kernel: Option<&str>) -> Result<Image, HostError> {
        let link = match kernel {
            None => DEFAULT.to_owned(),
            Some(release) => link_of(release)?,
        };
        let folder = cache()?.join("images");
        let target = fs::read_link(folder.join(link)).map_err(|_| {
            HostError::NoImage(match kernel {
                None => "there is no image for virtual machines".to_owned(),
                Some(release) => format!("there is no image with kernel {release}"),
            })
        })?;
        Image::open(folder.join(target))
    }

    /// Opens the image in `folder`, and checks the hashes of its files.
    ///
    /// # Errors
    /// As for [`Image::find`].
    pub fn open(folder: PathBuf) -> Result<Image, HostError> {
        let bad = |why: String| HostError::NoImage(format!("{}: {why}", folder.display()));
        let text = fs::read(folder.join(MANIFEST)).map_err(|error| bad(error.to_string()))?;
        let manifest: Manifest =
            serde_json::from_slice(&text).map_err(|error| bad(format!("{MANIFEST}: {error}")))?;
        if (manifest.layout, manifest.protocol) != (LAYOUT, guest::protocol::VERSION) {
            return Err(bad("the image belongs to another version of pausebed".to_owned()));
        }
        for name in [KERNEL, INITRAMFS] {
            let found = hash_file(&folder.join(name)).map_err(|error| bad(error.to_string()))?;
            if manifest.files.get(name) != Some(&found) {
                return Err(bad(format!("{name} has another SHA-256 than its manifest says")));
            }
        }
        Ok(Image { folder, manifest })
    }

    /// The least memory in MiB of a machine: that of the kernel, and twice the initial file system while it is unpacked.
    ///
    /// # Errors
    /// If the file is not there.
    pub fn memory_mib(&self) -> Result<u32, HostError> {
        let file = self.folder.join(INITRAMFS);
        let octets = fs::metadata(&file).map_err(HostError::io(file.display()))?.len();
        let mib = u32::try_from(octets >> 20).unwrap_or(u32::MAX / 4);
        Ok((KERNEL_MIB + 2 * mib).next_multiple_of(MEMORY_STEP_MIB))
    }

    /// A new manifest; the hashes are made from the files in `folder`.
    pub(crate) fn describe(
        folder: &Path,
        kernel: String,
        guestd: String,
        packages: Vec<String>,
    ) -> Result<Manifest, HostError> {
        let mut files = BTreeMap::new();
        for name in [KERNEL, INITRAMFS] {
            let path = folder.join(name);
            let hash = hash_file(&path).map_err(HostError::io(path.display()))?;
            files.insert(name.to_owned(), hash);
        }
        let protocol = guest::protocol::VERSION;
        let manifest = Manifest { layout: LAYOUT, protocol, kernel, guestd, packages, files };
        let text = serde_json::to_vec_pretty(&manifest).expect("it has string keys");
        let path = folder.join(MANIFEST);
        fs::write(&path, text).map_err(HostError::io(path.display()))?;
        Ok(manifest)
    }

    /// The links by which the image is found: always its kernel, and the default if it is one.
    pub(crate) fn publish(&self, is_default: bool) -> Result<(), HostError> {
        let images = cache()?.join("images");
        let target = self.folder.file_name().unwrap_or_default();
        let default = is_default.then(|| DEFAULT.to_owned());
        for link in [Some(link_of(&self.manifest.kernel)?), default].into_iter().flatten() {
            let fresh = images.join(format!(".{link}.{}", std::process::id()));
            // Left over from a process with the same number.
            let _ = fs::remove_file(&fresh);
            std::os::unix::fs::symlink(target, &fresh)
                .and_then(|()| fs::rename(&fresh, images.join(&link)))
                .map_err(HostError::io(format!("link {link}")))?;
        }
        Ok(())
    }
}

/// Removes images without a link, and what a build left behind that was ended. The caller has the lock of builds.
pub(crate) fn prune() -> Result<(), HostError> {
    let images = cache()?.join("images");
    let failed = || HostError::io(images.display());
    let entries = fs::read_dir(&images).map_err(failed())?;
    let paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    let linked: Vec<PathBuf> =
        paths.iter().filter_map(|path| Some(images.join(fs::read_link(path).ok()?))).collect();
    for path in
        paths.iter().filter(|path| path.is_dir() && !path.is_symlink() && !linked.contains(path))
    {
        fs::remove_dir_all(path).map_err(failed())?;
    }
    Ok(())
}

/// A key of a new image: the hash of everything that decides about its content.
pub(crate) fn key<'a>(parts: impl Iterator<Item = &'a str>) -> String {
    let mut hash = Sha256::new();
    hash.update(LAYOUT.to_le_bytes());
    for part in parts {
        hash.update(part);
        hash.update([0]);
    }
    hex(&hash.finalize())[..16].to_owned()
}

fn link_of(release: &str) -> Result<String, HostError> {
    let plain = |octet: u8| octet.is_ascii_alphanumeric() || b".+-~".contains(&octet);
    if release.is_empty() || release.starts_with('.') || !release.bytes().all(plain) {
        return Err(HostError::Invalid(format!("{release:?} is not a release of a kernel")));
    }
    Ok(format!("kernel-{}", release.trim_end_matches("-amd64")))
}

/// The folder `pausebed/vm` in the cache of this user. It is made with mode 0700 if it is absent.
///
/// # Errors
/// If neither XDG_CACHE_HOME nor HOME is set, or the folder belongs to or is open to others.
pub fn cache() -> Result<PathBuf, HostError> {
    let xdg =
        std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache"));
    let base = xdg.or_else(home);
    let base = base
        .ok_or_else(|| HostError::Invalid("neither XDG_CACHE_HOME nor HOME is set".to_owned()))?;
    let folder = base.join("pausebed").join("vm");
    let made = fs::create_dir_all(base.join("pausebed")).and_then(|()| private_folder(&folder));
    made.and_then(|()| private_folder(&folder.join("images")))
        .map_err(HostError::io(folder.display()))?;
    check_private(&folder)?;
    Ok(folder)
}

/// Makes a folder with mode 0700, unless it is there.
pub(crate) fn private_folder(folder: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => made,
    }
}

/// A temporary folder with mode 0700, below `parent` or in the usual place.
pub(crate) fn temporary_folder(parent: Option<&Path>) -> Result<tempfile::TempDir, HostError> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".pausebed").permissions(fs::Permissions::from_mode(0o700));
    let made = parent.map_or_else(|| builder.tempdir(), |parent| builder.tempdir_in(parent));
    made.map_err(HostError::io("temporary folder"))
}

/// Refuses a folder that another user could change or look into.
pub(crate) fn check_private(folder: &Path) -> Result<(), HostError> {
    let found = fs::symlink_metadata(folder).map_err(HostError::io(folder.display()))?;
    let ours = found.uid() == nix::unistd::geteuid().as_raw();
    if found.is_dir() && ours && found.mode() & 0o077 == 0 {
        return Ok(());
    }
    let text = format!("{} must be a folder of this user with mode 0700", folder.display());
    Err(HostError::Invalid(text))
}

/// SHA-256 of a file in hexadecimal digits.
pub(crate) fn hash_file(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 1 << 18];
    loop {
        let length = file.read(&mut buffer)?;
        if length == 0 {
            return Ok(hex(&hash.finalize()));
        }
        hash.update(&buffer[..length]);
    }
}

/// SHA-256 of octets in hexadecimal digits.
pub(crate) fn hash(octets: &[u8]) -> String {
    hex(&Sha256::digest(octets))
}

fn hex(octets: &[u8]) -> String {
    octets.iter().map(|octet| format!("{octet:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_file_makes_an_image_unusable() {
        let folder = tempfile::tempdir().unwrap();
        for name in [KERNEL, INITRAMFS] {
            fs::write(folder.path().join(name), name).unwrap();
        }
        Image::describe(folder.path(), "6.1".into(), String::new(), Vec::new()).unwrap();
        assert_eq!(Image::open(folder.path().into()).unwrap().manifest.kernel, "6.1");
        fs::write(folder.path().join(INITRAMFS), "other").unwrap();
        let error = Image::open(folder.path().into()).unwrap_err().to_string();
        assert!(error.contains("initramfs.cpio has another SHA-256"), "{error}");
        assert!(error.ends_with("pausebed vm build"), "{error}");
    }

    #[test]
    fn a_release_cannot_leave_the_folder() {
        assert_eq!(link_of("6.1.0-56-amd64").unwrap(), "kernel-6.1.0-56");
        assert_eq!(link_of("6.12.117+deb12").unwrap(), "kernel-6.12.117+deb12");
        for bad in ["", "..", "../x", "a/b", "a b"] {
            assert!(link_of(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_folder_that_is_open_to_others_is_refused() {
        let folder = temporary_folder(None).unwrap();
        assert!(check_private(folder.path()).is_ok());
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o750)).unwrap();
        assert!(check_private(folder.path()).is_err());
    }
}
