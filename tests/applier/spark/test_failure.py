"""An error of a silent JVM waits for its death; an error that the JVM told does not."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from types import SimpleNamespace

import pytest
from py4j.protocol import Py4JNetworkError
from pyspark import SparkContext

from rplctl.applier.spark.failure import await_end_of_java, end_of_java, memory_kills

Process = subprocess.Popen[bytes]


@pytest.fixture
def dying(monkeypatch: pytest.MonkeyPatch) -> Iterator[Process]:
    with subprocess.Popen(["sh", "-c", "sleep 0.3; kill -9 $$"]) as process:
        monkeypatch.setattr(SparkContext, "_gateway", SimpleNamespace(proc=process))
        yield process


@pytest.mark.parametrize(
    "error", [ConnectionRefusedError(111, "Connection refused"), EOFError(), Py4JNetworkError("Answer is empty")]
)
def test_who_hears_nothing_from_java_waits_until_it_is_seen_dead(dying: Process, error: Exception) -> None:
    assert not end_of_java(dying, memory_kills())
    await_end_of_java(error)
    assert "was killed by signal 9 (SIGKILL)" in end_of_java(dying, memory_kills())


def test_an_error_from_elsewhere_does_not_wait_for_a_java_that_lives(dying: Process) -> None:
    await_end_of_java(OSError(28, "No space left on device"))
    assert not end_of_java(dying, memory_kills())
