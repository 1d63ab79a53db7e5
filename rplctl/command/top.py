"""`top`: return one short line for each channel, the channel with the worst problem first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from rplctl.command.check.verb import UNKNOWN, Verdict, worst_first
from rplctl.command.watching.seen import Seen
from rplctl.command.watching.watch import Moment, Point


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line about a channel.

    `lags` has the lags of the last hour in seconds, the oldest first; None if unknown. `incident` is the problem of the
    channel, with the command that repairs it.
    """

    channel: str
    level: int  # index of check's WORDS
    receiver: str
    applier: str
    incident: str
    lag_s: int | None = None
    lags: tuple[int | None, ...] = ()
    rows_per_s: float = 0.0
    relay_log_bytes: int = 0
    doing: str = ""


_Order = Callable[[Line], tuple[object, ...]]
ORDERS: Final[dict[str, _Order]] = {
    "state": lambda line: (-worst_first(line.level), -(line.lag_s or 0), line.channel),
    "lag": lambda line: (-(float("inf") if line.lag_s is None else line.lag_s), line.channel),
    "rows": lambda line: (-line.rows_per_s, line.channel),
    "relay-log": lambda line: (-line.relay_log_bytes, line.channel),
    "name": lambda line: (line.channel,),
}


def lines(moment: Moment, order: str = "state") -> list[Line]:
    """Return the lines of all channels at one moment of a Watch. `order` is a key of ORDERS."""
    found = [
        _line(each, moment.verdicts.get(each.channel), moment.history.get(each.channel, ())) for each in moment.channels
    ]
    return sorted(found, key=ORDERS[order])


def _line(each: Seen, verdict: Verdict | None, history: Sequence[Point]) -> Line:
    level = verdict.level if verdict else UNKNOWN
    status, error = each.status, each.error
    receiver, applier = each.states
    if status is None:
        said = _said(error.message, error.hint) if error else ""
        return Line(channel=each.channel, level=level, receiver=receiver, applier=applier, incident=said)
    return Line(
        channel=each.channel,
        level=level,
        receiver=receiver,
        applier=applier,
        incident=_incident(status.Last_SQL_Error or status.Last_IO_Error, verdict),
        lag_s=status.Seconds_Behind_Master,
        lags=tuple(point.lag_s for point in history),
        rows_per_s=history[-1].rows_per_s if history else 0.0,
        relay_log_bytes=status.Relay_Log_Space,
        doing=status.Slave_SQL_Running_State or status.Slave_IO_State,
    )


def _incident(error: str, verdict: Verdict | None) -> str:
    """Return a text about the problem of a channel: the error of a thread, or else the worst finding of `check`.

    Return '' if there is no problem.
    """
    if error:
        return error
    serious = [each for each in verdict.findings if each.level] if verdict else []
    serious.sort(key=lambda each: -worst_first(each.level))
    return _said(serious[0].text, serious[0].repair) if serious else ""


def _said(text: str, repair: str) -> str:
    return f"{text}: {repair}" if repair else text
