//! `pausebed vm build`: an image from packages of the distribution. Nothing is installed, and no right is needed.

use crate::HostError;
use crate::image::{self, INITRAMFS, Image, KERNEL};
use crate::vm;
use apt::Apt;
use emulation::clock::Stopwatch;
use nix::fcntl::{Flock, FlockArg};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use tree::Tree;

mod apt;
mod compression;
mod cpio;
mod elf;
mod initramfs;
mod kernel;
mod modules;
mod tree;

/// Packages of every image. Their libraries come as dependencies.
pub const PACKAGES: &[&str] = &[
    "busybox-static",
    "ethtool",
    "ibverbs-providers",
    "ibverbs-utils",
    "iperf3",
    "iproute2",
    "iputils-ping",
    "libc6",
    "libgcc-s1",
    "libibverbs1",
    "librdmacm1",
    "perftest",
    "rdmacm-utils",
    "tcpdump",
];
/// The package that depends on the distribution's newest kernel.
const NEWEST_KERNEL: &str = "linux-image-amd64";
/// Most packages that may be added by name.
const ADDITIONS: usize = 64;

/// What to build.
#[derive(Clone, Debug)]
pub struct Order {
    /// A package file with a kernel, or a release such as `6.1.0-50`; the newest of the distribution if absent.
    pub kernel: Option<String>,
    /// Packages besides [`PACKAGES`].
    pub additions: Vec<String>,
    /// The program `guestd`.
    pub guestd: PathBuf,
}

/// What was built.
#[derive(Debug)]
pub struct Built {
    /// The image.
    pub image: Image,
    /// Whether it was there already.
    pub was_cached: bool,
    /// How QEMU executes it.
    pub accelerator: vm::Accelerator,
}

/// Where the kernel comes from.
enum KernelSource {
    Package(String),
    File(PathBuf),
}

/// Builds an image, or finds it in the cache; saves the state of a started machine, so that machines start fast.
/// `progress` is called with a line at each step.
///
/// # Errors
/// If a program is missing, a package cannot be had, or the machine does not start.
pub fn build(order: &Order, progress: &mut dyn FnMut(&str)) -> Result<Built, HostError> {
    vm::Qemu::find()?;
    for addition in &order.additions {
        apt::check_name(addition)?;
    }
    if order.additions.len() > ADDITIONS {
        return Err(HostError::Invalid(format!("at most {ADDITIONS} packages can be added")));
    }
    let guestd = fs::read(&order.guestd).map_err(HostError::io(order.guestd.display()))?;
    let source = kernel_source(order.kernel.as_deref())?;
    let cache = image::cache()?;
    let lock = File::create(cache.join("lock")).map_err(HostError::io(cache.display()))?;
    let lock = Flock::lock(lock, FlockArg::LockExclusiveNonblock);
    let _lock = lock.map_err(|_| HostError::Failed("another build is in progress".to_owned()))?;
    let apt = Apt::new(&cache)?;
    progress("reading the lists of packages");
    apt.update()?;
    let (base, all) = resolve(&apt, &source, &order.additions)?;
    let is_default = order.kernel.is_none();
    let guestd_hash = image::hash(&guestd);
    let mut parts: Vec<String> = all.iter().map(|package| package.identity()).collect();
    if let KernelSource::File(file) = &source {
        parts.push(image::hash_file(file).map_err(HostError::io(file.display()))?);
    }
    parts.extend([guestd_hash.clone(), modules::wanted()]);
    let parts = parts.iter().map(String::as_str);
    let folder = cache.join("images").join(image::key(parts));
    let cached = Image::open(folder.clone()).ok();
    let was_cached = cached.is_some();
    let image = match cached {
        Some(image) => image,
        None => {
            let octets: u64 = all.iter().map(|package| package.octets).sum();
            progress(&format!("{} packages, {} MB", all.len(), octets / 1_000_000));
            let mut names: Vec<&str> = all.iter().map(|package| package.name.as_str()).collect();
            names.sort_unstable();
            apt.download(&names)?;
            let content =
                Content { base: &base, all: &all, source: &source, guestd: &guestd, order };
            make(&content, &apt, &folder, &guestd_hash, progress)?
        }
    };
    apt.discard_packages();
    let watch = Stopwatch::start();
    let accelerator = vm::prepare(&image, image.memory_mib()?, progress)?;
    progress(&format!("the state is there after {:.1} s ({accelerator})", watch.seconds()));
    image.publish(is_default)?;
    image::prune()?;
    Ok(Built { image, was_cached, accelerator })
}

fn kernel_source(kernel: Option<&str>) -> Result<KernelSource, HostError> {
    let Some(text) = kernel else { return Ok(KernelSource::Package(NEWEST_KERNEL.to_owned())) };
    if text.ends_with(".deb") {
        let path = fs::canonicalize(text).map_err(HostError::io(text))?;
        return Ok(KernelSource::File(path));
    }
    let name = format!("linux-image-{}-amd64", text.trim_end_matches("-amd64"));
    apt::check_name(&name)?;
    Ok(KernelSource::Package(name))
}

/// The packages of every image, and those together with the additions; both with dependencies.
fn resolve(
    apt: &Apt,
    source: &KernelSource,
    additions: &[String],
) -> Result<(Vec<apt::Package>, Vec<apt::Package>), HostError> {
    let mut names = PACKAGES.to_vec();
    if let KernelSource::Package(name) = source {
        names.push(name);
    }
    let base = apt.resolve(&names)?;
    names.extend(additions.iter().map(String::as_str));
    let all = if additions.is_empty() { base.clone() } else { apt.resolve(&names)? };
    Ok((base, all))
}

struct Content<'a> {
    base: &'a [apt::Package],
    all: &'a [apt::Package],
    source: &'a KernelSource,
    guestd: &'a [u8],
    order: &'a Order,
}

/// Makes the files of an image in a temporary folder, which gets its name at the end.
fn make(
    content: &Content<'_>,
    apt: &Apt,
    folder: &Path,
    guestd_hash: &str,
    progress: &mut dyn FnMut(&str),
) -> Result<Image, HostError> {
    let parent = folder.parent().expect("an image is in the folder of images");
    let fresh = image::temporary_folder(Some(parent))?;
    let mut packages: Vec<String> =
        content.all.iter().map(|package| package.file.clone()).collect();
    let kernel_file = match content.source {
        KernelSource::File(path) => {
            packages.push(path.file_name().unwrap_or_default().to_string_lossy().into_owned());
            path.clone()
        }
        KernelSource::Package(_) => {
            let has_kernel = |name: &str| name.starts_with("linux-image-") && name != NEWEST_KERNEL;
            let package = content.all.iter().find(|package| has_kernel(&package.name));
            let missing = || HostError::Failed("the packages contain no kernel".to_owned());
            apt.file(package.ok_or_else(missing)?)
        }
    };
    progress("unpacking the kernel");
    let kernel = kernel::read(&kernel_file)?;
    fs::write(fresh.path().join(KERNEL), &kernel.image).map_err(HostError::io(KERNEL))?;
    progress(&format!("kernel {} with {} modules", kernel.release, kernel.modules.len()));
    let mut pool = Vec::new();
    for package in content.all.iter().filter(|package| !package.name.starts_with("linux-image-")) {
        pool.push((package.name.clone(), Tree::read(&apt.file(package), tree::is_wanted)?));
    }
    let base: Vec<&str> = content.base.iter().map(|package| package.name.as_str()).collect();
    let whole = |name: &str| PACKAGES.contains(&name) || !base.contains(&name);
    let root = initramfs::assemble(&pool, &whole, &kernel, content.guestd)?;
    let archive = cpio::archive(&root);
    progress(&format!("initial file system of {} MB", archive.len() / 1_000_000));
    fs::write(fresh.path().join(INITRAMFS), archive).map_err(HostError::io(INITRAMFS))?;
    packages.extend(content.order.additions.iter().map(|name| format!("added: {name}")));
    Image::describe(fresh.path(), kernel.release, guestd_hash.to_owned(), packages)?;
    // What is there has not passed its check, or another process has just made the same.
    let _ = fs::remove_dir_all(folder);
    fs::rename(fresh.path(), folder).map_err(HostError::io(folder.display()))?;
    Image::open(folder.to_owned())
}
