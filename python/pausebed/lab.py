"""A lab as a context manager, by the program pausebed."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any, Mapping

from . import program
from .runs import Source
from .scenario import Scenario, overrides


class Lab:
    """A lab that is up inside a `with` block.

    with pausebed.Lab("two.toml", name="two") as lab:
        lab.fault("s1:1", "drop", prob=0.1)
        print(lab.counters("links"))
    """

    def __init__(self, scenario: Source, *, name: str | None = None, backend: str | None = None,
                 set: Mapping[str, Any] | None = None, managed: bool = False) -> None:
        self._scenario = scenario
        self._options = [*(["--backend", backend] if backend else []), *(["--managed"] if managed else [])]
        self._options += [word for one in overrides(set) for word in ("--set", one)]
        stem = scenario["name"] if isinstance(scenario, Scenario) else Path(scenario).stem
        self.name = name or str(stem)

    def __enter__(self) -> Lab:
        words = [*self._options, "--name", self.name]
        if isinstance(self._scenario, Scenario):
            with tempfile.NamedTemporaryFile("w", suffix=".toml", encoding="utf-8") as file:
                file.write(self._scenario.text)
                file.flush()
                program.call(["up", file.name, *words])
        else:
            program.call(["up", os.fspath(self._scenario), *words])
        return self

    def __exit__(self, *_: object) -> None:
        program.call(["down", self.name])

    @property
    def status(self) -> dict[str, Any]:
        """State, devices, attached ports and hosts, as `pausebed status --json` has them."""
        return json.loads(program.call(["status", self.name, "--json"]))[self.name]

    def balance(self) -> str:
        """What became of every frame, as of one instant of fabric time."""
        return program.call(["status", self.name, "--balance"])

    def counters(self, subject: str, port: str | None = None) -> dict[str, Any]:
        """The document of `pausebed show SUBJECT --json`: pfc, ecn, credits, cc, queues, links or flows."""
        return json.loads(self._call("show", subject, *([port] if port else []), "--json"))

    def fault(self, port: str, action: str, frames: str = "all", *, prob: float | None = None,
              time: str | None = None, by: str | None = None, part: str | None = None) -> None:
        """Injects a fault at the port that sends (drop, corrupt, duplicate, delay), or ends all (mend).

        `time` is how long it lasts and `by` the delay, in fabric time, as in "5 ms".
        """
        named = {"--prob": prob, "--for": time, "--by": by, "--part": part}
        self._call("fault", port, action, frames, *_words(named))

    def set_link(self, port: str, *, up: bool | None = None, loss: float | None = None, rate: str | None = None) -> None:
        """Cuts or mends a cable in both directions; loses frames that a port sends, or limits its rate."""
        state = {None: [], True: ["--up"], False: ["--down"]}[up]
        self._call("set", "link", port, *state, *_words({"--loss": loss, "--rate": rate}))

    def capture(self, *ports: str, file: str | os.PathLike[str], seconds: float) -> None:
        """Writes what ports send and receive during `seconds` of wall time."""
        self._call("capture", *ports, "--write", os.fspath(file), "--seconds", str(seconds))

    def exec(self, host: str, *command: str, **options: Any) -> subprocess.CompletedProcess[str]:
        """Runs a program on a host; `options` are those of subprocess.run."""
        words = [program.path(), "exec", "--lab", self.name, host, "--", *command]
        return subprocess.run(words, **{"text": True, "capture_output": True, **options})  # noqa: PLW1510

    def socket(self, name: str) -> Path:
        """Path of the cable `name` (`attach = [{ socket = NAME, … }]`) without its ending, for `device.Port`."""
        return Path(self.status["processes"][0]["socket"]).with_name(name)

    def _call(self, command: str, *words: str) -> str:
        return program.call([command, *words, "--lab", self.name])


def _words(named: Mapping[str, Any]) -> list[str]:
    return [word for name, value in named.items() if value is not None for word in (name, str(value))]
