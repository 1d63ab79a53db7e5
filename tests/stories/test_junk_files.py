"""Any junk in the place of any file of the instance, any command: an error that is ours, or none; never a hang, never a
bug (issue G 25).
"""

from __future__ import annotations

import os
import random
import shutil
import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import product
from pathlib import Path

import pytest

from rplctl.cli import run
from rplctl.command.change_master import change_master
from rplctl.command.channel.change_options import MasterChanges
from rplctl.config import load_config

pytestmark = pytest.mark.long(
    "Junk in each file is rare; tests/repository/test_torn_files.py holds it for the repositories."
)

FILES = (
    *("rplctl.toml", "history.jsonl", "rplctl.key", "master.info", "relay-log.info"),
    *("relay-bin.index", "relay-bin.000001", "relay-bin.~rec~"),
    *("run/@/receiver.status.json", "run/@/applier.status.json", "run/@/change_master.pending"),
    *("run/@/skip_counter", "run/@/skip_gtids", "run/@/switch-MasterInfo.json", "run/@/switch-master-info.json"),
    *("run/@/receiver.lock", "run/@/applier.lock", "run/@/admin.lock", "run/@/data.lock"),
    *("run/verbs.lock", "run/backup.lock", "run/instance.gate", "run/channels.lock", "run/channels.gate"),
    *("run/@/applier.stop", "run/@/receiver.log", "run/@/applier.log", "run/@/relay-index.lock"),
    *("run/log_status.lock", "run/gtids.lock", "run/gtids.gate", "run/read.lock", "run/read.gate"),
    *("run/lock-instance.lock", "run/lock-tables.lock", "xid.instance", "target.db", "target.db-journal"),
    *("relay-log.pages", "relay-log.logged", ".master.info.synced", ".relay-log.info.synced"),
)
VERBS = (
    *(("show-status", "--json"), ("show-channels",), ("flush-relay-logs",), ("check",), ("check", "--offline")),
    *(("doctor",), ("stop", "--timeout", "1"), ("wait", "--state", "synced", "--timeout", "0"), ("log-status",)),
    *(("wait", "--pos", "b.000001:4", "--timeout", "0"), ("backup", "{out}"), ("show-relaylog-events",)),
    *(("change-master", "--master-log-file", "b.000002", "--master-log-pos", "4"), ("change-master", "--dry-run")),
    *(("switch-repo", "--to", "table", "--dry-run"), ("recover", "--dry-run"), ("recover",), ("reset", "--dry-run")),
    *(("skip", "-y"), ("skip", "--gtid", "0-1-5", "-y"), ("export-info", "{out}", "--server", "mariadb", "-y")),
    *(("change-filter", "--replicate-do-db", "a"), ("purge-relay-logs", "--dry-run"), ("load-schema", "/dev/null")),
    *(("purge-binary-logs", "--to", "x.000001"), ("init",), ("unlock-instance",), ("unlock-tables",), ("history",)),
)
DEAR = (("reset", "-y", "--all"), ("switch-repo", "--to", "table"))  # fractions of a second each
DEAREST = ("start", "--receiver")  # a process
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
    change_master(load_config(datadir), "", MasterChanges(master_host="127.0.0.1", master_port=1, master_user="u"))
    return datadir


def a_sample() -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Every kind at every file, every kind with every verb, and each target with what opens it in a way of its own."""
    for (k, kind), (n, name), (v, verb) in product(enumerate(KINDS), enumerate(FILES), enumerate(VERBS)):
        if (k + 3 * n + 5 * v) % 23 == 0 or (name == "target.db" and verb[0] in ("log-status", "backup")):
            yield kind, name, verb


@pytest.mark.slow
def test_no_command_hangs_or_calls_it_a_bug(whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert found_wrong(a_sample(), whole, tmp_path, capsys) == []


@pytest.mark.torture
@pytest.mark.parametrize("kind", KINDS)
def test_none_does_whatever_it_is_and_wherever(
    kind: str, whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    verbs = (*VERBS, *DEAR, *[DEAREST] * (kind in ("fifo", "junk")))
    assert found_wrong(product([kind], FILES, verbs), whole, tmp_path, capsys) == []


def found_wrong(
    cases: Iterable[tuple[str, str, tuple[str, ...]]],
    whole: Path,
    folder: Path,
    capsys: pytest.CaptureFixture[str],
) -> list[str]:
    wrong = []
    datadir, out = folder / "instance", folder / "out"
    for kind, name, verb in cases:
        shutil.copytree(whole, datadir)
        path = datadir / name
        path.unlink(missing_ok=True)
        path.parent.mkdir(parents=True, exist_ok=True)
        KINDS[kind](path)
        what = f"{kind} at {name}: {' '.join(verb)}"
        try:
            with within(20, what):
                run(["--datadir", str(datadir), *(str(out) if word == "{out}" else word for word in verb)])
        except Exception as error:  # noqa: BLE001 - all of them are wanted
            wrong.append(f"{what}: {type(error).__name__}: {error}"[:300])
        said = capsys.readouterr()
        if "Traceback" in said.err or "this is a bug" in said.err:
            wrong.append(f"{what}: {said.err[-200:]}")
        if verb == DEAREST:
            end_receiver(datadir)
        for made in (datadir, out):
            shutil.rmtree(made, ignore_errors=True)
    return wrong


def end_receiver(datadir: Path) -> None:
    """However it is: what lies in the way of `stop` does not lie in ours."""
    for pid in (int(path.name) for path in Path("/proc").iterdir() if path.name.isdecimal()):
        with suppress(OSError):
            command = Path("/proc", str(pid), "cmdline").read_bytes().split(b"\0")
            if b"rplctl.receiver" in command and os.fsencode(datadir) in command:
                os.kill(pid, signal.SIGKILL)
