//! The files of a package, in memory. Nothing of a package is written to a path that the package names.

use crate::HostError;
use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use tar::{Archive, EntryType};

/// Most octets that one package may hold, of the files that are wanted.
const LIMIT: u64 = 1 << 30;

/// A file of a package, or of an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Node {
    /// A regular file: permissions and content.
    File(u32, Vec<u8>),
    /// A symbolic link.
    Link(String),
    /// A folder.
    Folder(u32),
    /// A character device: permissions, major and minor number.
    Device(u32, u32, u32),
}

/// Files by their path without a leading slash. `bin`, `sbin`, `lib` and `lib64` are below `usr`.
#[derive(Clone, Debug, Default)]
pub struct Tree(pub BTreeMap<String, Node>);

impl Tree {
    /// Reads the files of a Debian package for which `wanted` is true.
    pub fn read(package: &Path, wanted: fn(&str) -> bool) -> Result<Tree, HostError> {
        let mut child = unpack(package)?;
        let output = child.stdout.take().expect("standard output was asked for");
        let tree = from_tar(output, wanted);
        let status = child.wait().map_err(HostError::io("dpkg-deb"))?;
        let what = || package.display().to_string();
        if !status.success() {
            return Err(HostError::Failed(format!("{}: dpkg-deb ends with {status}", what())));
        }
        tree.map_err(HostError::io(what()))
    }

    /// The content of a file; links are followed.
    pub fn content(&self, path: &str) -> Option<&[u8]> {
        const LINKS: usize = 8;
        let mut path = path.to_owned();
        for _ in 0..LINKS {
            match self.0.get(&path)? {
                Node::File(_, content) => return Some(content),
                Node::Link(target) => {
                    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
                    path = match target.strip_prefix('/') {
                        Some(target) => plain(target)?,
                        None => plain(&format!("{folder}/{target}"))?,
                    };
                }
                Node::Folder(_) | Node::Device(..) => return None,
            }
        }
        None
    }
}

#[expect(clippy::disallowed_methods, reason = "only this crate and launch start child processes")]
fn unpack(package: &Path) -> Result<std::process::Child, HostError> {
    let mut command = Command::new("dpkg-deb");
    command.arg("--fsys-tarfile").arg(package).stdin(Stdio::null()).stdout(Stdio::piped());
    command.spawn().map_err(HostError::io("dpkg-deb"))
}

/// Whether a file of a package of programs or libraries belongs into an image: no documents, headers, translations.
pub fn is_wanted(path: &str) -> bool {
    let never = [
        "usr/include/",
        "usr/src/",
        "usr/share/applications/",
        "usr/share/bash-completion/",
        "usr/share/bug/",
        "usr/share/doc/",
        "usr/share/i18n/",
        "usr/share/info/",
        "usr/share/lintian/",
        "usr/share/locale/",
        "usr/share/man/",
        "usr/lib/x86_64-linux-gnu/gconv/",
        "usr/lib/x86_64-linux-gnu/pkgconfig/",
    ];
    !path.ends_with(".a") && !never.iter().any(|folder| path.starts_with(folder))
}

fn from_tar(input: impl Read, wanted: fn(&str) -> bool) -> std::io::Result<Tree> {
    let mut tree = Tree::default();
    let mut archive = Archive::new(input);
    let mut left = LIMIT;
    for entry in archive.entries()? {
        let mut entry = entry?;
        let path = entry.path_bytes().into_owned();
        let Some(path) =
            std::str::from_utf8(&path).ok().and_then(plain).filter(|path| wanted(path))
        else {
            continue;
        };
        // Set-user-ID bits are of no use: everything in a machine runs as root.
        let mode = entry.header().mode()? & 0o777;
        let target =
            entry.link_name_bytes().and_then(|name| String::from_utf8(name.into_owned()).ok());
        let node = match (entry.header().entry_type(), target) {
            (EntryType::Regular | EntryType::Continuous, _) => {
                let length = entry.size();
                left = left
                    .checked_sub(length)
                    .ok_or_else(|| std::io::Error::other("the package is too large"))?;
                let mut content = Vec::new();
                entry.read_to_end(&mut content)?;
                Node::File(mode, content)
            }
            (EntryType::Symlink, Some(target)) => Node::Link(target),
            (EntryType::Link, Some(target)) => {
                match plain(&target).and_then(|target| tree.0.get(&target).cloned()) {
                    Some(node) => node,
                    None => continue,
                }
            }
            (EntryType::Directory, _) => Node::Folder(mode),
            _ => continue,
        };
        tree.0.insert(path, node);
    }
    // Reads to the end, so that dpkg-deb is not ended by a closed pipe.
    std::io::copy(&mut archive.into_inner(), &mut std::io::sink())?;
    Ok(tree)
}

/// A path without `.`, `..` and slashes at its ends, with the folders of programs and libraries merged into `usr`.
/// `None` if it is empty or leaves the root.
fn plain(path: &str) -> Option<String> {
    let mut parts = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            _ => parts.push(part),
        }
    }
    if ["bin", "sbin", "lib", "lib64"].contains(parts.first()?) {
        parts.insert(0, "usr");
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_packages_stay_below_the_root() {
        assert_eq!(plain("./bin/ip").as_deref(), Some("usr/bin/ip"));
        assert_eq!(plain("/usr/lib/../bin/x/").as_deref(), Some("usr/bin/x"));
        assert_eq!(plain("../../etc/passwd"), None);
        assert_eq!(plain("./"), None);
    }

    #[test]
    fn a_package_is_read_with_its_links() {
        let mut builder = tar::Builder::new(Vec::new());
        let mut add = |kind: EntryType, path: &str, target: &str, content: &[u8]| {
            let mut header = tar::Header::new_gnu();
            header.set_entry_type(kind);
            header.set_mode(0o4755);
            header.set_size(content.len() as u64);
            if target.is_empty() {
                builder.append_data(&mut header, path, content).unwrap();
            } else {
                builder.append_link(&mut header, path, target).unwrap();
            }
        };
        add(EntryType::Regular, "./lib/x86_64-linux-gnu/liba.so.1.2", "", b"elf");
        add(EntryType::Symlink, "./lib/x86_64-linux-gnu/liba.so.1", "liba.so.1.2", b"");
        add(EntryType::Symlink, "./lib64/ld.so", "/lib/x86_64-linux-gnu/liba.so.1", b"");
        add(EntryType::Link, "./usr/bin/b", "./lib/x86_64-linux-gnu/liba.so.1.2", b"");
        add(EntryType::Symlink, "./usr/bin/circle", "circle", b"");
        add(EntryType::Regular, "./usr/share/doc/a", "", b"text");
        let tree = from_tar(builder.into_inner().unwrap().as_slice(), is_wanted).unwrap();
        assert_eq!(tree.content("usr/lib64/ld.so"), Some(&b"elf"[..]));
        assert_eq!(tree.0.get("usr/bin/b"), Some(&Node::File(0o755, b"elf".to_vec())));
        assert_eq!(tree.content("usr/bin/circle"), None);
        assert!(!tree.0.contains_key("usr/share/doc/a"));
    }
}
