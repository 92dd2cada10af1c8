"""What is wrong with a scenario, key by key."""

from __future__ import annotations

from typing import NamedTuple

from ._native import Error


class Problem(NamedTuple):
    """One fault, or a warning."""

    line: int
    """The line of the file; 0 for a value that was set beside it."""
    key: str
    message: str
    hint: str

    def __str__(self) -> str:
        place = f"line {self.line}: " if self.line else ""
        hint = f" ({self.hint})" if self.hint else ""
        return f"{place}{self.key}: {self.message}{hint}"


class ScenarioError(Error):
    """A scenario that cannot be run. `problems` lists its faults in the order of the file."""

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__("\n".join(map(str, problems)))
        self.problems = problems
