"""A verify that was killed goes on behind the tables that were done; another request begins anew."""

from __future__ import annotations

from pathlib import Path

from rplctl.channel import Channel
from rplctl.verify.progress import Progress
from rplctl.verify.report_file import Difference, Header, Totals, read_report

HEADER = Header(channel="", time=1.0, server_id=1, uuid="", position="", gtids="", tables=("d.t", "d.u"))
FOUND = Difference(database="d", table="t", kind="missing", key={"id": "1"})


def test_what_is_done_is_kept(tmp_path: Path) -> None:
    channel = Channel("", tmp_path)
    first = Progress(channel, "all")
    first.begin(HEADER)
    for name in ("t", "u"):
        with first.table(("d", name)) as write:
            write([FOUND])
    first.add(Totals(database="d", table="t", rows=2, equal=1, missing=1))
    assert Progress(channel, "some").done == {}
    again = Progress(channel, "all")
    assert again.header == HEADER and list(again.done) == [("d", "t")]
    with again.table(("d", "u")) as write:
        write([])
    again.add(Totals(database="d", table="u", rows=5, equal=5))
    again.finish([channel.verify_report_path], is_whole=True)
    assert read_report(channel.verify_report_path).header.verified == HEADER.time
    assert list(read_report(channel.verify_report_path).differences()) == [FOUND]
    assert not channel.verify_folder.exists() and Progress(channel, "all").header is None
