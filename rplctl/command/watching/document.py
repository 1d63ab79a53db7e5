"""Convert the observed state of all channels to a JSON document, for /status.json of `serve` and its page."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from rplctl.command.check.verb import WORDS, Verdict
from rplctl.command.watching.seen import Seen
from rplctl.command.watching.watch import Moment, Point


def document(moment: Moment, version: str) -> dict[str, Any]:
    """Return the data of /status.json. `version` is that of rplctl.

    The rows of its `history` are [Unix seconds, lag in seconds or null, row changes per second, bytes of relay logs].
    """
    error = moment.error
    return {
        "schema_version": 1,
        "version": version,
        "time": moment.at,
        "error": {"text": error.message, "hint": error.hint} if error else None,
        "channels": [
            _channel(each, moment.verdicts.get(each.channel), moment.history.get(each.channel, ()))
            for each in moment.channels
        ],
        "events": [asdict(event) for event in moment.events],
    }


def _channel(each: Seen, verdict: Verdict | None, history: tuple[Point, ...]) -> dict[str, Any]:
    receiver, applier = each.states
    return {
        "channel": each.channel,
        "level": WORDS[verdict.level] if verdict else "UNKNOWN",
        "text": verdict.text if verdict else each.error.message if each.error else "",
        "findings": verdict.shown if verdict else [],
        "receiver": receiver,
        "applier": applier,
        "status": asdict(each.status) if each.status else None,
        "error": {"errno": each.error.errno, "text": each.error.message, "hint": each.error.hint}
        if each.error
        else None,
        "history": [[round(p.at), p.lag_s, round(p.rows_per_s, 1), p.relay_log_bytes] for p in history],
    }
