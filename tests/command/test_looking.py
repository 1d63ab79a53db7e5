"""A look makes no target: a verb that only tells finds no file where none is, and leaves none.

Every verb is in one of the two lists, so that a new one is thought of.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from rplctl.cli.app import VERBS
from tests.cli.program import Program

LOOKS: dict[str, list[tuple[str, ...]]] = {
    "show-status": [(), ("--brief",)],
    "show-channels": [()],
    "show-relaylog-events": [()],
    "show-changes": [("--table", "shop.t")],
    "show-clone": [()],
    "verify": [()],
    "repair": [("--dry-run",)],
    "recover": [("--dry-run",)],
    "user": [("list",)],
    "log-status": [()],
    "export-info": [("{folder}", "--server", "mysql-8.0", "--dry-run")],
    "wait": [("--state", "stopped", "--timeout", "1")],
    "check": [(), ("--offline",), ("--online",)],
    "heartbeat": [()],
    "history": [()],
    "metrics": [()],
    "doctor": [()],
    "backup": [("{folder}",)],
    "stop": [()],
    "purge-relay-logs": [()],
    "purge-binary-logs": [("--to", "x.000001")],
    "flush-relay-logs": [()],
}
MAY_MAKE_OR_STAY = {  # they write to the target, run until they are stopped, or have an instance of their own
    "init", "change-master", "change-filter", "start", "reset", "skip", "switch-repo", "load-schema", "clone",
    "rename-channel", "change-target", "restore", "import-info", "top", "serve", "fsync-report", "crash-test", "demo",
    "lock-tables", "unlock-tables", "lock-instance", "unlock-instance",
}  # fmt: skip
MASTER = ("--master-host", "127.0.0.1", "--master-port", "1", "--master-user", "r", "--master-log-file", "b.000001")


def test_each_verb_is_in_one_of_the_lists() -> None:
    assert {*LOOKS} ^ MAY_MAKE_OR_STAY == {*VERBS}


def _into(folder: Path, words: tuple[str, ...]) -> list[str]:
    return [word.format(folder=folder) for word in words]


@pytest.mark.parametrize("kind", ["sqlite", "duckdb"])
@pytest.mark.parametrize("verb", LOOKS)
def test_a_look_makes_no_target(tmp_path: Path, capsys: pytest.CaptureFixture[str], verb: str, kind: str) -> None:
    program = Program(tmp_path / "instance", capsys)
    target = tmp_path / "target" / "t.db"
    target.parent.mkdir()
    files = ("--master-info-repository", "FILE", "--relay-log-info-repository", "FILE")
    assert program("init", "--target", f"{kind}:///{target}", *files).code == 0
    told = [program(verb, *_into(tmp_path / "before", words)) for words in LOOKS[verb]]  # no channel
    assert [*target.parent.iterdir()] == []
    done = program("change-master", *MASTER)
    assert done.code == 0, done.err
    assert [*target.parent.iterdir()] == []
    for words in LOOKS[verb]:
        told.append(program(verb, *_into(tmp_path / "folder", words)))
        assert [*target.parent.iterdir()] == [], words
    assert not any("Traceback" in done.err for done in told)
