"""Decides when an applier starts Spark, and whether it waits for the start.

With `spark = always`, Spark starts with the applier, and the first batch waits for it. With `auto`, it starts when the
log is larger than one task decodes, and the driver decodes batches until it runs. On a cluster, each batch waits for
it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext

from rplctl.applier.interrupt import Interrupter
from rplctl.applier.spark.cluster import is_on_this_machine
from rplctl.applier.spark.pipeline import Pipeline, is_worth_a_job
from rplctl.applier.spark.session import ChannelSpark, keeps_tasks
from rplctl.config import Config


class SparkStart:
    """Starts the Spark of a pipeline when it is wanted. `ended`: called from another thread after the start."""

    def __init__(
        self,
        config: Config,
        spark: ChannelSpark,
        pipeline: Pipeline,
        interrupter: Interrupter,
        ended: Callable[[], None],
    ) -> None:
        self.pipeline = pipeline
        self.is_always = keeps_tasks(config)
        self._config, self._spark, self._interrupter, self._ended = config, spark, interrupter, ended
        if self.is_always:
            pipeline.begin_beside(ended)

    def death(self) -> str:
        """Return how the JVM ended, if this process did not end it; '' while it runs."""
        return self._spark.death()

    def is_wanted(self, size: int) -> bool:
        """True if `size` bytes of log are more than one task decodes.

        If the operator has set Spark options, Spark is started at once, whatever the size, so that they are tried.
        """
        is_plain = is_on_this_machine(self._config.spark_master) and not self._config.spark_conf
        return not is_plain or is_worth_a_job(size)

    def begin(self, size: int = 0) -> None:
        """Start Spark if it is wanted. `size`: the bytes of the next batch, 0 if there is none.

        On a cluster and with spark=always, wait for the start. Raises the error with which the start failed.
        """
        is_here = is_on_this_machine(self._config.spark_master) and not (self.is_always and size)
        if self.is_wanted(size):
            self.pipeline.begin_beside(self._ended)
        with nullcontext() if is_here or self.pipeline.has_begun else self._interrupter.abortable():
            self.pipeline.await_begun(wanted=not is_here)
