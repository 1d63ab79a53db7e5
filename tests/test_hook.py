"""on_error: called once for each new error, with what an operator wants to know, and of no harm whatever it does."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

import rplctl.hook
from rplctl import incident
from rplctl.channel import Channel
from rplctl.config import Config
from rplctl.errors import SourceError
from rplctl.history import read_history
from rplctl.hook import call, run_command, wait_for_hooks
from rplctl.incident import Incident
from rplctl.status import ThreadStatus

pytestmark = pytest.mark.slow

TOLD = {"event": "error", "channel": "", "thread": "receiver"}


def test_a_command_that_fails_says_why_and_one_that_hangs_or_floods_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rplctl.hook, "TIMEOUT_S", 1.0)
    assert run_command("cat > /dev/null", b"{}") == ""
    assert run_command("true", b"x" * 1_000_000) == "", "it need not read"
    assert run_command("echo no, password=C4nary; exit 3", b"") == "ended with code 3: no, password=<secret>"
    begun = time.monotonic()
    assert run_command("sleep 60 & sleep 60", b"") == run_command("yes", b"") == "killed after 1 s"
    assert time.monotonic() - begun < 10
    assert run_command("head -c 3000000 /dev/zero | tr '\\0' x; exit 1", b"").count("x") == 500


def test_it_sees_nothing_of_our_environment_but_what_a_command_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RPLCTL_PASSWORD", "C4nary")
    assert run_command(f"env > {tmp_path}/env", b"") == ""
    assert "C4nary" not in (found := (tmp_path / "env").read_text()) and f"PATH={os.environ['PATH']}" in found


def test_one_runs_at_a_time_nobody_waits_and_its_failure_is_in_the_history(tmp_path: Path) -> None:
    begun = time.monotonic()
    for _ in range(3):
        call(f"mkdir {tmp_path}/alone || exit 7; sleep 0.1; rmdir {tmp_path}/alone", tmp_path, TOLD)
    call("exit 8", tmp_path, TOLD)
    assert time.monotonic() - begun < 2
    wait_for_hooks(tmp_path)
    assert [event.Info for event in read_history(tmp_path)] == ["on_error: ended with code 8"]


def test_what_lasts_is_told_after_a_minute_once_and_that_it_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[tuple[str, str, str]] = []
    monkeypatch.setattr(incident, "call", lambda command, _, told: calls.append((command, told["state"], told["hint"])))
    channel = Channel("c", tmp_path)
    channel.run_folder.mkdir(parents=True)
    thread = Incident(channel, "receiver", Config(tmp_path, on_error="E", on_recovery="R"))
    thread.begins(ThreadStatus())
    away = SourceError("away", errno=2003, transient=True)
    thread.lasts(away, ThreadStatus(last_errno=2003))
    thread.gone()
    assert calls == [], "it was short"
    thread.lasts(away, ThreadStatus(last_errno=2003))
    monkeypatch.setattr(incident, "LASTS_S", 0.0)
    for _ in range(3):
        thread.lasts(away, ThreadStatus(last_errno=2003))
    thread.ends(away, ThreadStatus(last_errno=2003), "rplctl start")
    thread.gone()
    assert calls == [("E", "retrying", ""), ("E", "stopped", "rplctl start"), ("R", "running", "")]
