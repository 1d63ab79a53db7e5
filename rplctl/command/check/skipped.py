"""Report the triggers, views and other objects of the source that the target does not have, as a note (design D31)."""

from __future__ import annotations

from collections.abc import Iterator

from rplctl.channel import Channel
from rplctl.command.check.findings import Finding, found
from rplctl.skipped_objects import SkippedObjects, in_words


def check_skipped(channel: Channel) -> Iterator[Finding]:
    """Yield one finding with the number of skipped objects of each kind: triggers, views, routines and events.

    If the channel has skipped none, yield nothing. Raises RplError if the channel's list of skipped objects cannot be
    read.
    """
    if objects := SkippedObjects(channel).read():
        yield found("not_carried_out", f"not carried out: {in_words(objects)}", "rplctl history --last 0 (names them)")
