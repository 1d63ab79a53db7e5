"""master.info and relay-log.info damaged on disk: an error that names the file, or the record as it was written; never
another position, and no setting lost without a word (fault matrix C03, C04).
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from dataclasses import replace

import pytest

from rplctl.channel import Channel
from rplctl.errors import RplError
from rplctl.info import MasterInfo, PreparedPosition, RelayLogInfo
from rplctl.position import BinlogPosition, RelayLogPosition
from rplctl.repository.file import FileRepository
from rplctl.repository.record import MASTER_INFO, RELAY_LOG_INFO
from tests.repository.conftest import MASTER, RELAY

pytestmark = pytest.mark.slow

DECIDED = PreparedPosition(
    xid="rplctl:00:11:22",
    relay=RelayLogPosition("relay-bin.000002", 456),
    source=BinlogPosition("bin.000003", 789),
    gtid_executed="0-1-123",
)
Repository = FileRepository[MasterInfo] | FileRepository[RelayLogInfo]
Info = MasterInfo | RelayLogInfo


@pytest.fixture(params=["master", "relay", "relay prepared"])
def written(request: pytest.FixtureRequest, channel: Channel) -> tuple[Repository, Info]:
    """Written twice, so that there is a durable record of before besides."""
    if request.param == "master":
        master = FileRepository(MASTER_INFO, channel, 0)
        info = replace(MASTER, channel_name=channel.name)
        master.flush(replace(info, master_log_pos=7), force=True)
        master.flush(info, force=True)
        return master, info
    relay = FileRepository(RELAY_LOG_INFO, channel, 0)
    other = replace(RELAY, channel_name=channel.name, prepared=DECIDED if "prepared" in request.param else None)
    relay.flush(replace(other, master_log_pos=7), force=True)
    relay.flush(other, force=True)
    return relay, other


def before_prepare(info: Info) -> Info:
    """A file without its last line is that of the moment before the decision, which is then not carried out."""
    return replace(info, prepared=None) if isinstance(info, RelayLogInfo) else info


def outcomes(written: tuple[Repository, Info], damages: Iterator[bytes]) -> Iterator[tuple[int, Info | None]]:
    """(number, what is read) of each damage that is no error; errors are ours and name the file."""
    repository, _ = written
    for number, data in enumerate(damages):
        repository.path.write_bytes(data)
        try:
            yield number, repository.stored()
        except RplError as error:
            assert error.errno in (1201, 1872) and str(repository.path) in error.message and error.hint


def test_cut_off_at_any_byte_it_is_an_error_or_what_was_written(written: tuple[Repository, Info]) -> None:
    repository, info = written
    whole = repository.path.read_bytes()
    cut = outcomes(written, (whole[:length] for length in range(1, len(whole))))
    read = [found for _, found in cut]
    assert len(read) <= 2, "without its newline END_MARKER is still there"
    assert all(found in (info, before_prepare(info)) for found in read)


def test_cut_off_to_nothing_it_is_no_record_or_the_last_durable_one(written: tuple[Repository, Info]) -> None:
    repository, info = written
    repository.path.write_bytes(b"")  # in place: its second name is the same file
    assert repository.stored() is None
    repository.flush(info, force=True)  # type: ignore[arg-type]
    repository.flush(replace(info, master_log_pos=8), force=False)  # type: ignore[arg-type]
    repository.path.write_bytes(b"")
    assert repository.stored() == info


def test_cut_off_amid_a_line_beside_a_durable_record_it_is_that_one(written: tuple[Repository, Info]) -> None:
    """A power cut between the two writes that a short one takes. At a line's end an operator may have cut it."""
    repository, info = written
    repository.flush(replace(info, master_log_pos=8), force=False)  # type: ignore[arg-type]
    whole = repository.path.read_bytes()
    cuts = [length for length in range(1, whole.index(b"END_MARKER") + 10) if whole[length - 1 : length] != b"\n"]
    assert [found for _, found in outcomes(written, (whole[:length] for length in cuts))] == [info] * len(cuts)


@pytest.mark.parametrize("length", [1, 16, 1 << 20], ids=["a byte", "some bytes", "all behind"])
def test_zeros_from_any_byte_on_are_an_error(written: tuple[Repository, Info], length: int) -> None:
    whole = written[0].path.read_bytes()

    def zeroed() -> Iterator[bytes]:
        for at in range(len(whole)):
            end = min(len(whole), at + length)
            yield whole[:at] + bytes(end - at) + whole[end:]

    assert list(outcomes(written, zeroed())) == []


def test_two_lines_that_changed_places_are_no_other_position(written: tuple[Repository, Info]) -> None:
    """But two numbers, which could be an operator's edit: a file has no checksum, as it may be edited (WL#5125)."""
    repository, info = written
    lines = repository.path.read_bytes().splitlines(keepends=True)

    def swapped() -> Iterator[bytes]:
        for one, two in itertools.pairwise(range(len(lines))):
            if lines[one].strip().isdigit() and lines[two].strip().isdigit():
                continue
            order = [*lines]
            order[one], order[two] = order[two], order[one]
            yield b"".join(order)

    for number, found in outcomes(written, swapped()):
        assert found is not None and position(found) == position(info), (number, lines[number : number + 2])


def test_a_line_that_is_missing_or_there_twice_is_no_other_position(written: tuple[Repository, Info]) -> None:
    repository, info = written
    lines = repository.path.read_bytes().splitlines(keepends=True)
    damages = (
        b"".join([*lines[:number], *middle, *lines[number + 1 :]])
        for number in range(len(lines) - (getattr(info, "prepared", None) is not None))
        for middle in ([], [lines[number]] * 2)
    )
    for number, found in outcomes(written, damages):
        assert found is not None and position(found) == position(info), (number, lines[number // 2])


def position(info: Info) -> tuple[object, ...]:
    names = ("relay_log_name", "relay_log_pos", "master_log_name", "master_log_pos", "gtid_executed", "prepared")
    more = ("enabled_auto_position", "using_gtid", "do_domain_ids", "ignore_domain_ids", "master_binlog_dir")
    return tuple(getattr(info, name, None) for name in (*names, *more))


@pytest.mark.parametrize("flush", ["durable", "not yet durable"])
def test_an_old_beginning_before_a_new_end_is_never_half_of_each(written: tuple[Repository, Info], flush: str) -> None:
    """A kill or a power cut inside a write leaves a temporary file, whatever is in it: the record is old or new."""
    repository, info = written
    newer = replace(info, master_log_pos=99)
    really, states = os.replace, list[Info | None]()

    def seen(source: str, target: str) -> None:
        states.append(repository.stored())
        really(source, target)
        states.append(repository.stored())

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(os, "replace", seen)
        repository.flush(newer, force=flush == "durable")  # type: ignore[arg-type]
    assert states[0] == info and states[-1] == newer and all(state in (info, newer) for state in states)
