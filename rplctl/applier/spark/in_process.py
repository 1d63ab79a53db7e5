"""A batch's tasks without Spark: in this process, one after another.

For `crash-test` and tests. What Spark does is pure (design D1: no database access, may run twice), so a crash is no
other with it than without it.
"""

from __future__ import annotations

from collections.abc import Sequence

from rplctl.applier.spark.pipeline import Pipeline, Split, UnknownTables, chunks_of, run_split
from rplctl.schema.plan import Catalog
from rplctl.target.base import TableChunk


class InProcessPipeline(Pipeline):
    def __init__(self) -> None:
        self.jobs = 0

    @classmethod
    def open(cls, *_: object) -> InProcessPipeline:
        """In place of `Pipeline.open`: no first job is needed."""
        return cls()

    def decode(self, splits: Sequence[Split], catalog: Catalog) -> list[TableChunk]:
        self.jobs += 1
        results = [run_split(split, catalog) for split in splits]
        if unknown := {name for result in results for name in result.unknown}:
            raise UnknownTables(sorted(unknown))
        return [chunk for result in results for chunk in chunks_of(result)]

    @property
    def parallelism(self) -> int:
        return 2
