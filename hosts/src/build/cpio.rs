//! The archive of an initial file system: the `newc` format of cpio (Linux, Documentation/driver-api/early-userspace/
//! buffer-format.rst).

use super::tree::{Node, Tree};
use std::collections::BTreeSet;

const FOLDER: u32 = 0o040_000;
const CHARACTER_DEVICE: u32 = 0o020_000;
const REGULAR: u32 = 0o100_000;
const LINK: u32 = 0o120_000;
/// Permissions of folders that no package states.
const FOLDER_MODE: u32 = 0o755;

/// Writes all files. Parents come before their children; everything belongs to root.
pub fn archive(tree: &Tree) -> Vec<u8> {
    let mut writer = Writer { output: Vec::new(), inode: 1 };
    let mut made = BTreeSet::new();
    for (path, node) in &tree.0 {
        for (at, _) in path.match_indices('/') {
            let parent = &path[..at];
            if !tree.0.contains_key(parent) && made.insert(parent) {
                writer.entry(parent, FOLDER | FOLDER_MODE, (0, 0), &[]);
            }
        }
        match node {
            Node::Folder(mode) => writer.entry(path, FOLDER | mode, (0, 0), &[]),
            Node::File(mode, content) => writer.entry(path, REGULAR | mode, (0, 0), content),
            Node::Link(target) => writer.entry(path, LINK | 0o777, (0, 0), target.as_bytes()),
            Node::Device(mode, major, minor) => {
                writer.entry(path, CHARACTER_DEVICE | mode, (*major, *minor), &[]);
            }
        }
    }
    writer.entry("TRAILER!!!", 0, (0, 0), &[]);
    writer.output
}

struct Writer {
    output: Vec<u8>,
    inode: u32,
}

impl Writer {
    fn entry(&mut self, path: &str, mode: u32, (major, minor): (u32, u32), content: &[u8]) {
        let length = u32::try_from(content.len()).expect("files of packages are below 1 GiB");
        let name = path.len() as u32 + 1;
        // ino, mode, uid, gid, nlink, mtime, filesize, devmajor, devminor, rdevmajor, rdevminor, namesize, check
        let fields = [self.inode, mode, 0, 0, 1, 0, length, 0, 0, major, minor, name, 0];
        self.inode += 1;
        self.output.extend_from_slice(b"070701");
        for field in fields {
            self.output.extend_from_slice(format!("{field:08X}").as_bytes());
        }
        self.output.extend_from_slice(path.as_bytes());
        self.output.push(0);
        self.pad();
        self.output.extend_from_slice(content);
        self.pad();
    }

    fn pad(&mut self) {
        self.output.resize(self.output.len().next_multiple_of(4), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_has_the_layout_of_newc() {
        let tree = Tree([("a/b".to_owned(), Node::File(0o644, b"hello".to_vec()))].into());
        let bytes = archive(&tree);
        let folder = "070701000000010000 41ED".replace(' ', "")
            + &"0".repeat(16)
            + "00000001"
            + &"0".repeat(48)
            + "0000000200000000";
        assert_eq!(std::str::from_utf8(&bytes[..110]).unwrap(), folder);
        assert_eq!(&bytes[110..112], b"a\0");
        assert_eq!(&bytes[112..118], b"070701");
        let file = &bytes[112..];
        assert_eq!(&file[14..22], b"000081A4");
        assert_eq!(&file[54..62], b"00000005");
        assert_eq!(&file[110..124], b"a/b\0\0\0hello\0\0\0");
        assert_eq!(&file[124..130], b"070701");
        assert!(bytes.windows(11).any(|window| window == b"TRAILER!!!\0"));
        assert_eq!(bytes.len() % 4, 0);
    }

    #[test]
    fn devices_are_entries_and_need_no_right() {
        let tree = Tree([("dev/console".to_owned(), Node::Device(0o600, 5, 1))].into());
        let text = String::from_utf8(archive(&tree)).unwrap();
        let entry = &text[text.find("dev/console").unwrap() - 110..];
        assert_eq!(&entry[14..22], "00002180");
        assert_eq!(&entry[78..94], "0000000500000001");
    }

    #[test]
    fn parents_come_first_and_once() {
        let file = || Node::File(0o644, Vec::new());
        let tree = Tree(
            [
                ("a/b/c".to_owned(), file()),
                ("a/b/d".to_owned(), file()),
                ("a-b/c".to_owned(), file()),
            ]
            .into(),
        );
        let text = String::from_utf8(archive(&tree)).unwrap();
        let at = |name: &str| text.find(&format!("{name}\0")).unwrap();
        assert!(at("a") < at("a/b") && at("a/b") < at("a/b/c") && at("a-b") < at("a-b/c"));
        assert_eq!(text.matches("070701").count(), 3 + 3 + 1);
    }
}
