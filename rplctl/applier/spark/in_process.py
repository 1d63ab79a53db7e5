"""Runs a batch's tasks without Spark: in this process, one after another.

`crash-test` and tests use this module. The tasks do not connect to a database and may run twice (design D1), so a crash
has the same effects with and without Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from rplctl.applier.spark.pipeline import Pipeline
from rplctl.applier.spark.split_task import SplitResult
from rplctl.schema.plan import Catalog


class InProcessPipeline(Pipeline):
    def __init__(self, *_: object, **__: object) -> None:
        self.cluster = self._pool = None
        self.has_begun = True
        self._beginning = None
        self.spark_jobs = self.small_jobs = 0

    def begin(self) -> None:
        self.has_begun = True

    def _collect(
        self, pieces: Sequence[Any], catalog: Catalog, task: Callable[[Any, Catalog], SplitResult]
    ) -> list[SplitResult]:
        self.spark_jobs += 1
        return [task(piece, catalog) for piece in pieces]

    @property
    def workers(self) -> int:
        return 0

    @property
    def parallelism(self) -> int:
        return 2

    @property
    def jobs(self) -> int:
        return self.spark_jobs + self.small_jobs
