"""Scenario files as trees of keys."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any, Iterator, Mapping, Union

from . import _native
from .errors import Problem, ScenarioError

PathLike = Union[str, "os.PathLike[str]"]


class Scenario:
    """A scenario file. Keys are written as in `--set`: `scenario["scheme.ccti_increase"] = 4`.

    Tables are mappings, repeated tables (`[[traffic]]`) are lists of mappings.
    """

    def __init__(self, name: str, **keys: Any) -> None:
        self.keys: dict[str, Any] = {"schema": 1, "name": name, **keys}

    @classmethod
    def load(cls, file: PathLike) -> Scenario:
        """Reads a file with the files that it varies (`base`). Its comments are lost."""
        loaded = cls("")
        loaded.keys = json.loads(_native.keys(resolved(file)))
        return loaded

    def __getitem__(self, key: str) -> Any:
        found: Any = self.keys
        for name in key.split("."):
            found = found[name]
        return found

    def __setitem__(self, key: str, value: Any) -> None:
        *parents, last = key.split(".")
        table = self.keys
        for name in parents:
            table = table.setdefault(name, {})
        table[last] = value

    @property
    def text(self) -> str:
        """The file."""
        return "\n".join(_lines(self.keys)) + "\n"

    def problems(self) -> list[Problem]:
        """What is wrong with it; empty if it can be run."""
        return [Problem(*row) for row in _native.problems(self.text, [])[0]]

    def warnings(self) -> list[Problem]:
        """What is legal and probably not meant, of a scenario that can be run."""
        return [Problem(*row) for row in _native.problems(self.text, [])[1]]

    def check(self) -> None:
        """Raises ScenarioError if anything is wrong."""
        problems = self.problems()
        if problems:
            raise ScenarioError(problems)

    def save(self, file: PathLike) -> None:
        """Writes the file."""
        Path(file).write_text(self.text, encoding="utf-8")


def resolved(file: PathLike) -> str:
    """The text of a file with what it takes from the files that it varies; raises ScenarioError."""
    faults, text = _native.resolved(Path(file).read_text(encoding="utf-8"), file)
    if faults:
        raise ScenarioError([Problem(*row) for row in faults])
    return text


def schema() -> dict[str, Any]:
    """The JSON Schema of a scenario file."""
    return json.loads(_native.schema())


def overrides(values: Mapping[str, Any] | None) -> list[str]:
    """Keys with values as the `--set KEY=VALUE` of the program takes them."""
    return [f"{key}={_value(value)}" for key, value in (values or {}).items()]


def _name(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else json.dumps(key)


def _value(value: Any) -> str:
    """A value of TOML on one line."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, Mapping):
        pairs = (f"{_name(key)} = {_value(item)}" for key, item in value.items())
        return "{ " + ", ".join(pairs) + " }"
    if isinstance(value, (list, tuple, range)):
        return "[" + ", ".join(map(_value, value)) + "]"
    # JSON escapes what TOML escapes, but for one character.
    return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")


def _is_tables(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and bool(value) and all(isinstance(item, Mapping) for item in value)


def _lines(keys: Mapping[str, Any]) -> Iterator[str]:
    """The lines of a file: keys before tables, and tables one level deep."""
    plain = [key for key, value in keys.items() if not isinstance(value, Mapping) and not _is_tables(value)]
    for key in plain:
        yield f"{_name(key)} = {_value(keys[key])}"
    for key in (key for key in keys if key not in plain):
        several = _is_tables(keys[key])
        for table in keys[key] if several else [keys[key]]:
            yield ""
            yield f"[[{_name(key)}]]" if several else f"[{_name(key)}]"
            yield from (f"{_name(inner)} = {_value(value)}" for inner, value in table.items())
