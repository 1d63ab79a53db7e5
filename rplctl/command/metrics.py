"""`metrics`: return the state of every channel as Prometheus samples.

mysql_*    samples with the names and values that mysqld_exporter derives from SHOW SLAVE STATUS. So the dashboards for
           mysqld_exporter and the alerts of mysqld-mixin work unchanged.
rplctl_*   samples of values that a server does not have

Invariant: an unknown value has no sample. For example, a stopped channel has no lag, not even its last known lag. An
alert can test for this by `absent()`, or use mysql_slave_status_slave_sql_running.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, cast

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, UntypedMetricFamily
from prometheus_client.metrics_core import Metric

from rplctl import __version__
from rplctl.command.channel.true_lag import heartbeats
from rplctl.command.process.thread_report import ThreadReport, Threads
from rplctl.command.show_status import WORKLOG_COLUMNS, SlaveStatus
from rplctl.command.watching.seen import STATES, Seen, state_of
from rplctl.durable import replacing, write_all
from rplctl.errors import UsageError

_SERVER_LABELS = ("master_host", "master_uuid", "channel_name", "connection_name")
_WORDS = {"yes": 1.0, "on": 1.0, "no": 0.0, "off": 0.0, "disabled": 0.0, "connecting": 0.0}
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?", re.IGNORECASE | re.ASCII)
_SUFFIX = ".prom"
_OTHERS_MAY_READ = 0o644


def metrics(channels: Sequence[Seen], at: float) -> bytes:
    """Return the state of the channels in Prometheus's text format. `at` is the time of the reading in Unix seconds."""
    return generate_latest(_OnDemand(channels, at))


def samples(channels: Sequence[Seen], at: float) -> list[dict[str, object]]:
    """Return the samples as rows with the fields Name, Labels (a mapping) and Value. The parameters are those of
    `metrics`.
    """
    found = (sample for metric in _metrics_of(channels, at) for sample in metric.samples)
    return [{"Name": s.name, "Labels": s.labels, "Value": s.value} for s in found]


def alert_rules() -> str:
    """Return Prometheus's alert rules for the samples of `metrics`, as YAML."""
    return files("rplctl.command.watching").joinpath("alerts.yml").read_text()


def write_textfile(path: Path, text: bytes) -> None:
    """Write a file for the textfile collector of node_exporter, atomically and readable by everyone.

    Raises UsageError if the name does not end in `.prom`, and OSError if the file cannot be written.
    """
    if path.suffix != _SUFFIX:
        raise UsageError(
            f"--textfile {path}: node_exporter reads files that end in {_SUFFIX} only",
            hint=f"to use such a name, run: rplctl metrics --textfile {path}{_SUFFIX}",
        )
    with replacing(path) as descriptor:
        os.fchmod(descriptor, _OTHERS_MAY_READ)
        write_all(descriptor, text)


class _OnDemand(CollectorRegistry):
    """A registry for `generate_latest`. It computes the metrics of the channels only when they are collected."""

    def __init__(self, channels: Sequence[Seen], at: float) -> None:
        self._found = _metrics_of(channels, at)

    def collect(self) -> Iterator[Metric]:
        return self._found


def _metrics_of(channels: Sequence[Seen], at: float) -> Iterator[Metric]:
    there = [(each, each.status, each.threads) for each in channels if each.status and each.threads]
    is_up = bool(there) and len(there) == len(channels)
    yield GaugeMetricFamily("mysql_up", "Whether every channel's state could be read.", float(is_up))
    for column in WORKLOG_COLUMNS:
        yield from _server_metric(column, [status for _, status, _ in there])
    info = GaugeMetricFamily("rplctl_info", "The program.", labels=["version"])
    info.add_metric([__version__], 1)
    yield info
    yield GaugeMetricFamily("rplctl_seen_timestamp_seconds", "Time at which the channels were read.", at)
    up = GaugeMetricFamily("rplctl_channel_up", "Whether the channel's state could be read.", labels=[_CHANNEL])
    for each in channels:
        up.add_metric([each.channel], float(each.status is not None))
    yield up
    for kind, rows in ((CounterMetricFamily, _COUNTERS), (GaugeMetricFamily, _GAUGES)):
        for name, help, value in rows:
            yield _filled(kind(name, help, labels=[_CHANNEL]), there, value)
    yield from _heartbeat_metrics([(each.at, threads) for each, _, threads in there])
    yield from _thread_metrics([(each, t) for each, _, threads in there for t in (threads.receiver, threads.applier)])


_CHANNEL = "channel_name"
_There = tuple[Seen, SlaveStatus, Threads]
_Value = Callable[[Seen, SlaveStatus], float | None]
_COUNTERS: tuple[tuple[str, str, _Value], ...] = (
    ("rplctl_transactions_applied", "Transactions since the applier's start.", lambda _, s: s.Transactions_Applied),
    ("rplctl_row_changes_applied", "Row changes since the applier's start.", lambda _, s: s.Row_Changes_Applied),
    ("rplctl_rows_by_spark", "Rows that tasks of Spark decoded.", lambda _, s: s.Rows_By_Spark),
    ("rplctl_rows_by_driver", "Rows that the applier decoded itself.", lambda _, s: s.Rows_By_Driver),
    (
        "rplctl_retried_transactions",
        "Transactions retried after deadlocks and lock waits.",
        lambda _, s: s.Retried_transactions,
    ),
    (
        "rplctl_passed_over_errors",
        "Errors ignored by replica_exec_mode and similar options.",
        lambda _, s: s.Passed_Over_Errors,
    ),
)
_GAUGES: tuple[tuple[str, str, _Value], ...] = (
    (
        "rplctl_last_synced_timestamp_seconds",
        "Time of the last successful start --until-synced.",
        lambda seen, _: seen.synced_at,
    ),
    (
        "rplctl_from_cron",
        "1 if cron runs the channel, so that a stopped thread is normal.",
        lambda seen, _: seen.is_from_cron,
    ),
    ("rplctl_true_lag_seconds", "Lag by the source's clock.", lambda _, s: s.True_Lag),
    ("rplctl_clock_skew_seconds", "The source's clock minus the local clock.", lambda _, s: s.Clock_Skew),
    (
        "rplctl_source_purge_in_seconds",
        "Time until the source purges the log that is read next.",
        lambda _, s: s.Source_Purge_In,
    ),
    (
        "rplctl_relay_disk_full_in_seconds",
        "Time until the disk of the relay logs is full, at the rate of the last minutes.",
        lambda _, s: s.Relay_Disk_Full_In,
    ),
    ("rplctl_spark_workers", "Number of Spark tasks that run at the same time.", lambda _, s: s.Spark_Workers),
    ("rplctl_clone_tables", "Tables that rplctl clone copies and has copied.", lambda _, s: s.Clone_Tables),
    ("rplctl_clone_tables_done", "Tables that rplctl clone has copied.", lambda _, s: s.Clone_Tables_Done),
    ("rplctl_clone_rows_per_second", "Rows per second of a running copy.", lambda _, s: s.Clone_Rows_Per_Second),
    ("rplctl_clone_seconds_left", "Estimated remaining time of a copy.", lambda _, s: s.Clone_Seconds_Left),
    (
        "rplctl_verify_timestamp_seconds",
        "Start of the last complete verify.",
        lambda _, s: _moment(s.Verify_Timestamp),
    ),
    (
        "rplctl_verify_differences",
        "Differing rows of the last verify.",
        lambda _, s: _of_verify(s, s.Verify_Differences),
    ),
    (
        "rplctl_verify_tables_not_compared",
        "Tables that the last verify could not compare.",
        lambda _, s: _of_verify(s, s.Verify_Tables_Not_Compared),
    ),
)


def _filled(metric: Any, there: Iterable[_There], value: _Value) -> Metric:
    for each, status, _ in there:
        if (found := value(each, status)) is not None:
            metric.add_metric([each.channel], found)
    return cast(Metric, metric)


def _moment(text: str) -> float | None:
    return time.mktime(time.strptime(text, "%y%m%d %H:%M:%S")) if text else None


def _of_verify(status: SlaveStatus, value: int) -> float | None:
    return value if status.Verify_Timestamp else None


def _server_metric(column: str, there: Iterable[SlaveStatus]) -> Iterator[Metric]:
    name = f"mysql_slave_status_{column.lower()}"
    metric = UntypedMetricFamily(name, "Generic metric from SHOW SLAVE STATUS.", labels=_SERVER_LABELS)
    for status in there:
        value = as_number(getattr(status, column))
        if value is not None:
            metric.add_metric([status.Master_Host, status.Master_UUID, status.Channel_Name, ""], value)
    if metric.samples:
        yield metric


def as_number(value: object) -> float | None:
    """Return a column's value as the number that mysqld_exporter derives from this value.

    Return None if mysqld_exporter derives no number. The number is 1 or 0 for a word that means yes or no, and the
    value itself if it consists of digits.
    """
    text = "" if value is None else str(value)
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    return float(text) if _NUMBER.fullmatch(text) else None


def _heartbeat_metrics(there: Iterable[tuple[float, Threads]]) -> Iterator[Metric]:
    """Yield the two metrics that mysqld_exporter derives from pt-heartbeat's table: the present time and the stored
    time.

    The present time is that of the source's clock. `there` has the time of the reading and the threads of each channel.
    """
    labels = ["server_id"]
    now = GaugeMetricFamily("mysql_heartbeat_now_timestamp_seconds", "Timestamp of the current server.", labels=labels)
    stored = GaugeMetricFamily(
        "mysql_heartbeat_stored_timestamp_seconds", "Timestamp stored in the heartbeat table.", labels=labels
    )
    # If several channels have the row of the same server, the one with the oldest row counts.
    rows: dict[int, tuple[float, float]] = {}
    for seen_at, threads in there:
        clock = seen_at + threads.receiver.status.clock_difference
        for server, beat in heartbeats(threads.applier.status.heartbeats).items():
            rows[server] = min(rows.get(server, (beat, clock)), (beat, clock))
    for server, (beat, clock) in rows.items():
        now.add_metric([str(server)], max(clock, beat))
        stored.add_metric([str(server)], beat)
    if rows:
        yield from (now, stored)


def _thread_metrics(threads: Sequence[tuple[Seen, ThreadReport]]) -> Iterator[Metric]:
    state = GaugeMetricFamily(
        "rplctl_thread_state", "1 for the present state of the thread.", labels=[_CHANNEL, "thread", "state"]
    )
    errno = GaugeMetricFamily(
        "rplctl_thread_last_errno", "Last error of the thread; 0 without an error.", labels=[_CHANNEL, "thread"]
    )
    heard = GaugeMetricFamily(
        "rplctl_thread_heard_seconds", "Time since the last report of the thread.", labels=[_CHANNEL, "thread"]
    )
    for each, thread in threads:
        labels = [each.channel, thread.role]
        for name in STATES:
            state.add_metric([*labels, name], float(name == state_of(thread)))
        errno.add_metric(labels, thread.status.last_errno)
        if thread.runs:
            heard.add_metric(labels, max(0.0, each.at - thread.status.updated))
    yield from (state, errno, heard)
