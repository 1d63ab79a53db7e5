"""`check`: report the triggers, views and other objects of the source that the target lacks, as a note (design D31)."""

from __future__ import annotations

from collections.abc import Iterator

from rplctl.channel import Channel
from rplctl.command.check.findings import Finding, found
from rplctl.skipped_objects import SkippedObjects, in_words


def check_skipped(channel: Channel) -> Iterator[Finding]:
    """Yield one finding with the number of objects of each kind, if there are any. Raises RplError if the record of
    them cannot be read.
    """
    if objects := SkippedObjects(channel).read():
        yield found("not_carried_out", f"not carried out: {in_words(objects)}", "rplctl history --last 0 (names them)")
