//! apt with a state of its own: it reads the sources and keys of the system, and writes only below the cache.
//!
//! apt checks the signatures of the lists and the hashes of the packages. It resolves dependencies against a list of
//! installed packages that names only what an image never needs.

use crate::HostError;
use crate::image::private_folder;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Packages that others depend on for their installation, which does not take place.
const NOT_NEEDED: &[&str] = &[
    "adduser",
    "debconf",
    "dpkg",
    "init-system-helpers",
    "initramfs-tools",
    "kmod",
    "linux-base",
    "passwd",
    "perl",
    "perl-base",
    "ucf",
];
/// Most packages of an image.
const PACKAGES: usize = 1_000;

/// A package file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Package {
    /// Its name.
    pub name: String,
    /// The name of its file, with version and architecture.
    pub file: String,
    /// Its length.
    pub octets: u64,
    /// Its hash with the name of the algorithm, as apt prints it; may be empty.
    pub hash: String,
}

impl Package {
    /// What decides about its content.
    pub fn identity(&self) -> String {
        format!("{} {} {}", self.file, self.octets, self.hash)
    }
}

/// apt with its own state.
#[derive(Debug)]
pub struct Apt {
    folder: PathBuf,
}

impl Apt {
    /// Makes the folders of apt's state below `cache`.
    pub fn new(cache: &Path) -> Result<Apt, HostError> {
        let folder = cache.join("apt");
        let parts = [
            "",
            "state",
            "state/lists",
            "state/lists/partial",
            "cache",
            "cache/archives",
            "cache/archives/partial",
            "cache/empty",
            "cache/empty/partial",
        ];
        for part in parts {
            private_folder(&folder.join(part)).map_err(HostError::io(folder.display()))?;
        }
        let status: String = NOT_NEEDED.iter().map(|name| installed(name)).collect();
        fs::write(folder.join("state/status"), status).map_err(HostError::io(folder.display()))?;
        Ok(Apt { folder })
    }

    /// Fetches the lists of packages.
    pub fn update(&self) -> Result<(), HostError> {
        self.get(&["update"]).map(drop)
    }

    /// The packages with these names and all that they depend on.
    pub fn resolve(&self, names: &[&str]) -> Result<Vec<Package>, HostError> {
        // Packages that are there already would be left out.
        let empty = ["-o", "Dir::Cache::archives=empty", "--print-uris", "install", "--"];
        let arguments = [&empty, names].concat();
        let output = self.get(&arguments)?;
        let text = String::from_utf8_lossy(&output.stdout);
        let packages: Vec<Package> = text.lines().filter_map(parse).collect();
        if packages.is_empty() || packages.len() > PACKAGES {
            return Err(HostError::Failed(format!("apt-get names {} packages", packages.len())));
        }
        // apt-get would also take a name as a regular expression, or for that of a virtual package.
        let is_there = |name: &&&str| packages.iter().any(|package| package.name == **name);
        match names.iter().find(|name| !is_there(name)) {
            Some(name) => Err(HostError::Failed(format!("there is no package {name}"))),
            None => Ok(packages),
        }
    }

    /// Fetches the packages with these names and all that they depend on; apt checks their hashes.
    pub fn download(&self, names: &[&str]) -> Result<(), HostError> {
        self.get(&[&["--download-only", "install", "--"], names].concat()).map(drop)
    }

    /// The file of a package that was downloaded.
    pub fn file(&self, package: &Package) -> PathBuf {
        self.folder.join("cache/archives").join(&package.file)
    }

    /// Removes downloaded packages, which an image needs no longer.
    pub fn discard_packages(&self) {
        // What remains is used or removed by the next build.
        let _ = self.get(&["clean"]);
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "only this crate and launch start child processes"
    )]
    fn get(&self, arguments: &[&str]) -> Result<Output, HostError> {
        let mut command = Command::new("apt-get");
        let own = |key: &str, part: &str| {
            let mut option = std::ffi::OsString::from(format!("{key}="));
            option.push(self.folder.join(part));
            option
        };
        for (key, part) in [
            ("Dir::State", "state"),
            ("Dir::State::status", "state/status"),
            ("Dir::Cache", "cache"),
        ] {
            command.arg("-o").arg(own(key, part));
        }
        let options = [
            "Dir::State::extended_states=extended_states",
            "Dir::Cache::pkgcache=pkgcache.bin",
            "Dir::Cache::srcpkgcache=srcpkgcache.bin",
            "APT::Sandbox::User=",
            "APT::Architecture=amd64",
            "APT::Install-Recommends=false",
            "APT::Install-Suggests=false",
            "APT::Get::AllowUnauthenticated=false",
            "Acquire::Languages=none",
        ];
        for option in options {
            command.arg("-o").arg(option);
        }
        command.args(["--yes", "-q"]).args(arguments).stdin(Stdio::null()).env("LC_ALL", "C.UTF-8");
        let output = command.output().map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => HostError::Missing {
                program: "apt-get",
                hint: "images are built from packages of Debian or Ubuntu, on such a system",
            },
            _ => HostError::Io { what: "apt-get".to_owned(), source: error },
        })?;
        if output.status.success() {
            return Ok(output);
        }
        let text = String::from_utf8_lossy(&output.stderr);
        let lines: Vec<&str> = text.lines().rev().take(8).collect();
        let end: Vec<&str> = lines.into_iter().rev().collect();
        Err(HostError::Failed(format!("apt-get fails:\n{}", end.join("\n"))))
    }
}

/// A name of a package as Debian's policy defines it (5.6.1), so that it is not an option and no path.
pub fn check_name(name: &str) -> Result<(), HostError> {
    let plain = |octet: u8| octet.is_ascii_lowercase() || octet.is_ascii_digit();
    let first = name.bytes().next().is_some_and(plain);
    // apt-get reads `name-` as a removal and `name+` as an installation.
    let last = name.bytes().last().is_some_and(plain);
    let rest = name.bytes().all(|octet| plain(octet) || b"+-.".contains(&octet));
    if first && last && rest && (2..=128).contains(&name.len()) {
        return Ok(());
    }
    Err(HostError::Invalid(format!("{name:?} is not a name of a package")))
}

/// A stanza of the list of installed packages.
fn installed(name: &str) -> String {
    let provides = match name {
        "debconf" => "Provides: debconf-2.0\n",
        "initramfs-tools" => "Provides: linux-initramfs-tool\n",
        _ => "",
    };
    format!(
        "Package: {name}\nStatus: install ok installed\nVersion: 9999\nArchitecture: all\nMulti-Arch: foreign\n\
         Maintainer: none\n{provides}Description: not needed in an image\n\n"
    )
}

/// A line of `--print-uris`: `'URI' FILE LENGTH HASH`. The file name may not leave its folder.
fn parse(line: &str) -> Option<Package> {
    let rest = line.strip_prefix('\'')?.split_once("' ")?.1;
    let mut words = rest.split(' ');
    let (file, octets) = (words.next()?, words.next()?.parse().ok()?);
    let (name, _) = file.split_once('_')?;
    let good = file.ends_with(".deb") && !file.contains('/') && check_name(name).is_ok();
    let hash = words.next().unwrap_or_default().to_owned();
    good.then(|| Package { name: name.to_owned(), file: file.to_owned(), octets, hash })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_apt_name_package_files() {
        let line = "'http://example.org/z/zlib1g_1.2_amd64.deb' zlib1g_1%3a1.2.13_amd64.deb 86684 MD5Sum:ec42";
        let expected = Package {
            name: "zlib1g".to_owned(),
            file: "zlib1g_1%3a1.2.13_amd64.deb".to_owned(),
            octets: 86_684,
            hash: "MD5Sum:ec42".to_owned(),
        };
        assert_eq!(parse(line), Some(expected));
        let without_hash = parse("'http://x/a' libssl3_3.0.22_amd64.deb 2039888 ").map(|p| p.hash);
        assert_eq!(without_hash.as_deref(), Some(""));
        for bad in
            ["Reading package lists...", "'http://x/a' ../a_1.deb 5 ", "'http://x/a' a_1.deb five "]
        {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_name_of_a_package_is_no_option_and_no_path() {
        assert!(check_name("linux-image-6.12.117+deb12-amd64").is_ok());
        for bad in
            ["", "-y", "a", "foo-", "foo+", "a/b", "../x", "A", "a b", "a=1", "a;b", "--help"]
        {
            assert!(check_name(bad).is_err(), "{bad}");
        }
    }
}
