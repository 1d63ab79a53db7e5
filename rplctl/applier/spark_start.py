"""Decides when an applier starts Spark, and whether the applier waits for the start.

With `spark = always`, Spark starts with the applier, and the first batch waits for it. With `spark = auto`, Spark
starts when so much of the relay log is waiting that a Spark job is worthwhile. Until Spark runs, the applier itself
(the driver) decodes the batches. On a cluster, each batch waits for Spark.
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
    """Starts Spark for a pipeline when it is needed.

    `ended`: called at the end of the start, also if the start failed, from another thread.
    """

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
        """Return a sentence that says how Spark's JVM ended, or '' if the JVM runs or this process has ended it."""
        return self._spark.death()

    def is_wanted(self, size: int) -> bool:
        """True if `size` bytes of relay log are a reason to start Spark, because they are worth a Spark job.

        On a cluster, and if the operator has set Spark options, the answer is always True, so that the settings are
        tried at once.
        """
        is_plain = is_on_this_machine(self._config.spark_master) and not self._config.spark_conf
        return not is_plain or is_worth_a_job(size)

    def begin(self, size: int = 0) -> None:
        """Start Spark if it is needed. `size`: the bytes of the next batch, or 0 if there is none.

        On a cluster, wait until Spark runs. With spark=always, wait if there is a next batch. Raises the error with
        which the start failed.
        """
        is_here = is_on_this_machine(self._config.spark_master) and not (self.is_always and size)
        if self.is_wanted(size):
            self.pipeline.begin_beside(self._ended)
        with nullcontext() if is_here or self.pipeline.has_begun else self._interrupter.abortable():
            self.pipeline.await_begun(wanted=not is_here)
