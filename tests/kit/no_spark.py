"""An applier in the test's own process that does its tasks itself: for tests whose promise is not Spark."""

from __future__ import annotations

from typing import Any

import pytest

from rplctl.applier import job
from rplctl.applier.spark.in_process import InProcessPipeline


class NoSpark:
    """In place of `OwnSpark`; it serves others, so that STOP does not end the test's process."""

    def __init__(self, *_: object) -> None: ...

    def open(self) -> Any:
        return object()

    def begin(self) -> None: ...

    def before_job(self) -> None: ...

    def pool(self) -> None: ...

    def end(self) -> None: ...

    def death(self) -> str:
        return ""

    def serves_others(self) -> bool:
        return True


@pytest.fixture
def without_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job, "OwnSpark", NoSpark)
    monkeypatch.setattr(job, "Pipeline", InProcessPipeline)
