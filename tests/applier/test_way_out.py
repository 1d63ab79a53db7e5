"""Every stop has a way out (design D22): a hint, whose commands are real, and which says what it loses.

The family is the source itself: every number that the program, or a target's mapped errors, can stop an applier with;
every command that any text of ours names; every text that speaks of `rplctl skip`.
"""

from __future__ import annotations

import ast
import itertools
import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from rplctl import mysql_errors
from rplctl.applier.options import Until
from rplctl.applier.report import Report
from rplctl.applier.way_out import way_out
from rplctl.channel import Channel
from rplctl.cli.app import command_for
from rplctl.cli.globals import GLOBAL_FLAGS
from rplctl.durable import private_folder
from rplctl.errors import OR_EXCLUDE, RelayLogError, RplError, TargetError, for_channel
from rplctl.receiver.reporter import Reporter
from rplctl.status import read_status
from rplctl.target.mysql import connection as mysql_connection
from rplctl.target.postgresql import connection as postgresql_connection
from tests.house.code import MODULES, nodes

pytestmark = pytest.mark.slow

ENDS = re.compile(
    r"[;,)(`'|…]|\.(?:\s|$)|\s(?:or|and|then|with|for|by|if|to|without|again|until|ends|takes|names|in)\b"
)
LOSS = "whole transaction"
SHOWS = "rplctl skip --dry-run"  # skips nothing
NO_LOSS = ("rplctl skip 0", "the incident alone")  # `skip 0` skips nothing


@cache
def texts() -> tuple[tuple[str, str], ...]:
    """(place, text) of every literal that people may read; what is put into it is X."""
    return tuple(text for path in MODULES for text in _texts_of(path))


def _texts_of(path: Path) -> Iterator[tuple[str, str]]:
    inner: set[int] = set()
    for node in nodes(path):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            inner.add(id(node.value))  # docstrings
        if isinstance(node, ast.JoinedStr):
            inner |= {id(part) for part in node.values}
    for node in nodes(path):
        if id(node) in inner:
            continue
        place = f"{path.name}:{getattr(node, 'lineno', 0)}"
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield place, node.value
        elif isinstance(node, ast.JoinedStr):
            yield place, "".join(str(p.value) if isinstance(p, ast.Constant) else "X" for p in node.values)


def commands() -> list[tuple[str, str]]:
    found = []
    for place, text in texts():
        if "%(" in text or "\n" in text:
            continue
        found += [(place, ENDS.split(part, maxsplit=1)[0]) for part in text.split("rplctl ")[1:]]
    return [(place, part) for place, part in found if re.match(r"[a-z]+(?:-[a-z]+)*\b", part)]


def test_every_command_that_a_text_of_ours_names_is_one_with_those_options() -> None:
    verbs: dict[str, Any] = command_for(["--help"]).commands
    checked, wrong = 0, []
    for place, line in commands():
        words = shlex.split(line, posix=False)
        verb = re.sub(r"X.*", "", words[0].strip('"').replace("-X", "-instance"))
        options = [word for word in words[1 : words.index("--") if "--" in words else None] if word.startswith("-")]
        if verb not in verbs:  # "the rplctl that made them", "rplctl knows": prose
            wrong += [f"{place}: rplctl {line}"] if options or "-" in verb else []
            continue
        known = {flag for parameter in verbs[verb].params for flag in (*parameter.opts, *parameter.secondary_opts)}
        known |= GLOBAL_FLAGS.keys() | {"--help"}
        wrong += [f"{place}: rplctl {line}" for word in options if "X" not in word and word.split("=")[0] not in known]
        checked += 1
    assert not wrong and checked > 60


def test_a_text_that_speaks_of_skip_says_what_is_lost() -> None:
    speaking = [(place, text) for place, text in texts() if "rplctl skip" in text.replace(SHOWS, "")]
    assert len(speaking) > 10
    silent = [place for place, text in speaking if LOSS not in text and not any(word in text for word in NO_LOSS)]
    assert not silent


def numbers() -> list[int]:
    """errno=N in the packages whose errors reach an applier, and what targets' own errors become."""
    found = {errno for errno, _, _ in postgresql_connection.STATES.values()} | set(mysql_connection.HINTS)
    for path in MODULES:
        for node in nodes(path):
            if isinstance(node, ast.keyword) and node.arg == "errno" and isinstance(node.value, ast.Attribute):
                number = getattr(mysql_errors, node.value.attr, None)
                found |= {number} if isinstance(number, int) else set()
    return sorted(found)


def test_every_number_that_ends_an_applier_has_a_way_out_of_its_channel() -> None:
    found = numbers()
    assert {1032, 1062, 1146, 1235, 1592, 1594, 1666} <= set(found)
    for kind, number in itertools.product((TargetError, RelayLogError, RplError), (*found, 9999)):
        hint = way_out(kind("it does not fit", errno=number, channel="east"))
        assert hint and "rplctl" in hint, number
        assert "rplctl skip" not in hint or LOSS in hint, number
        assert all("--channel east" in part[:40] for part in hint.split("rplctl ")[1:] if part[:4] in ("skip", "star"))


def test_the_hint_of_an_error_itself_comes_first_and_names_of_channels_are_quoted() -> None:
    assert way_out(TargetError("x", errno=1062, hint="rplctl check")) == "rplctl check"
    assert (
        for_channel("rplctl stop; rplctl start", "a b") == "rplctl stop --channel 'a b'; rplctl start --channel 'a b'"
    )
    assert for_channel("rplctl start --all", "east") == "rplctl start --all"


def test_both_threads_tell_it_where_show_status_reads(tmp_path: Path) -> None:
    channel = Channel("east", tmp_path)
    private_folder(channel.run_folder)
    Report.open(channel, Until()).failed(TargetError("Can't find record in 't'", errno=1032))
    report = Report.open(channel, Until())
    report.failed(TargetError("Can't find record in 't'", errno=1032))
    report.stopped()
    told = read_status(channel.status_path("applier")).last_hint
    assert "rplctl start --channel east" in told and "rplctl verify --channel east" in told
    reporter = Reporter(channel)
    reporter.failed(RplError("it ended"))
    reporter.stopped()
    assert "rplctl start --channel east" in read_status(channel.status_path("receiver")).last_hint


def test_several_ways_out_stay_a_line_each_where_show_status_reads(tmp_path: Path) -> None:
    """The commands of a way have semicolons of their own."""
    channel = Channel("", tmp_path)
    private_folder(channel.run_folder)
    hint = "mount it: rplctl start\nor begin again: rplctl reset; rplctl start"
    for thread, role in ((Report.open(channel, Until()), "applier"), (Reporter(channel), "receiver")):
        thread.failed(TargetError("it is lost", hint=hint))
        thread.stopped()
        kept = read_status(channel.status_path(role))
        assert (kept.last_error, kept.last_hint) == ("it is lost", hint)


def test_a_table_that_is_known_is_named_as_a_shell_takes_it() -> None:
    named = {("shop", "t"): "shop.t", ("o'b", "$(x)"): """'o'"'"'b.$(x)'""", ("a.b", "t"): "DB.TABLE", None: "DB.TABLE"}
    for table, shown in named.items():
        error = RplError("Table doesn't exist", errno=mysql_errors.NO_SUCH_TABLE)
        error.table = table
        assert f"clone --tables {shown} --replace" in way_out(error)
        error = RplError("it has no key", hint=f"use another target{OR_EXCLUDE}")
        error.table = table
        assert f"--replicate-ignore-table {shown}; rplctl start" in way_out(error)
