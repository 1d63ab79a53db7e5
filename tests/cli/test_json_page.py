"""rplctl-json(5) and the program: every verb prints the keys that its entry names, all of them and no others.

An entry's first sentence is the list of keys; what stands in parentheses explains one. `with`-forms have entries of
their own (`crash-test --arm`). Several channels are one list, too.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from rplctl.channel import Channel, hold_lock
from rplctl.cli.app import VERBS
from rplctl.command.show_status import COLUMNS
from rplctl.demo import BINLOG_FOLDER
from rplctl.demo.crash_log import FOLDER as LOGS
from tests.cli.program import Program
from tests.house.code import PACKAGE, imports
from tests.house.test_man import plain
from tests.relay_log.stream import FakeSource, write_relay_log

CLI = PACKAGE / "cli"
WITHOUT_JAVA = str(Path(__file__).parents[1] / "kit/without_java")
SHOW_STATUS = re.compile(r"^\.B show-status\n((?:(?!^\.TP).*\n)+)", re.MULTILINE)


def entries() -> dict[str, list[str]]:
    """Verb, or verb and option → keys in the page's order."""
    text = plain("rplctl-json.5")
    found = {}
    for heads, body in re.findall(r"^\.TP\n\.B (.+)\n((?:(?!^\.(?:TP|SH)).*\n)+)", text, re.MULTILINE):
        first = re.sub(r"\([^()]*\)", "", " ".join(body.split("\n"))).split(".", 1)[0]
        for head in heads.split(", "):
            found[head] = [name.strip() for name in first.split(",")]
    return found


PAGE = entries()


class Stage:
    """One instance and what a verb needs there; everything on a copy of the recorded log."""

    def __init__(self, program: Program, folder: Path, held: ExitStack) -> None:
        self.program, self.folder, self.held = program, folder, held

    def __call__(self, *arguments: str) -> None:
        done = self.program(*arguments)
        assert done.code == 0, done

    def path(self, name: str) -> str:
        return str(self.folder / name)


def exported(stage: Stage) -> list[str]:
    stage("export-info", stage.path("out"), "--server", "mariadb")
    return ["import-info", stage.path("out"), "--yes"]


def backed_up(stage: Stage) -> list[str]:
    stage("backup", stage.path("copy"))
    shutil.rmtree(stage.program.datadir)
    return ["restore", stage.path("copy")]


def with_relay_logs(stage: Stage) -> list[str]:
    write_relay_log(Channel("", stage.program.datadir), FakeSource(), 2)
    return ["show-relaylog-events"]


def with_a_dump(stage: Stage) -> list[str]:
    path = stage.folder / "dump.sql"
    path.write_text("CREATE DATABASE d; USE d; CREATE TABLE `t` (`a` int NOT NULL, PRIMARY KEY (`a`)) ENGINE=InnoDB;\n")
    return ["load-schema", str(path)]


def with_a_binary_log(stage: Stage) -> list[str]:
    (stage.program.datadir / "rplctl.toml").write_text('log_bin = "applied"\n')
    return ["purge-binary-logs", "--before", "2026-01-01 00:00:00"]


def with_a_moved_target(stage: Stage) -> list[str]:
    return ["change-target", f"sqlite:///{stage.path('moved.db')}"]


def applying(stage: Stage) -> list[str]:
    stage.held.enter_context(hold_lock(Channel("", stage.program.datadir), "applier"))
    return ["crash-test", "--arm", "crash_commit_before=kill"]


def replicating(stage: Stage) -> list[str]:
    logs = stage.folder / "logs"
    logs.mkdir()
    for number in (1, 2):  # the third one has statements
        shutil.copy(LOGS / f"binlog.00000{number}", logs)
    stage("change-master", "--master-binlog-dir", str(logs))
    return ["start", "--until-synced"]


Prepare = list[str] | Callable[[Stage], list[str]]
RUNS: dict[str, Prepare] = {
    "init": ["init"],
    "change-master": ["change-master", "--master-connect-retry", "5"],
    "change-filter": ["change-filter", "--replicate-do-db", "d"],
    "stop": ["stop"],
    "reset": ["reset", "--yes"],
    "show-status": ["show-status"],
    "show-channels": ["show-channels"],
    "show-relaylog-events": with_relay_logs,
    "show-changes": ["show-changes", "--table", "shop.orders", "--in", str(BINLOG_FOLDER), "--limit", "1"],
    "flush-relay-logs": ["flush-relay-logs"],
    "purge-relay-logs": ["purge-relay-logs"],
    "purge-binary-logs": with_a_binary_log,
    "skip": ["skip", "1", "--yes"],
    "recover": ["recover"],
    "switch-repo": ["switch-repo", "--to", "table"],
    "change-target": with_a_moved_target,
    "rename-channel": ["rename-channel", "", "east"],
    "load-schema": with_a_dump,
    "log-status": ["log-status"],
    "lock-instance": ["lock-instance"],
    "unlock-instance": ["unlock-instance"],
    "lock-tables": ["lock-tables"],
    "unlock-tables": ["unlock-tables"],
    "backup": lambda stage: ["backup", stage.path("copy")],
    "restore": backed_up,
    "export-info": lambda stage: ["export-info", stage.path("out"), "--server", "mariadb"],
    "import-info": exported,
    "wait": ["wait", "--state", "stopped"],
    "check": ["check"],
    "doctor": ["doctor"],
    "history": ["history"],
    "top": ["top"],
    "metrics": ["metrics"],
    "crash-test --arm": applying,
}
SLOW: dict[str, Prepare] = {
    "start": replicating,
    "demo": ["demo"],
    "fsync-report": ["fsync-report", "--transactions", "1"],
    "crash-test": ["crash-test", "--points", "switch_after_write"],
}
SERVES = {"serve", "user"}  # tests/command/test_serve.py, test_user.py
WITH_A_SOURCE = {"heartbeat", "clone", "clone --cancel", "show-clone", "verify", "repair"}  # in tests/command
EXIT_CODES = {"check": 2, "doctor": 2}  # nothing runs here
OF_TWO_CHANNELS = (  # command lines that act on both channels of an instance
    "show-status", "show-channels", "stop", "flush-relay-logs", "purge-relay-logs",
    "purge-binary-logs --before 2026-01-01", "recover", "check", "switch-repo --to table", "reset --yes",
    "reset --all --yes",
)  # fmt: skip
NOT_OF_TWO_CHANNELS = {"heartbeat": "it needs a source", "start": "it starts processes"}


def test_every_verb_has_its_entry_and_the_reverse() -> None:
    assert {name.split(" ")[0] for name in PAGE} == set(VERBS)
    assert {*RUNS, *SLOW, *WITH_A_SOURCE, *SERVES} == set(PAGE)


@pytest.fixture
def stage(configured: Program, tmp_path: Path) -> Iterator[Stage]:
    with ExitStack() as held:
        made = Stage(configured, tmp_path, held)
        yield made
        configured("unlock-instance")
        configured("unlock-tables")


@pytest.mark.parametrize("entry", RUNS)
def test_the_keys_are_those_of_the_page(stage: Stage, entry: str) -> None:
    agree(stage, entry, RUNS[entry])


@pytest.mark.long("One verb stays, and the keys of all others are compared without processes.", keeps=r"^start$")
@pytest.mark.slow
@pytest.mark.usefixtures("children_forked")
@pytest.mark.parametrize("entry", SLOW)
def test_the_keys_of_what_starts_processes_are_those_of_the_page(
    stage: Stage, entry: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", WITHOUT_JAVA)
    agree(stage, entry, SLOW[entry])


def agree(stage: Stage, entry: str, run: Prepare) -> None:
    done = stage.program(*(run(stage) if callable(run) else run), "--json")
    assert done.code == EXIT_CODES.get(entry, 0), done
    assert done.out.count("\n") == 1, "one line"
    rows = json.loads(done.out)
    assert isinstance(rows, list) and rows
    for row in rows:
        assert list(row) == (list(COLUMNS) if entry == "show-status" else PAGE[entry])


def test_the_columns_of_show_status_are_named_from_where_the_servers_end() -> None:
    entry = SHOW_STATUS.findall(plain("rplctl-json.5"))[0]
    named = set(re.findall(r"\b[A-Z]\w*_\w+", entry)) - {"Slave_IO_State"}
    last = COLUMNS.index("Master_TLS_Version")
    assert named == set(COLUMNS[last:])


def test_several_channels_are_one_list(configured: Program) -> None:
    configured("change-master", "--channel", "east", "--master-host", "db2")
    (configured.datadir / "rplctl.toml").write_text('log_bin = "applied"\n')
    for verb in OF_TWO_CHANNELS:
        done = configured(*verb.split(" "), "--json")
        assert done.out.count("\n") == 1, (verb, done)
        names = [row.get("Channel_Name", row.get("Channel_name", row.get("channel"))) for row in json.loads(done.out)]
        assert sorted(set(names)) == ["", "east"], verb


def test_every_command_that_uses_for_each_runs_with_two_channels() -> None:
    using = {verb for verb in VERBS if "rplctl.cli.options.for_each" in imports(CLI / f"{verb.replace('-', '_')}.py")}
    assert using - {line.partition(" ")[0] for line in OF_TWO_CHANNELS} == {*NOT_OF_TWO_CHANNELS}


def test_what_others_did_is_told_though_one_channel_fails(configured: Program) -> None:
    configured("change-master", "--channel", "east", "--master-host", "db2")
    with hold_lock(Channel("east", configured.datadir), "applier"):
        done = configured("reset", "--yes", "--json")
    assert done.code == 2 and json.loads(done.err)["Errno"] == 3081
    assert [row["Channel_Name"] for row in json.loads(done.out)] == [""]
