"""A Spark on other machines: the operator's settings, protection from other users, and checks of the executors.

Invariant: rows and statements are sent only to processes that prove that they know the cluster's secret, and only
encrypted. The option `insecure_cluster` switches off the proof and the encryption. No argument and no environment
variable of an rplctl process contains a secret.
"""

from __future__ import annotations

import logging
import re
import secrets
import socket
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rplctl.config import Config, spark_conf_of
from rplctl.durable import replace_file
from rplctl.errors import ConfigError, RplError
from rplctl.secret import check_reference, reveal
from rplctl.status import NO_EXECUTORS

if TYPE_CHECKING:
    from pyspark import SparkContext

log = logging.getLogger(__name__)
SECRET: Final = "spark.authenticate.secret"
EXECUTOR_PYTHON: Final = "spark.pyspark.python"
DRIVER_JAVA_OPTIONS: Final = "spark.driver.extraJavaOptions"
# Spark creates the secret itself and gives it to the executors. For a standalone cluster, whose daemons others start,
# the operator sets the secret. Messages without the secret are not deserialised.
KEEP_OUT: Final = {
    "spark.authenticate": "true",
    "spark.network.crypto.enabled": "true",
    "spark.network.crypto.saslFallback": "false",
}
_OURS: Final = frozenset(
    {*KEEP_OUT, "spark.master", "spark.app.name", "spark.submit.deployMode", "spark.python.daemon.module"}
)
_WAIT_S: Final = 0.5
_PATIENCE_S: Final = 10.0  # an executor needs seconds to start, so nothing is reported before
_FORGOTTEN_S: Final = 30.0
_LIBRARIES: Final = ("rplctl", "pyspark", "numpy", "numba")
Versions = tuple[tuple[str, str], ...]  # (name, version)


def is_on_this_machine(master: str) -> bool:
    """True if Spark is in local mode, so that its tasks see the same files as this process. `master`: its URL."""
    return not master or re.fullmatch(r"local(\[.*\])?", master) is not None


def given_settings(config: Config) -> dict[str, str]:
    """Return the Spark settings in the option `spark_conf`, with the secret revealed.

    Raises ConfigError if only rplctl may set one of these settings, or if the secret cannot be read.
    """
    found = spark_conf_of(config.spark_conf)
    for name in sorted(found.keys() & _OURS):
        hint = "--spark-master" if name == "spark.master" else "insecure_cluster" if name in KEEP_OUT else ""
        raise ConfigError(f"spark_conf: {name} is set by rplctl", hint=f"see {hint}, man rplctl" if hint else "")
    if secret := found.get(SECRET):
        check_reference(secret)
        found[SECRET] = reveal(secret, config.datadir)
    return found


def protection(master: str, given: Mapping[str, str], *, is_insecure: bool) -> dict[str, str]:
    """Return the Spark settings that keep other users out. `given`: the operator's settings.

    `is_insecure`: the option `insecure_cluster`. Raises ConfigError if the protection needs a secret that the operator
    has not set.
    """
    if is_on_this_machine(master):
        return KEEP_OUT
    if is_insecure:
        return {}
    if master.startswith("local-cluster"):
        return KEEP_OUT | {SECRET: secrets.token_hex(32)}
    if master.startswith("spark://") and SECRET not in given:
        raise ConfigError(
            f"{master}: a standalone cluster needs a secret, because without one any host of its network could read "
            "the replicated rows, or send false ones",
            hint="set spark.authenticate, spark.network.crypto.enabled and spark.authenticate.secret of master and "
            "workers, and here --spark-conf spark.authenticate.secret=file:PATH (man 7 rplctl-cluster)\n"
            "To use the cluster without protection, add: --insecure-cluster",
        )
    return KEEP_OUT


@dataclass(frozen=True, slots=True)
class VisibilityProbe:
    """A file of this machine with a random content. An executor that can read it can also read the relay logs."""

    path: str
    token: str

    def is_seen(self) -> bool:
        try:
            return Path(self.path).read_text() == self.token
        except (OSError, UnicodeDecodeError):
            return False


@dataclass(frozen=True, slots=True)
class Executor:
    """The executor that runs a task: its host, its versions, and whether it sees the driver's files."""

    host: str
    sees_files: bool
    versions: Versions


def look_around(probe: VisibilityProbe | None) -> Executor:
    """Describe the environment of the executor that runs this task.

    `probe`: the file that shows whether the executor sees the driver's files, or None if it need not see them.
    """
    return Executor(socket.gethostname(), probe is not None and probe.is_seen(), own_versions())


@cache
def own_versions() -> Versions:
    """Return the versions of Python and of the libraries that decode rows."""
    from importlib.metadata import version  # each command loads this module

    python = ".".join(map(str, sys.version_info[:2]))
    return (("Python", python), *((name, version(name)) for name in _LIBRARIES))


def refuse_other_versions(executors: Sequence[Executor], wanted: Versions) -> None:
    """Raise RplError if an executor has other versions than the applier, because it may decode a row differently.

    `wanted`: the versions of the applier.
    """
    for executor in executors:
        for (name, theirs), (_, ours) in zip(executor.versions, wanted, strict=True):
            if theirs != ours:
                raise RplError(
                    f"the executor on {executor.host} has {name} {theirs}, the applier's machine has {ours}",
                    hint="install the same versions there, in the folder that spark_conf spark.pyspark.python names, "
                    "then run: rplctl start",
                )


class Cluster:
    """The Spark cluster of one channel.

    `says`: shows a text as the applier's state, or '' to show none. `archive`: the folder of binary logs that the
    channel reads. Executors may see this folder, too.

    After a restart, a standalone master no longer knows this Spark context, and does not report this. If a context has
    lost all its executors, rplctl therefore ends the context, but only once. The pipeline then opens another context.
    """

    def __init__(
        self, run_folder: Path, given: Mapping[str, str], says: Callable[[str], None], archive: Path | None = None
    ) -> None:
        path = run_folder / "witness"
        self.probe = VisibilityProbe(str(path), secrets.token_hex(16))
        replace_file(path, self.probe.token.encode(), durable=False)
        self.carries = False  # True if the executors do not see the relay log
        self.archive = archive
        self._wanted = int(given.get("spark.executor.instances", "1"))
        self._says = says
        self._reported = ""
        self._had_some = False
        self._alone_since = 0.0

    def reads(self, words: str) -> None:
        """Log `words`, which say how the executors get the relay log's bytes, if they have changed."""
        if words != self._reported:
            self._reported = words
            log.info(words)

    def await_executors(self, context: SparkContext) -> None:
        """Wait until the context has an executor, or until it has ended."""
        while not is_over(context) and not self.has_executors(context):
            time.sleep(_WAIT_S)

    def has_executors(self, context: SparkContext) -> bool:
        """True if the context has an executor. After _PATIENCE_S seconds without executors, the applier reports this.

        If a context that had executors has none for _FORGOTTEN_S seconds, although its master answers, the context is
        ended.
        """
        count = len(_java(context).statusTracker().getExecutorInfos()) - 1  # the driver is one of them
        if count > 0:
            self._had_some = True
            if self._alone_since:
                self._alone_since = 0.0
                self._says("")
            return True
        self._alone_since = self._alone_since or time.monotonic()
        alone_s = time.monotonic() - self._alone_since
        if alone_s > _PATIENCE_S:
            self._says(f"{NO_EXECUTORS}: 0 of {self._wanted}")
        if self._had_some and alone_s > _FORGOTTEN_S and _answers(str(context.master)):
            self._had_some = False
            _java(context).stop()
        return False


def _answers(master: str) -> bool:
    """True if a master in the URL of a standalone cluster accepts a connection. The URL may name several masters."""
    for place in master.removeprefix("spark://").split(",") if master.startswith("spark://") else ():
        host, _, port = place.rpartition(":")
        with suppress(OSError, ValueError), socket.create_connection((host.strip("[]"), int(port)), _WAIT_S):
            return True
    return False


def is_over(context: SparkContext) -> bool:
    """True if the context has been ended, by this process or by its cluster."""
    return context._jsc is None or bool(_java(context).isStopped())


def _java(context: SparkContext) -> Any:
    return context._jsc.sc()
