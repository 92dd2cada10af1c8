"""A NIC or a switch port in Python, at an attached port with a Unix datagram socket.

One datagram is one Ethernet frame, from the destination address to the last octet of the payload, without FCS.

    class Echo(device.Device):
        def on_frame(self, frame):
            self.send(frame[6:12] + frame[:6] + frame[12:])

    Echo(lab.socket("vm1")).run(seconds=5)
"""

from __future__ import annotations

import os
import socket
import time
from pathlib import Path

from .scenario import PathLike

#: No frame is longer, octets.
FRAME_MAX = 65_536


class Port:
    """One end of a cable `socket = NAME`: the lab has `NAME.lab`, this end makes `NAME.peer` and removes it again."""

    def __init__(self, cable: PathLike) -> None:
        self._own, self._lab = Path(f"{os.fspath(cable)}.peer"), f"{os.fspath(cable)}.lab"
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._own.unlink(missing_ok=True)
        self._socket.bind(os.fspath(self._own))

    def send(self, frame: bytes) -> None:
        """Sends a frame to the port. It waits where the port is full; a lab that has ended is an OSError."""
        self._socket.settimeout(None)
        self._socket.sendto(frame, self._lab)

    def receive(self, timeout: float | None = None) -> bytes | None:
        """The next frame from the port; None if none comes within `timeout` seconds."""
        self._socket.settimeout(timeout)
        try:
            return self._socket.recv(FRAME_MAX)
        except (TimeoutError, socket.timeout, BlockingIOError):
            return None

    def close(self) -> None:
        self._socket.close()
        self._own.unlink(missing_ok=True)

    def __enter__(self) -> Port:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Device(Port):
    """A device with one port. Subclasses say what it does with a frame, and once in a while."""

    #: Seconds between two calls of `on_tick`.
    tick = 0.1

    def on_frame(self, frame: bytes) -> None:
        """A frame has arrived."""

    def on_tick(self) -> None:
        """`tick` seconds have passed."""

    def run(self, seconds: float) -> None:
        """Handles frames for so long, and closes the port."""
        end, due = time.monotonic() + seconds, time.monotonic() + self.tick
        with self:
            while (now := time.monotonic()) < end:
                if now >= due:
                    due += self.tick
                    self.on_tick()
                frame = self.receive(max(0.0, min(due, end) - now))
                if frame is not None:
                    self.on_frame(frame)
