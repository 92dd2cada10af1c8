"""Writes the licence notices of all crates in the programs, from `cargo metadata`: docker/notices.py PACKAGE…"""

import json
import pathlib
import subprocess
import sys

# The files of a crate that state its licence.
PATTERNS = ["LICEN[CS]E*", "COPYING*", "NOTICE*", "UNLICENSE*"]


def metadata():
    """The packages by id, and of each the ids of those that are linked into it."""
    words = ["cargo", "metadata", "--locked", "--format-version", "1"]
    words += ["--filter-platform", "x86_64-unknown-linux-gnu"]
    found = json.loads(subprocess.run(words, check=True, stdout=subprocess.PIPE).stdout)
    packages = {package["id"]: package for package in found["packages"]}
    linked = {
        node["id"]: [
            dep["pkg"] for dep in node["deps"] if any(kind["kind"] is None for kind in dep["dep_kinds"])
        ]
        for node in found["resolve"]["nodes"]
    }
    return packages, linked


def reached(linked, ids):
    """Everything that is linked into `ids`."""
    seen, waiting = set(), list(ids)
    while waiting:
        one = waiting.pop()
        if one not in seen:
            seen.add(one)
            waiting += linked[one]
    return seen


def texts(package):
    """The licence texts of a package, those of one content once."""
    folder = pathlib.Path(package["manifest_path"]).parent
    files = {file for pattern in PATTERNS for file in folder.glob(pattern) if file.is_file()}
    return list(dict.fromkeys(file.read_text(errors="replace").strip() for file in sorted(files)))


def main():
    packages, linked = metadata()
    roots = [one for one, package in packages.items() if package["name"] in sys.argv[1:] and not package["source"]]
    foreign = [packages[one] for one in reached(linked, roots) if packages[one]["source"]]
    holders = {}
    print("Third-party crates in the programs of pausebed, with their licences. The texts follow, each once.\n")
    for package in sorted(foreign, key=lambda package: (package["name"], package["version"])):
        name = f"{package['name']} {package['version']}"
        print(f"  {name}: {package['license'] or 'see its text'}; {package['repository'] or 'no address'}")
        for text in texts(package):
            holders.setdefault(text, []).append(name)
    for text, names in holders.items():
        print(f"\n{'-' * 80}\n{', '.join(names)}:\n\n{text}")


main()
