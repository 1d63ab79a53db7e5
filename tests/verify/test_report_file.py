"""Reports of a verify: what was written comes back; one that is not whole is refused."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from rplctl.errors import RplError, UsageError
from rplctl.verify.report_file import Difference, Header, Totals, read_report, write_report

HEADER = Header(
    channel="c", time=1.5, server_id=7, uuid="uuid", position="binlog.000001:4", gtids="0-1-7", tables=("d.t", "d.u")
)
FOUND = [
    Difference(
        database="d", table="t", kind="different", key={"id": "18446744073709551615", "w": "ä\n"}, columns=("v",)
    ),
    Difference(database="d", table="t", kind="missing", key={"id": "1", "w": {"hex": "ff00"}}),
]
TOTALS = (
    Totals(database="d", table="t", rows=9, equal=7, missing=1, extra=0, different=1),
    Totals(database="d", table="u", not_comparable="no key", drift=("ALTER TABLE u",)),
)


def test_what_was_written_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "report"
    write_report(path, HEADER, FOUND, TOTALS)
    found = read_report(path)
    assert (found.header, found.totals, list(found.differences())) == (HEADER, TOTALS, FOUND)
    assert path.stat().st_mode & 0o777 == 0o600 and [p.name for p in tmp_path.iterdir()] == ["report"]
    assert [total.differences for total in TOTALS] == [2, 0]


def test_one_that_is_not_whole_or_of_another_kind_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "report"
    write_report(path, HEADER, FOUND, TOTALS)
    lines = path.read_text().splitlines(keepends=True)
    later = json.dumps({**json.loads(lines[0]), "format": 2}) + "\n"
    others = ('{"format": 1}\n', lines[0] + '{"whole": true}\n', '{"format": 1, "tables": []}\n' + "".join(lines[1:]))
    for text in ("".join(lines[:-1]), "".join(lines)[:-9], later + "".join(lines[1:]), "[]\n", "", "x", *others):
        path.write_text(text)
        with pytest.raises(UsageError):
            read_report(path)


def test_an_edited_one_is_refused_and_never_a_bug(tmp_path: Path) -> None:
    path = tmp_path / "report"
    write_report(path, HEADER, FOUND, TOTALS)
    whole = path.read_text()
    edits = (
        ('"server_id": 7', '"server_id": "7"'),
        ('"missing": 1', '"missing": "1"'),
        ('"kind": "missing"', '"kind": "gone"'),
        ('"id": "1"', '"id": 1'),
        ('{"hex": "ff00"}', '{"x": "ff00"}'),
        ('"table": "t", "kind": "missing"', '"table": "x", "kind": "missing"'),
        ('"totals": ', '"totals": 1'),
        ('{"format": 1', "[" * 100_000 + '{"format": 1'),
    )
    for old, new in edits:
        assert old in whole, old
        path.write_text(whole.replace(old, new, 1))
        with pytest.raises(UsageError):
            list(read_report(path).differences())
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(RplError, match="FIFO"):
        read_report(path)
