"""Frames decoded, encoded and checked, with the field names of `pausebed decode`, `encode` and `verify`.

Ethernet frames begin with the destination address, InfiniBand packets go from LRH to VCRC. `link` says which a frame is;
without it the octets decide.
"""

from __future__ import annotations

import json
import os
import warnings
from typing import Any, Mapping, Sequence, overload

from . import _native
from .scenario import PathLike


@overload
def decode(source: bytes, *, link: str | None = ..., fcs: str = ...) -> dict[str, Any]: ...
@overload
def decode(source: PathLike, *, link: str | None = ..., fcs: str = ...) -> list[dict[str, Any]]: ...


def decode(source, *, link=None, fcs="auto"):
    """A frame of octets as a dict, or the frames of a file (pcap, pcapng, text with hex) as a list of dicts.

    `wrong` in a frame lists its defects. What cannot be read is a warning.
    """
    if isinstance(source, (bytes, bytearray, memoryview)):
        return json.loads(_native.decode_frame(bytes(source), link, fcs))
    lines, unreadable = _native.decode_capture(os.fspath(source), link, fcs)
    for what in unreadable:
        warnings.warn(f"{os.fspath(source)}: {what}", stacklevel=2)
    return [json.loads(line) for line in lines.splitlines()]


def encode(frame: Mapping[str, Any]) -> bytes:
    """The octets of a frame as `decode` describes it. Lengths and CRCs that are left out are made right."""
    return _native.encode_frame(json.dumps(frame))


def verify(file: PathLike, *, limit: int = 1000) -> dict[str, Any]:
    """Checks a capture; the report of `pausebed verify --json`, with at most `limit` findings of each rule."""
    return json.loads(_native.verify_capture(os.fspath(file), limit))


@overload
def icrc(frames: bytes, *, link: str | None = ...) -> int | None: ...
@overload
def icrc(frames: Sequence[bytes], *, link: str | None = ...) -> list[int | None]: ...


def icrc(frames, *, link=None):
    """The right ICRC of a frame, or of each of several; None for a frame without one. Ethernet frames come without FCS."""
    if isinstance(frames, (bytes, bytearray)):
        return _native.icrc([bytes(frames)], link)[0]
    return _native.icrc(frames, link)


@overload
def vcrc(frames: bytes) -> int: ...
@overload
def vcrc(frames: Sequence[bytes]) -> list[int]: ...


def vcrc(frames):
    """The right VCRC of an InfiniBand packet, or of each of several."""
    return _native.vcrc([bytes(frames)])[0] if isinstance(frames, (bytes, bytearray)) else _native.vcrc(frames)
