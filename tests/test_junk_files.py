"""Any junk in the place of any file of the instance, any command: an error that is ours, or none; never a hang, never a
bug (issue G 25).
"""

from __future__ import annotations

import os
import random
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from rplctl.cli import run
from rplctl.command.change_master import change_master
from rplctl.command.change_options import MasterChanges
from rplctl.config import load_config

FILES = (
    *("rplctl.toml", "rplctl.log", "rplctl.key", "master.info", "relay-log.info"),
    *("relay-bin.index", "relay-bin.000001", "relay-bin.~rec~"),
    *("run/@/receiver.status.json", "run/@/applier.status.json", "run/@/change_master.pending"),
    *("run/@/skip_counter", "run/@/skip_gtids", "run/@/switch-MasterInfo.json", "run/@/switch-master-info.json"),
    *("run/@/receiver.lock", "run/@/applier.lock", "run/@/admin.lock", "run/@/data.lock"),
    *("run/verbs.lock", "run/backup.lock", "run/instance.gate", "run/channels.lock"),
)
VERBS = (("show-status", "--json"), ("show-channels",), ("flush-relay-logs",))
KINDS: dict[str, Callable[[Path], object]] = {
    "fifo": os.mkfifo,
    "folder": Path.mkdir,
    "link to a device": lambda path: path.symlink_to("/dev/zero"),
    "link to nowhere": lambda path: path.symlink_to("/nonexistent/x"),
    "link to itself": lambda path: path.symlink_to(path),
    "empty": Path.touch,
    "zeros": lambda path: path.write_bytes(bytes(4096)),
    "junk": lambda path: path.write_bytes(random.Random(16).randbytes(3000)),
    "JSON list": lambda path: path.write_bytes(b'["a", 1]'),
    "other values": lambda path: path.write_bytes(b'{"state": 1, "updated": "x", "last_errno": null, "at": 1e999}'),
    "nested": lambda path: path.write_bytes(b"[" * 100_000),
}


@contextmanager
def within(seconds: int, what: object) -> Iterator[None]:
    def too_long(*_: object) -> None:
        raise AssertionError(f"hangs: {what}")

    before = signal.signal(signal.SIGALRM, too_long)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    datadir = tmp_path_factory.mktemp("junk") / "whole"
    datadir.mkdir()
    change_master(load_config(datadir), "", MasterChanges(master_host="db1", master_user="u"))
    return datadir


LONG = ("link to nowhere", "link to itself", "empty", "zeros", "junk", "JSON list")


@pytest.mark.slow
@pytest.mark.parametrize("kind", [pytest.param(k, marks=[pytest.mark.torture] * (k in LONG)) for k in KINDS])
def test_no_command_hangs_or_calls_it_a_bug(
    kind: str, whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = []
    for name in FILES:
        for verb in VERBS:
            datadir = tmp_path / "instance"
            shutil.copytree(whole, datadir)
            path = datadir / name
            path.unlink(missing_ok=True)
            path.parent.mkdir(parents=True, exist_ok=True)
            KINDS[kind](path)
            try:
                with within(20, (name, verb)):
                    run(["--datadir", str(datadir), *verb])
            except Exception as error:  # noqa: BLE001 - all of them are wanted
                wrong.append(f"{name} {verb[0]}: {type(error).__name__}: {error}"[:200])
            said = capsys.readouterr()
            if "Traceback" in said.err or "this is a bug" in said.err:
                wrong.append(f"{name} {verb[0]}: {said.err[-200:]}")
            shutil.rmtree(datadir)
    assert wrong == []
