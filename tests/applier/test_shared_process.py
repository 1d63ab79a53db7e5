"""Channels that share a process: STOP, errors, logs and Spark's jobs of one are not those of another."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any, ClassVar

import pytest

from rplctl.applier import shared_process
from rplctl.applier.job import Applier
from rplctl.applier.shared_process import SharedProcess, SharedSpark
from rplctl.applier.spark.session import JavaLife, spark_settings
from rplctl.channel import Channel
from rplctl.config import Config
from rplctl.durable import private_folder
from rplctl.log_file import logging_as
from rplctl.status import read_status

TOLD = json.dumps({"spark_master": "local[1]"})
WRONG = json.dumps({"until": {"kind": "tomorrow"}})


@pytest.fixture(autouse=True)
def own_logging() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    for handler in set(root.handlers) - set(handlers):
        root.removeHandler(handler)
        handler.close()
    root.setLevel(level)


class Noted(Applier):
    """An applier that a test can look at. `made`: by the names of their channels."""

    made: ClassVar[dict[str, Noted]] = {}

    def __init__(self, config: Config, channel: Channel, *more: Any) -> None:
        super().__init__(config, channel, *more)
        self.made[channel.name] = self
        self.is_aborted = False

    def abort(self) -> None:
        self.is_aborted = True


@pytest.fixture(autouse=True)
def appliers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Noted, "made", {})
    monkeypatch.setattr(shared_process, "Applier", Noted)


def process(folder: Path, **channels: str) -> SharedProcess:
    for name in channels:
        private_folder(Channel(name, folder).run_folder)
    return SharedProcess(folder, folder / "run/shared-1", channels)


def stopped() -> dict[str, bool]:
    return {name: applier.stop.is_set() for name, applier in Noted.made.items()}


def test_sigterm_stops_the_channel_that_it_is_for_and_without_one_all(tmp_path: Path) -> None:
    made = process(tmp_path, a=TOLD, b=TOLD, c=TOLD)
    for name, pid in (("b", os.getpid()), ("c", 1)):  # c's is of a process that is gone
        Channel(name, tmp_path).stop_path.write_text(f"{pid}\n")
    made.stop()
    assert stopped() == {"a": False, "b": True, "c": False}
    made.stop()
    assert stopped() == {"a": True, "b": True, "c": True}
    assert not any(applier.is_aborted for applier in Noted.made.values())


@pytest.mark.parametrize(("of_b", "cleans"), [("always", False), ("auto", True)])
def test_sparks_cleaner_runs_where_the_batches_of_one_channel_are_jobs(of_b: str, cleans: bool, tmp_path: Path) -> None:
    (tmp_path / "rplctl.toml").write_text(f'[channel.b]\nspark = "{of_b}"\n')
    settings = spark_settings(process(tmp_path, a=TOLD, b=TOLD, c=TOLD).session_config, tmp_path, "")
    assert (settings.get("spark.cleaner.referenceTracking") != "false") is cleans


def test_when_nobody_waits_any_more_the_channel_is_severed_from_its_target_and_no_other(tmp_path: Path) -> None:
    made = process(tmp_path, a=TOLD, b=TOLD)
    Channel("b", tmp_path).stop_path.write_text(f"{os.getpid()} now\n")
    made.stop()
    assert stopped() == {"a": False, "b": True}
    assert [name for name, applier in Noted.made.items() if applier.is_aborted] == ["b"]


def test_the_process_is_left_only_by_the_last_of_its_channels() -> None:
    working = {"a", "b"}
    spark = SharedSpark(Future(), "a", working, JavaLife())
    assert spark.serves_others()
    working.discard("b")
    assert not spark.serves_others()


def test_what_is_wrong_with_one_is_in_its_status_and_its_log(tmp_path: Path) -> None:
    process(tmp_path, a=TOLD, b=WRONG)
    assert list(stopped()) == ["a"]
    a, b = (Channel(name, tmp_path) for name in "ab")
    assert read_status(b.status_path("applier")).last_errno == 1277
    assert "ERROR applier 'b': Incorrect parameter" in b.log_path("applier").read_text()
    with logging_as("a"):
        logging.getLogger("rplctl.applier.job").warning("to a")
    logging.getLogger("rplctl").warning("to nobody")
    assert a.log_path("applier").read_text().endswith("WARNING applier 'a': to a\n")
    assert not any("to nobody" in one.log_path("applier").read_text() for one in (a, b))


def test_jobs_are_in_the_channels_group_and_pool_and_its_end_cancels_no_others() -> None:
    calls: list[tuple[Any, ...]] = []

    class Context:
        def setJobGroup(self, *given: str) -> None:
            calls.append(("group", *given))

        def setLocalProperty(self, *given: str) -> None:
            calls.append(given)

        def cancelJobGroup(self, group: str) -> None:
            calls.append(("cancel", group))

    opened: Future[Any] = Future()
    spark = SharedSpark(opened, "a", {"a"}, JavaLife())
    spark.end()  # Spark is not there yet: nothing runs
    assert calls == []
    opened.set_result(Context())
    assert spark.open() is opened.result()
    spark.before_job()
    spark.end()
    group = "channel 'a'"
    assert calls == [("group", group, group), ("spark.scheduler.pool", group), ("cancel", group)]


def test_a_spark_that_does_not_start_is_told_by_each_channel() -> None:
    opened: Future[Any] = Future()
    opened.set_exception(RuntimeError("no Java"))
    spark = SharedSpark(opened, "a", {"a"}, JavaLife())
    with pytest.raises(RuntimeError, match="no Java"):
        spark.open()
    spark.end()
