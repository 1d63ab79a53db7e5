"""The UTC offsets of a server's time zone SYSTEM, for all times that a TIMESTAMP can have.

A binary log only has the word SYSTEM for this zone, and another server may not know the zone's real name. So rplctl
queries the server for the times at which the UTC offset changes. In each zone of the tz database, changes since 1970
are at least seven days apart. So one sample every four days finds all changes. Invariant: if the zones of two servers
have equal `changes`, both servers show every TIMESTAMP in the same way.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any, Final, TypeAlias
from zoneinfo import ZoneInfo

from rplctl.sql_text import Sql, joined, text_literal, written

Ask: TypeAlias = Callable[[Sql], Sequence[Sequence[Any]]]  # runs one SELECT on a server, and returns its rows
SYSTEM: Final = "SYSTEM"
OFFSET: Final = re.compile(r"([+-])(\d{1,2}):(\d{2})")
LOAD_ZONES: Final = (
    "load the time zones into the target: mariadb-tzinfo-to-sql /usr/share/zoneinfo | mariadb mysql (for MySQL: "
    "mysql_tzinfo_to_sql /usr/share/zoneinfo | mysql mysql), and GRANT SELECT ON mysql.time_zone_name to its account"
)
_FIRST, _STEP = 86400, 4 * 86400  # the first sample in Unix time, and the seconds between samples
_SAMPLES: Final = ((1 << 31) - _FIRST) // _STEP
_FANOUT: Final = 4
_MOST_MOMENTS, _MOST_CHANGES, _MOST_SECONDS = 2000, 1000, 26 * 3600
_LEAST_WORD, _MOST_WORD = -(12 * 60 + 59), 13 * 60  # minutes that every server accepts as a time zone
_TWENTY: Final = joined(" UNION ALL SELECT ", [written("SELECT 0 d"), *(written("{}", n) for n in range(1, 20))])
_NUMBERS: Final = written("SELECT a.d + 20 * b.d + 400 * c.d n FROM ({}) a, ({}) b, ({}) c", *[_TWENTY] * 3)


@dataclass(frozen=True, slots=True)
class SystemZone:
    """A time zone, as the list of its changes.

    `changes`: pairs of a Unix time and the seconds east of UTC from this time on. The first offset also applies to
    all earlier times.
    """

    changes: tuple[tuple[int, int], ...]

    def offset_at(self, moment: float) -> timedelta:
        """Return the UTC offset at a Unix time."""
        number = bisect_right(self.changes, moment, key=lambda change: change[0])
        return timedelta(seconds=self.changes[max(0, number - 1)][1])

    @property
    def fixed(self) -> timedelta | None:
        """The UTC offset of a zone whose offset never changes. The value is None for any other zone."""
        return timedelta(seconds=self.changes[0][1]) if len(self.changes) == 1 else None


def offset_text(offset: timedelta) -> str:
    """Return the offset as text, such as `+09:00`.

    Return '' if MySQL or MariaDB would reject this text as a time zone.
    """
    minutes, rest = divmod(int(offset.total_seconds()), 60)
    if rest or not _LEAST_WORD <= minutes <= _MOST_WORD:
        return ""
    return f"{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02d}:{abs(minutes) % 60:02d}"


def fixed_offset(text: str) -> timedelta | None:
    """Return the UTC offset that a text such as `+09:00` or `UTC` states. Return None for any other text."""
    if text.upper() == "UTC":
        return timedelta(0)
    if match := OFFSET.fullmatch(text):
        distance = timedelta(hours=int(match[2]), minutes=int(match[3]))
        return -distance if match[1] == "-" else distance
    return None


def zone_named(name: str) -> SystemZone:
    """Return the time zone with a name such as `Asia/Tokyo` or `+09:00`.

    Raises ValueError, KeyError or OSError if this computer does not know the zone.
    """
    if (distance := fixed_offset(name)) is not None:
        return SystemZone(((0, int(distance.total_seconds())),))
    zone = ZoneInfo(name)

    def offsets(moments: Iterable[int]) -> list[int]:
        return [int(_seconds(datetime.fromtimestamp(moment, UTC).astimezone(zone).utcoffset())) for moment in moments]

    found = offsets(_FIRST + number * _STEP for number in range(_SAMPLES))
    changed = [number for number, (one, other) in enumerate(pairwise(found), 1) if one != other]
    return _traced([(number, found[number]) for number in (0, *changed)], offsets)


def _seconds(offset: timedelta | None) -> float:
    return offset.total_seconds() if offset is not None else 0


def read_zone(ask: Ask, name: str = SYSTEM, known: SystemZone | None = None) -> SystemZone:
    """Read a time zone from a server, by its name on this server.

    `known`: the zone that the server probably has. To confirm this zone takes a tenth of the time that it takes to find
    an unknown zone. Raises ValueError for an invalid answer of the server, and the errors of `ask`.
    """
    zone = text_literal(name)
    rows = ask(
        written(
            "SELECT n, o FROM (SELECT n, {} o, {} p FROM ({}) n WHERE n < {}) s WHERE n = 0 OR o <> p ORDER BY n",
            _offset(written("{} + n * {}", _FIRST, _STEP), zone),
            _offset(written("{} + (n - 1) * {}", _FIRST, _STEP), zone),
            _NUMBERS,
            _SAMPLES,
        )
    )
    numbers = [(_checked(row[0], _SAMPLES), _checked(row[1])) for row in rows]
    if not numbers or numbers[0][0] or len(numbers) > _MOST_CHANGES:
        raise ValueError(f"no time zone changes {len(numbers)} times")
    if (
        known is not None
        and numbers == _samples(known)
        and ask(written("SELECT {}", is_shown_alike(known, zone)))[0][0]
    ):
        return known

    def offsets(moments: Sequence[int]) -> list[int]:
        found: list[int] = []
        for first in range(0, len(moments), _MOST_MOMENTS):
            part = [_offset(written("{}", moment), zone) for moment in moments[first : first + _MOST_MOMENTS]]
            found += [_checked(cell) for cell in ask(written("SELECT {}", joined(", ", part)))[0]]
        if len(found) != len(moments):
            raise ValueError("the answer has another number of values than the question")
        return found

    return _traced(numbers, offsets)


def is_shown_alike(zone: SystemZone, name: Sql) -> Sql:
    """Return an SQL condition that is true if the server's zone `name` has the same offsets as `zone`.

    The condition compares the offsets directly before and after each change of `zone`.
    """
    moments = [moment for second, _ in zone.changes[1:] for moment in (second - 1, second)]
    same = (
        written("{} = {}", _offset(written("{}", moment), name), int(zone.offset_at(moment).total_seconds()))
        for moment in reversed([_FIRST, *moments])
    )
    return joined(" AND ", same)


def _samples(zone: SystemZone) -> list[tuple[int, int]]:
    """Return the index and the UTC offset of each sample that differs from the sample before it.

    A sample is the UTC offset at one of the fixed times, which are four days apart. A server with this zone would
    return the same pairs to the first query of `read_zone`.
    """
    later = ((-(-(second - _FIRST) // _STEP), offset) for second, offset in zone.changes[1:])
    return [(0, zone.changes[0][1]), *later]


def _offset(moment: Sql, zone: Sql) -> Sql:
    utc = written("(CAST('1970-01-01' AS DATETIME) + INTERVAL {} SECOND)", moment)
    return written("TIMESTAMPDIFF(SECOND, {}, CONVERT_TZ({}, '+00:00', {}))", utc, utc, zone)


def _checked(cell: object, limit: int = _MOST_SECONDS) -> int:
    if not isinstance(cell, int) or abs(cell) > limit:
        raise ValueError(f"{str(cell)[:40]!r} is not a distance from UTC")
    return cell


def _traced(samples: Sequence[tuple[int, int]], offsets: Callable[[Sequence[int]], list[int]]) -> SystemZone:
    """Return the zone, with the exact second of each change.

    `samples`: the index and the UTC offset of each sample that differs from the sample before it (see `_samples`).
    `offsets`: a function that returns the UTC offsets at a list of Unix times. It is called repeatedly, to narrow down
    the times of the changes.
    """
    ends = [_FIRST + number * _STEP for number, _ in samples[1:]]
    spans = [(end - _STEP, end) for end in ends]
    before = [offset for _, offset in samples]
    while any(last - first > 1 for first, last in spans):
        asked = [list(range(first, last, max(1, -(-(last - first) // _FANOUT))))[1:] for first, last in spans]
        answers = iter(offsets([moment for moments in asked for moment in moments]))
        for number, moments in enumerate(asked):
            found = [next(answers) for _ in moments]
            first, last = spans[number]
            points = [first, *moments, last]
            changed = next((i for i, offset in enumerate(found, 1) if offset != before[number]), len(points) - 1)
            spans[number] = points[changed - 1], points[changed]
    return SystemZone(((0, before[0]), *((last, samples[i][1]) for i, (_, last) in enumerate(spans, 1))))
