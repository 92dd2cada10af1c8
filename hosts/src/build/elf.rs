//! What an ELF file says about itself: libraries it needs, facts of a kernel module.

use goblin::elf::Elf;
use goblin::elf::program_header::PT_LOAD;

/// Names of the shared libraries that a program or library needs; none if it is not an ELF file.
pub fn libraries(file: &[u8]) -> Vec<String> {
    let is_elf = file.starts_with(b"\x7fELF");
    let parsed = is_elf.then(|| Elf::parse(file).ok()).flatten();
    parsed
        .map(|elf| elf.libraries.iter().map(|name| (*name).to_owned()).collect())
        .unwrap_or_default()
}

/// The entries `key=value` of a kernel module's section `.modinfo`.
pub fn module_facts(file: &[u8]) -> Option<Vec<(String, String)>> {
    let elf = Elf::parse(file).ok()?;
    let section = elf
        .section_headers
        .iter()
        .find(|section| elf.shdr_strtab.get_at(section.sh_name) == Some(".modinfo"))?;
    let content = file.get(section.file_range()?)?;
    let entries =
        content.split(|octet| *octet == 0).filter_map(|entry| std::str::from_utf8(entry).ok());
    let pair = |(key, value): (&str, &str)| (key.to_owned(), value.to_owned());
    Some(entries.filter_map(|entry| entry.split_once('=')).map(pair).collect())
}

/// A program without what follows its loaded segments: symbols, debugging information, section headers.
pub fn stripped(program: &[u8]) -> Vec<u8> {
    let end = Elf::parse(program).ok().and_then(|elf| {
        let loaded = elf.program_headers.iter().filter(|header| header.p_type == PT_LOAD);
        loaded.map(|header| header.file_range().end).max()
    });
    let Some(end) = end.filter(|end| (64..=program.len()).contains(end)) else {
        return program.to_vec();
    };
    let mut short = program[..end].to_vec();
    // e_shoff, then e_shnum and e_shstrndx of a 64-bit header (System V ABI, chapter 4).
    short[0x28..0x30].fill(0);
    short[0x3c..0x40].fill(0);
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_program_needs_libc_with_and_without_its_symbols() {
        let own = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let short = stripped(&own);
        assert!(short.len() < own.len());
        for file in [&own, &short] {
            assert!(libraries(file).iter().any(|name| name == "libc.so.6"));
        }
    }

    #[test]
    fn other_files_are_left_alone() {
        assert_eq!(libraries(b"#!/bin/sh\n"), [""; 0]);
        assert_eq!(libraries(b"\x7fELF"), [""; 0]);
        assert_eq!(stripped(b"text"), b"text");
        assert_eq!(module_facts(b"text"), None);
    }
}
