"""Rows that are repaired, put off, or left: on a SQLite file, with a source that is a dictionary."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from rplctl.channel import Channel
from rplctl.locks import read_lock
from rplctl.schema.model import Column, Key, KeyPart, TableModel
from rplctl.target import open_target
from rplctl.verify import repair
from rplctl.verify.pair import Pair
from rplctl.verify.repair import Repairer, RepairOutcome
from rplctl.verify.resolve import MOST_ROUNDS
from rplctl.verify.undo import UndoFolder

COLUMNS = (
    Column(name="id", type="int", nullable=False),
    Column(name="u", type="varchar", length=9),
    Column(name="v", type="int"),
)
KEYS = (
    Key(name="PRIMARY", kind="primary", parts=(KeyPart("id"),)),
    Key(name="u", kind="unique", parts=(KeyPart("u"),)),
)
MODEL = TableModel(database="d", name="t", columns=COLUMNS, keys=KEYS)
PAIR = Pair.of(MODEL, MODEL, "sqlite")


class Stage:
    """A source's rows, a target, and between them what a settlement does. `touches`: keys that the source changes once
    the look of that number is taken.
    """

    source, is_unchanging, rounds = None, False, MOST_ROUNDS

    def __init__(self, path: Path, ours: dict[int, tuple[Any, ...]], theirs: list[tuple[Any, ...]]) -> None:
        self.ours, self.touches = ours, dict[int, set[tuple[int]]]()
        self.side, self.keys, self.is_all, self.looks = self, set[tuple[int]](), False, 0
        self.connection = sqlite3.connect(path, isolation_level=None)
        self.connection.execute("PRAGMA journal_mode=WAL")
        self.connection.execute("CREATE TABLE d__t (id INT PRIMARY KEY, u TEXT UNIQUE, v INT, own INT DEFAULT 7)")
        self.connection.executemany("INSERT INTO d__t (id, u, v) VALUES (?, ?, ?)", theirs)

    @contextmanager
    def staged(self, pair: Pair, rows: object, keeps: object) -> Iterator[Stage]:
        self.keys = set()
        yield self

    def read(self, pair: Pair, keys: list[tuple[int]]) -> tuple[list[Any], list[Any]]:
        return [((n,), self.ours[n]) for (n,) in keys if n in self.ours], [
            (key, row) for key in keys for row in self.connection.execute("SELECT id, u, v FROM d__t WHERE id = ?", key)
        ]

    def look(self, changed: object = None) -> None:
        self.looks += 1
        self.keys |= self.touches.pop(self.looks, set())

    def take(self, end: object) -> list[Any]:
        return []

    def restage(self, pair: Pair, gone: list[tuple[int]], rows: list[tuple[Any, ...]]) -> None:
        for (n,) in gone:
            del self.ours[n]
        self.ours.update((row[0], row) for row in rows)

    def __contains__(self, key: tuple[int]) -> bool:
        return key in self.keys

    def rows(self) -> list[tuple[Any, ...]]:
        return self.connection.execute("SELECT id, u, v FROM d__t ORDER BY id").fetchall()

    def stopped(self, _: float) -> bool:
        return False


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    opened: list[Any] = []

    def make(ours: list[tuple[Any, ...]], theirs: list[tuple[Any, ...]]) -> tuple[Stage, Repairer]:
        path = tmp_path / "t.db"
        stage = Stage(path, {row[0]: row for row in ours}, theirs)
        monkeypatch.setattr(repair, "source_rows", lambda *_: {(n,): row for n, row in stage.ours.items()})
        target, lock = open_target(f"sqlite:///{path}"), read_lock(Channel("", tmp_path).datadir)
        opened.extend((stage.connection, target, lock))
        return stage, Repairer(stage, target, None, UndoFolder(tmp_path / "undo"), lock)  # type: ignore[arg-type]

    yield make
    for each in opened:
        each.close()


def back(stage: Stage, repairer: Repairer) -> list[tuple[Any, ...]]:
    for path in sorted(repairer.undo.path.iterdir()):
        stage.connection.executescript(path.read_text())
    return stage.rows()


def test_rows_that_traded_a_unique_value_are_mended_from_batches_apart(made: Any) -> None:
    ours = [(1, "a", 1), (2, "b", 2), (3, "c", 3), (4, "d", 4)]
    theirs = [(1, "b", 1), (2, "a", 2), (3, "c", 0), (9, "d", 9)]
    stage, repairer = made(ours, theirs)
    stage.connection.execute("UPDATE d__t SET own = id")
    out = RepairOutcome()
    for key, kind in ((1, "different"), (2, "different"), (3, "different"), (4, "missing"), (9, "extra")):
        repairer.repair(PAIR, {(key,): kind}, out)
    assert set(out.blocked) == {(1,), (2,), (4,)}
    repairer.finish(PAIR, out)
    assert (out.inserted, out.deleted, out.updated, out.left.total()) == (1, 1, 3, 0)
    assert stage.rows() == ours
    assert stage.connection.execute("SELECT own FROM d__t WHERE id = 3").fetchall() == [(3,)]
    assert back(stage, repairer) == theirs
    assert stage.connection.execute("SELECT own FROM d__t ORDER BY id").fetchall() == [(1,), (2,), (3,), (9,)]
    assert back(stage, repairer) == theirs  # again


def test_what_the_source_touches_goes_round_again_and_is_taken_back(made: Any) -> None:
    stage, repairer = made([(1, "a", 1), (2, "b", 2)], [(1, "a", 0), (2, "b", 0)])
    stage.touches = {1: {(1,)}, 2: {(2,)}}  # the second look is behind the writing
    out = RepairOutcome()
    repairer.repair(PAIR, {(1,): "different", (2,): "different"}, out)
    assert (out.updated, out.equal, out.left.total()) == (2, 0, 0)
    assert len(list(repairer.undo.path.iterdir())) == 1
    stage.connection.execute("UPDATE d__t SET v = 0 WHERE id = 2")
    stage.touches = {number: {(2,)} for number in range(stage.looks, stage.looks + 20)}
    repairer.repair(PAIR, {(1,): "different", (2,): "different"}, out)
    assert (out.updated, out.equal) == (2, 1) and [*out.left.values()] == [1]
    assert stage.rows()[1] == (2, "b", 0)


def test_what_the_log_has_up_to_a_held_position_is_done_to_the_stage(
    made: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a key that is not known there nothing is written; the next round reads it again."""
    stage, repairer = made([(1, "a", 1), (2, "b", 2), (3, "c", 3)], [(1, "a", 0), (2, "b", 0), (3, "c", 0)])
    steps = [{(1,): (1, "a", 5), (2,): (), (3,): None}, {(2,): (2, "b", 6)}]
    monkeypatch.setattr(repair, "moved_rows", lambda *_: steps.pop(0))
    holding = Repairer(stage, repairer.target, lambda _: None, repairer.undo, repairer.lock)
    stage.connection.execute("DELETE FROM d__t WHERE id = 3")
    out = RepairOutcome()
    holding.repair(PAIR, {(1,): "different", (2,): "different", (3,): "different"}, out)
    assert (out.updated, out.equal, out.left.total(), steps) == (2, 1, 0, [])
    assert stage.rows() == [(1, "a", 5), (2, "b", 6)]
    assert len(list(repairer.undo.path.iterdir())) == 2


def test_nothing_is_deleted_that_the_report_does_not_call_extra(made: Any) -> None:
    stage, repairer = made([(2, "x", 2)], [(1, "a", 0), (3, "x", 3)])
    out = RepairOutcome()
    repairer.repair(PAIR, {(1,): "different", (2,): "missing"}, out)
    repairer.finish(PAIR, out)
    assert stage.rows() == [(1, "a", 0), (3, "x", 3)]
    assert out.left.total() == 2 and not out.inserted + out.deleted + out.updated
    assert not list(repairer.undo.path.iterdir())


def test_a_dry_run_counts(made: Any) -> None:
    stage, repairer = made([(1, "a", 1)], [(1, "a", 0)])
    out = RepairOutcome()
    dry = Repairer(stage, repairer.target, None, repairer.undo, repairer.lock, 1)
    dry.repair(PAIR, {(1,): "different"}, out)
    assert out.statements == ['UPDATE "d__t" SET "v" = 1 WHERE "id" = 1']
    assert out.updated == 1 and stage.rows() == [(1, "a", 0)] and not repairer.undo.is_used
