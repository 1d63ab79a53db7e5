"""Which strategy takes a batch that another one rejects; docs/architecture.md has the same table."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from rplctl import mysql_errors as er
from rplctl.applier.apply import strategy
from rplctl.applier.apply.live_tables import NotTransactional
from rplctl.applier.apply.strategy import NEXT, Applied, Reason, Rejected, Strategy, next_work, outcome_of
from rplctl.applier.apply.table_groups import ConflictingGroups
from rplctl.applier.feed.plan import STATEMENTS_PER_COMMIT, Batch, BatchKind, plan_batches
from rplctl.commit.ambiguous_commit import InDoubt
from rplctl.decode.net_changes import Inconsistent
from rplctl.errors import LockBusy, RplError, TargetError
from rplctl.target.base import CountMismatch, KeylessMismatch
from tests.applier.demo_log import demo_groups
from tests.house.code import ROOT

ERROR = RplError("the batch's own error")
PAGE = ROOT / "docs" / "architecture.md"


@pytest.fixture
def batch() -> Batch:
    groups = demo_groups()
    found = next(batch for batch in plan_batches(groups, len(groups.scan)) if batch.kind is BatchKind.BULK)
    return replace(found, last=found.first + 8)


def rejected(batch: Batch, reason: Reason) -> Rejected:
    return Rejected(reason=reason, batch=batch, error=ERROR)


def section() -> str:
    return PAGE.read_text().partition("## The strategies of a batch\n")[2].partition("\n## ")[0]


def documented() -> dict[tuple[Strategy, Reason], list[Strategy]]:
    rows = re.findall(r"^\| `([A-Z_]+)` \| `([A-Z_]+)`: [^|]+\. \| ([^|]+) \|$", section(), re.M)
    return {
        (Strategy[name], Reason[reason]): [Strategy[word] for word in re.findall(r"`([A-Z_]+)`", following)]
        for name, reason, following in rows
    }


def test_the_page_of_the_architecture_explains_each_strategy() -> None:
    explained = re.findall(r"^\| `([A-Z_]+)` \| [^`|]", section(), re.M)
    assert sorted(explained) == sorted(member.name for member in Strategy)


def test_the_page_of_the_architecture_has_each_edge_and_no_other(batch: Batch, monkeypatch: pytest.MonkeyPatch) -> None:
    found: dict[tuple[Strategy, Reason], list[Strategy]] = {edge: [] for edge in NEXT}
    for most in (4, 1000):  # eight transactions are a long batch, then a short one
        monkeypatch.setattr(strategy, "MOST_IN_ORDER", most)
        for edge, following in found.items():
            work = next(next_work(edge[0], rejected(batch, edge[1]), lambda: None))
            following.extend({work.strategy} - {*following})
    assert found == documented()


def test_the_page_of_the_architecture_has_the_sizes_of_the_code() -> None:
    limits = set(re.findall(r"(?:at most|[Mm]ore than) ([\d,]+) transactions", section()))
    assert limits == {f"{strategy.MOST_IN_ORDER:,}"}
    assert f"| up to {STATEMENTS_PER_COMMIT} | `IN_ORDER`;" in PAGE.read_text()


@pytest.mark.parametrize("edge", NEXT, ids=lambda edge: f"{edge[0].name}-{edge[1].name}")
def test_the_next_work_is_the_rejected_batch_in_its_order(
    batch: Batch, edge: tuple[Strategy, Reason], monkeypatch: pytest.MonkeyPatch
) -> None:
    for most in (1000, 4):
        monkeypatch.setattr(strategy, "MOST_IN_ORDER", most)
        works = list(next_work(edge[0], rejected(batch, edge[1]), lambda: None))
        assert (works[0].batch.first, works[-1].batch.last) == (batch.first, batch.last)
        assert all(one.batch.last == other.batch.first for one, other in pairwise(works))


def test_a_pair_that_is_not_in_the_table_raises_the_batchs_error(batch: Batch) -> None:
    for edge in [(name, reason) for name in Strategy for reason in Reason if (name, reason) not in NEXT]:
        with pytest.raises(RplError) as caught:
            next_work(edge[0], rejected(batch, edge[1]), lambda: None)
        assert caught.value is ERROR


def test_one_transaction_that_a_lake_refuses_is_its_error(batch: Batch) -> None:
    with pytest.raises(RplError) as caught:
        next_work(Strategy.LAKE, rejected(replace(batch, last=batch.first + 1), Reason.REFUSED), lambda: None)
    assert caught.value is ERROR


def test_a_stop_comes_between_two_transactions(batch: Batch) -> None:
    asked: list[int] = []
    works = next_work(Strategy.IN_ORDER, rejected(batch, Reason.REFUSED), lambda: asked.append(1))
    next(works)
    assert len(asked) == 1
    next(works)
    assert len(asked) == 2


REASONS = [
    (Inconsistent("x"), Reason.UNFIT),
    (NotTransactional("x"), Reason.KEEPS_CHANGES),
    (ConflictingGroups("x"), Reason.CONFLICT),
    (KeylessMismatch("d", "t"), Reason.ROWS_ALIKE),
    (CountMismatch("x"), Reason.REFUSED),
    (TargetError("x", errno=1062), Reason.REFUSED),
    (RplError("x", errno=er.ERROR_ON_WRITE), Reason.NOT_BY_ROWS),
    (LockBusy("x"), Reason.NOT_BY_ROWS),
]


def raising(error: Exception) -> Any:
    def apply() -> int:
        raise error

    return apply


@pytest.mark.parametrize(("error", "reason"), REASONS, ids=lambda value: type(value).__name__)
def test_an_error_becomes_the_reason_of_the_rejection(batch: Batch, error: Exception, reason: Reason) -> None:
    assert outcome_of(raising(error), batch) == Rejected(reason=reason, batch=batch, error=error)


@pytest.mark.parametrize("error", [InDoubt("x"), TargetError("x", errno=1213, transient=True)], ids=["doubt", "passes"])
def test_an_error_that_says_nothing_of_the_batch_is_raised(batch: Batch, error: Exception) -> None:
    with pytest.raises(TargetError) as caught:
        outcome_of(raising(error), batch)
    assert caught.value is error


def test_what_is_applied_is_counted(batch: Batch) -> None:
    assert outcome_of(lambda: 3, batch) == Applied(3)
