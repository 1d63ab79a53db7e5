"""Whoever waits in a held socket gets on at once, also one that is held too late."""

from __future__ import annotations

import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from rplctl.source.interruption import Interruption, hold


def test_a_wait_ends_and_what_is_held_later_ends_at_once() -> None:
    interruption = Interruption()
    ours, theirs = socket.socketpair()
    ours.settimeout(30)
    with ours, theirs, interruption.heeded():
        hold(ours)
        threading.Timer(0.2, interruption.now).start()
        began = time.monotonic()
        assert ours.recv(1) == b"" and time.monotonic() - began < 20
    interruption.release()
    late, other = socket.socketpair()
    with late, other:
        interruption.hold(late)
        assert late.recv(1) == b""
    interruption.release()
    interruption.now()


def test_a_released_socket_is_closed_when_its_owner_closes_it() -> None:
    interruption = Interruption()
    ours, theirs = socket.socketpair()
    with theirs:
        theirs.settimeout(30)
        interruption.hold(ours)
        ours.close()
        interruption.release()
        assert theirs.recv(1) == b""


def test_a_thread_holds_only_for_its_own_block() -> None:
    interruption = Interruption()
    ours, theirs = socket.socketpair()
    with ours, theirs, ThreadPoolExecutor() as others:
        with interruption.heeded():
            others.submit(hold, ours).result()
        hold(ours)
        interruption.now()
        ours.setblocking(False)
        theirs.send(b"x")
        assert ours.recv(1) == b"x"
