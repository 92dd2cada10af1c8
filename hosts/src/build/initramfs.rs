//! The initial file system: packages named for the image whole, of the others the libraries that are needed.

use super::elf::{libraries, stripped};
use super::kernel::Kernel;
use super::tree::{Node, Tree};
use crate::HostError;
use std::collections::BTreeMap;

/// Where Debian keeps libraries of this architecture.
const LIBRARIES: &str = "usr/lib/x86_64-linux-gnu/";
/// The dynamic linker, by the path that programs state for it.
const LINKER: &str = "usr/lib64/ld-linux-x86-64.so.2";
/// Folders that exist in every image.
const FOLDERS: &[&str] = &[
    "dev/pts",
    "dev/shm",
    "etc",
    "mnt",
    "opt",
    "proc",
    "root",
    "run",
    "sys",
    "tmp",
    "usr/local/bin",
    "var",
];
/// Small files of every image.
const FILES: &[(&str, &str)] = &[
    ("etc/group", "root:x:0:\n"),
    ("etc/hosts", "127.0.0.1 localhost\n"),
    ("etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files\n"),
    ("etc/passwd", "root:x:0:0:root:/root:/bin/sh\n"),
    ("etc/resolv.conf", ""),
];
/// Links of every image. A program of a package takes the place of a link.
const LINKS: &[(&str, &str)] = &[
    ("bin", "usr/bin"),
    ("lib", "usr/lib"),
    ("lib64", "usr/lib64"),
    ("sbin", "usr/sbin"),
    ("usr/bin/sh", "busybox"),
    ("usr/sbin/modprobe", "../bin/busybox"),
    ("var/run", "../run"),
];

/// Puts an image together. `whole` tells which packages of `pool` are taken with all their files.
pub fn assemble(
    pool: &[(String, Tree)],
    whole: &dyn Fn(&str) -> bool,
    kernel: &Kernel,
    guestd: &[u8],
) -> Result<Tree, HostError> {
    let mut root = BTreeMap::new();
    for (name, tree) in pool
        .iter()
        .filter(|(name, _)| whole(name) && !["libc6", "libgcc-s1"].contains(&name.as_str()))
    {
        let wanted = tree
            .0
            .iter()
            .filter(|(path, _)| name != "ibverbs-providers" || is_software_device(path));
        root.extend(wanted.map(|(path, node)| (path.clone(), node.clone())));
    }
    root.extend(FOLDERS.iter().map(|path| ((*path).to_owned(), Node::Folder(0o755))));
    for (path, text) in FILES {
        root.insert((*path).to_owned(), Node::File(0o644, text.as_bytes().to_vec()));
    }
    for (path, target) in LINKS {
        root.entry((*path).to_owned()).or_insert_with(|| Node::Link((*target).to_owned()));
    }
    root.insert("dev/console".to_owned(), Node::Device(0o600, 5, 1));
    root.insert("dev/null".to_owned(), Node::Device(0o666, 1, 3));
    root.insert("init".to_owned(), Node::File(0o755, stripped(guestd)));
    let mut root = Tree(root);
    add_modules(&mut root, kernel);
    add_libraries(&mut root, pool)?;
    Ok(root)
}

/// Of the user-space drivers a machine needs those of devices without hardware.
fn is_software_device(path: &str) -> bool {
    let file = path.rsplit('/').next().unwrap_or_default();
    ["librxe", "rxe.", "libsiw", "siw."].iter().any(|name| file.starts_with(name))
}

fn add_modules(root: &mut Tree, kernel: &Kernel) {
    let base = format!("usr/lib/modules/{}", kernel.release);
    let mut add = |path: String, content: Vec<u8>| root.0.insert(path, Node::File(0o644, content));
    let mut loaded = String::new();
    for (number, (path, content)) in kernel.modules.files.iter().enumerate() {
        if number < kernel.modules.loaded {
            loaded.push_str(&format!("/{base}/{path}\n"));
        }
        add(format!("{base}/{path}"), content.clone());
    }
    add(format!("{base}/modules.dep"), kernel.modules.dependencies.clone().into_bytes());
    add(format!("{base}/modules.alias"), kernel.modules.aliases.clone().into_bytes());
    add("etc/pausebed/modules".to_owned(), loaded.into_bytes());
}

/// Adds the libraries that programs and libraries of the image need, until none is missing.
fn add_libraries(root: &mut Tree, pool: &[(String, Tree)]) -> Result<(), HostError> {
    let find = |path: &str| pool.iter().find_map(|(_, tree)| tree.content(path));
    let missing = |what: &str| HostError::Failed(format!("no package contains {what}"));
    let linker = find(LINKER).or_else(|| find(&format!("{LIBRARIES}ld-linux-x86-64.so.2")));
    let linker = linker.ok_or_else(|| missing(LINKER))?.to_vec();
    root.0.insert(LINKER.to_owned(), Node::File(0o755, linker));
    let needed = |(path, node): (&String, &Node)| match node {
        // A plug-in may need what its package only recommends; it is then of no use, as on any such system.
        Node::File(_, content) => {
            let is_program = !path.starts_with("usr/lib");
            libraries(content).into_iter().map(|name| (name, is_program)).collect()
        }
        _ => Vec::new(),
    };
    let mut open: Vec<(String, bool)> = root.0.iter().flat_map(needed).collect();
    // Looked up by the C library at run time.
    open.push(("libgcc_s.so.1".to_owned(), true));
    while let Some((name, is_required)) = open.pop() {
        let path = format!("{LIBRARIES}{name}");
        if name.contains('/') || name.starts_with("ld-linux") || root.0.contains_key(&path) {
            continue;
        }
        // A library outside the usual folder is found by the path that its user states.
        if let Some(content) = find(&path).or_else(|| find(&format!("usr/lib/{name}"))) {
            open.extend(libraries(content).into_iter().map(|name| (name, is_required)));
            root.0.insert(path, Node::File(0o755, content.to_vec()));
        } else if is_required && !root.0.keys().any(|path| path.ends_with(&format!("/{name}"))) {
            return Err(missing(&name));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_has_the_libraries_of_its_programs() {
        let own = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let needed = libraries(&own);
        let file = |content: &[u8]| Node::File(0o755, content.to_vec());
        let mut libc = Tree::default();
        libc.0.insert(LINKER.to_owned(), file(b"linker"));
        for name in needed.iter().chain([&"libgcc_s.so.1".to_owned()]) {
            libc.0.insert(format!("{LIBRARIES}{name}.9"), file(b"library"));
            libc.0.insert(format!("{LIBRARIES}{name}"), Node::Link(format!("{name}.9")));
        }
        let tool = Tree([("usr/bin/tool".to_owned(), file(&own))].into());
        let pool = [("libc6".to_owned(), libc), ("tool".to_owned(), tool)];
        let kernel =
            Kernel { release: "6.1".into(), image: Vec::new(), modules: Default::default() };
        let root = assemble(&pool, &|name| name == "tool", &kernel, b"guestd").unwrap();
        for name in &needed {
            assert_eq!(
                root.content(&format!("{LIBRARIES}{name}")).is_some(),
                !name.starts_with("ld-linux")
            );
            assert!(!root.0.contains_key(&format!("{LIBRARIES}{name}.9")));
        }
        assert_eq!(root.content("init"), Some(&b"guestd"[..]));
        let error = assemble(&pool[1..], &|_| true, &kernel, b"").unwrap_err();
        assert!(error.to_string().starts_with("no package contains"));
    }
}
