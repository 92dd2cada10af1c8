"""The program `pausebed`, which runs what needs processes of their own."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import Sequence

from ._native import Error

#: Exit codes with which the program has done what it was asked for: pass, fail, inconclusive.
CONCLUDED = (0, 1, 4)


def path() -> str:
    """The path of the program: the environment variable PAUSEBED, or `pausebed` in PATH."""
    found = os.environ.get("PAUSEBED") or shutil.which("pausebed")
    if not found:
        raise Error("there is no program pausebed: put it into PATH, or its path into the environment variable PAUSEBED")
    return found


def call(words: Sequence[str], good: Sequence[int] = (0,)) -> str:
    """Runs the program and returns its standard output; an exit code other than those of `good` is an error."""
    done = subprocess.run([path(), *words], capture_output=True, text=True, check=False)
    if done.returncode not in good:
        raise Error(f"pausebed {words[0]} ended with exit code {done.returncode}:\n{done.stderr.strip()}")
    return done.stdout
