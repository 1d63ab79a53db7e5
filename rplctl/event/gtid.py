"""Represent the GTID sets of MySQL (`uuid[:tag]:intervals`) and the GTID states of MariaDB (`domain-server-sequence`).

Invariant: the intervals of a MysqlGtidSet are sorted, disjoint and not adjacent. `str()` returns the server's text: the
sources are sorted, and each source has its untagged intervals before its tags. Sets are immutable, so `add` and the set
operations return new sets.

PREVIOUS_GTIDS and COM_BINLOG_DUMP_GTID contain a set in binary form:

    u64               number of sources
    for each source:
    16 bytes          UUID
    u64               number of intervals
    u64, u64          for each interval: first number, last number + 1

If a set has tags, the first field has 1 in its highest and its lowest byte, and the number of sources between them.
Each UUID is then followed by one byte (twice the length of the tag) and the tag.
"""

from __future__ import annotations

import re
import uuid
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from rplctl import mysql_errors as er
from rplctl.errors import UsageError

Interval: TypeAlias = tuple[int, int]  # (first, last), both inclusive
Intervals: TypeAlias = tuple[Interval, ...]
Source: TypeAlias = tuple[str, str]  # (uuid in lower case with dashes, tag or '')

MAX_SEQUENCE: Final = (1 << 63) - 2
_TAG = re.compile(r"[a-z_][a-z0-9_]{0,31}")
_UUID = re.compile(r"[0-9a-f]{8}(-?)[0-9a-f]{4}\1[0-9a-f]{4}\1[0-9a-f]{4}\1[0-9a-f]{12}")
_INTERVAL = re.compile(r"(\d{1,19})(?:\s*-\s*(\d{1,19}))?")
TAGGED_FORMAT = 1


def _not_a_list(part: str) -> UsageError:
    hint = f"'{part[:60]}' is not a GTID: write MariaDB's DOMAIN-SERVER-NUMBER, like 0-1-5, or MySQL's UUID:NUMBER"
    return UsageError("Could not parse GTID list", errno=er.INCORRECT_GTID_STATE, hint=hint)


def merged(intervals: Iterable[Interval]) -> Intervals:
    result: list[Interval] = []
    for first, last in sorted(intervals):
        if result and first <= result[-1][1] + 1:
            result[-1] = (result[-1][0], max(result[-1][1], last))
        else:
            result.append((first, last))
    return tuple(result)


def _minus(intervals: Intervals, removed: Intervals) -> Intervals:
    """Return the intervals without the numbers in `removed`. Both arguments must be ascending and disjoint."""
    result: list[Interval] = []
    begin = 0
    for first, last in intervals:
        while begin < len(removed) and removed[begin][1] < first:
            begin += 1
        for cut in range(begin, len(removed)):
            cut_first, cut_last = removed[cut]
            if cut_first > last:
                break
            if cut_first > first:
                result.append((first, cut_first - 1))
            first = cut_last + 1
            if first > last:
                break
        if first <= last:
            result.append((first, last))
    return tuple(result)


@dataclass(frozen=True, slots=True)
class MysqlGtidSet:
    """A set of MySQL transactions. `intervals` has the intervals of transaction numbers for each source (uuid, tag)."""

    intervals: Mapping[Source, Intervals] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str) -> MysqlGtidSet:
        """Parse the text form of the server. Blanks and empty parts are allowed.

        Raises UsageError with ER_MALFORMED_GTID_SET_SPECIFICATION if the text is not a set.
        """
        found: dict[Source, list[Interval]] = {}
        for part in text.split(","):
            if part.strip():
                _parse_source(part.strip(), text, found)
        return cls({source: merged(intervals) for source, intervals in found.items() if intervals})

    def encode(self) -> bytes:
        """Return the binary form of the set. The docstring of the module describes this form.

        Servers before 8.3 do not know tags. So the form with tags is used only if the set has a tag.
        """
        sources = self._sorted()
        tagged = any(tag for _, tag in sources)
        count = len(sources)
        head = count if not tagged else TAGGED_FORMAT << 56 | count << 8 | TAGGED_FORMAT
        parts = [head.to_bytes(8, "little")]
        for server, tag in sources:
            parts.append(uuid.UUID(server).bytes)
            if tagged:
                parts.append(bytes([len(tag) << 1]) + tag.encode("ascii"))
            intervals = self.intervals[server, tag]
            parts.append(len(intervals).to_bytes(8, "little"))
            for first, last in intervals:
                parts.append(first.to_bytes(8, "little") + (last + 1).to_bytes(8, "little"))
        return b"".join(parts)

    def __str__(self) -> str:
        parts: dict[str, list[str]] = {}
        for server, tag in self._sorted():
            part = parts.setdefault(server, [server])
            part += [tag] if tag else []
            part += (str(first) if first == last else f"{first}-{last}" for first, last in self.intervals[server, tag])
        return ",".join(map(":".join, parts.values()))

    def __bool__(self) -> bool:
        return bool(self.intervals)

    def __hash__(self) -> int:
        return hash(frozenset(self.intervals.items()))

    def _sorted(self) -> list[Source]:
        return sorted(self.intervals)

    def count(self) -> int:
        """Return the number of transactions in the set."""
        return sum(last - first + 1 for parts in self.intervals.values() for first, last in parts)

    def contains(self, server: str, number: int, tag: str = "") -> bool:
        intervals = self.intervals.get((server, tag), ())
        behind = bisect_right(intervals, number, key=lambda interval: interval[0])
        return behind > 0 and number <= intervals[behind - 1][1]

    def add(self, server: str, number: int, tag: str = "") -> MysqlGtidSet:
        return self.union(MysqlGtidSet({(server, tag): ((number, number),)}))

    def union(self, other: MysqlGtidSet) -> MysqlGtidSet:
        result = dict(self.intervals)
        for source, intervals in other.intervals.items():
            result[source] = merged((*result.get(source, ()), *intervals))
        return MysqlGtidSet(result)

    def subtract(self, other: MysqlGtidSet) -> MysqlGtidSet:
        result = {source: _minus(parts, other.intervals.get(source, ())) for source, parts in self.intervals.items()}
        return MysqlGtidSet({source: parts for source, parts in result.items() if parts})

    def is_subset_of(self, other: MysqlGtidSet) -> bool:
        return not self.subtract(other)


def is_tag(text: str) -> bool:
    """True if MySQL accepts the text as a tag."""
    return _TAG.fullmatch(text) is not None


def _malformed(text: str) -> UsageError:
    return UsageError(
        f"Malformed GTID set specification '{text}'.",
        errno=er.MALFORMED_GTID_SET_SPECIFICATION,
        hint="write the set like 3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5. To see the set of the channel, run: "
        "rplctl show-status --field Executed_Gtid_Set",
    )


def _parse_source(part: str, text: str, found: dict[Source, list[Interval]]) -> None:
    """Parse one source of the set `text`, like `uuid:1-5:7:tag:1`, and add its intervals to `found`."""
    server, *rest = (piece.strip().lower() for piece in part.split(":"))
    if not _UUID.fullmatch(server) or not rest:
        raise _malformed(text)
    source = (str(uuid.UUID(server)), "")
    has_interval = True
    for piece in rest:
        interval = _INTERVAL.fullmatch(piece)
        if interval:
            first = int(interval[1])
            last = int(interval[2]) if interval[2] else first
            if first == 0 or max(first, last) > MAX_SEQUENCE:
                raise _malformed(text)
            if first <= last:  # the server accepts 5-3 as an empty interval
                found.setdefault(source, []).append((first, last))
            has_interval = True
        elif _TAG.fullmatch(piece) and has_interval:
            source = (source[0], piece)
            has_interval = False
        else:
            raise _malformed(text)
    if not has_interval:
        raise _malformed(text)


@dataclass(frozen=True, slots=True)
class MariadbGtidState:
    """The last transaction of each replication domain: domain → (server id, sequence number)."""

    domains: Mapping[int, tuple[int, int]] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str) -> MariadbGtidState:
        """Parse a list of GTIDs like `0-1-5,1-2-7`. '' is the empty state.

        Raises UsageError with ER_INCORRECT_GTID_STATE if the text is not a list of GTIDs. If two GTIDs have the same
        domain, the error has ER_DUPLICATE_GTID_DOMAIN.
        """
        domains: dict[int, tuple[int, int]] = {}
        for domain, server_id, sequence in _mariadb_gtids(text):
            if domain in domains:
                raise UsageError(
                    f"GTID {domain}-{server_id}-{sequence} and {domain}-{domains[domain][0]}-{domains[domain][1]} "
                    f"conflict (duplicate domain id {domain})",
                    errno=er.DUPLICATE_GTID_DOMAIN,
                    hint=f"write only one GTID of domain {domain}",
                )
            domains[domain] = (server_id, sequence)
        return cls(domains)

    def __str__(self) -> str:
        return ",".join(f"{domain}-{server}-{sequence}" for domain, (server, sequence) in sorted(self.domains.items()))

    def __bool__(self) -> bool:
        return bool(self.domains)

    def __hash__(self) -> int:
        return hash(frozenset(self.domains.items()))

    def add(self, domain: int, server_id: int, sequence: int) -> MariadbGtidState:
        """Return the state after one more transaction, which becomes the last transaction of its domain.

        The sequence number of the new transaction may be lower than that of the previous transaction.
        """
        return self.add_last({domain: (server_id, sequence)})

    def add_last(self, last: Mapping[int, tuple[int, int]]) -> MariadbGtidState:
        """Return the state after many transactions. `last` has the last of these transactions in each domain.

        The state is copied only once.
        """
        return MariadbGtidState({**self.domains, **last})

    def union(self, other: MariadbGtidState) -> MariadbGtidState:
        """Return the state with the higher GTID of each domain. If the numbers are equal, the GTID of `other` wins."""
        result = dict(self.domains)
        for domain, (server_id, sequence) in other.domains.items():
            if domain not in result or result[domain][1] <= sequence:
                result[domain] = (server_id, sequence)
        return MariadbGtidState(result)

    def contains(self, domain: int, sequence: int) -> bool:
        """True if the state has reached this sequence number in the domain."""
        return domain in self.domains and sequence <= self.domains[domain][1]

    def is_subset_of(self, other: MariadbGtidState) -> bool:
        return all(other.contains(domain, sequence) for domain, (_, sequence) in self.domains.items())


def _mariadb_gtids(text: str) -> Iterator[tuple[int, int, int]]:
    for part in text.split(",") if text.strip() else []:
        numbers = part.strip().split("-")
        if len(numbers) != 3 or not all(re.fullmatch(r"[0-9]{1,20}", number) for number in numbers):
            raise _not_a_list(part.strip())
        domain, server_id, sequence = map(int, numbers)
        if domain >= 1 << 32 or server_id >= 1 << 32 or sequence >= 1 << 64:
            raise _not_a_list(part.strip())
        yield domain, server_id, sequence


@dataclass(frozen=True, slots=True)
class GtidHistory:
    """The last transaction of each server in each domain of a MariaDB log: domain → server id → sequence number.

    The last server of a domain wrote the domain's last transaction. Without gtid_strict_mode, the numbers of a domain
    may fall where another server writes, so that only the numbers of one server show an order.
    """

    domains: Mapping[int, Mapping[int, int]]

    @classmethod
    def of(cls, gtids: Iterable[tuple[int, int, int]]) -> GtidHistory:
        domains: dict[int, dict[int, int]] = {}
        for domain, server_id, sequence in gtids:
            domains.setdefault(domain, {})[server_id] = sequence
        return cls(domains)

    @classmethod
    def parse(cls, text: str) -> GtidHistory:
        """Parse the value of @@gtid_binlog_state. Raises UsageError with ER_INCORRECT_GTID_STATE for another text."""
        return cls.of(_mariadb_gtids(text))

    def is_reached_by(self, *states: MariadbGtidState) -> bool:
        """True if one of these states, for each domain, has all transactions of this log (as gtid_slave_pos)."""
        return all(any(self._is_reached(domain, state) for state in states) for domain in self.domains)

    def is_surely_ahead_of(self, *states: MariadbGtidState) -> bool:
        """True if this log has transactions that none of the states has, whichever server of a domain wrote last.

        SHOW BINLOG EVENTS sorts the GTIDs of GTID_LIST, so that the last server is unknown there.
        """
        return any(
            all(
                domain not in state.domains or state.domains[domain][1] < servers.get(state.domains[domain][0], 0)
                for state in states
            )
            for domain, servers in self.domains.items()
        )

    def _is_reached(self, domain: int, state: MariadbGtidState) -> bool:
        if domain not in state.domains:
            return False
        servers, (server_id, sequence) = self.domains[domain], state.domains[domain]
        last = next(reversed(servers))
        if server_id in servers and server_id != last:
            return sequence > servers[server_id]
        return sequence >= servers[last]


def has_reached(end: str, *executed: str) -> bool:
    """True if a channel that has executed or received these GTIDs has all transactions of a source's log.

    `end`: the set of MySQL, or the text of a GtidHistory, at the end of this log.
    """
    known = [text for text in executed if (":" in text) == (":" in end)]
    if ":" not in end:
        return GtidHistory.parse(end).is_reached_by(*map(MariadbGtidState.parse, known))
    have = MysqlGtidSet()
    for text in known:
        have = have.union(MysqlGtidSet.parse(text))
    return MysqlGtidSet.parse(end).is_subset_of(have)


def is_executed(gtid: str, executed: str) -> bool:
    """True if the set `executed` contains `gtid`, which is one GTID or, for MySQL, a set.

    The result is False if `gtid` is a GTID of MySQL and `executed` is a state of MariaDB, or the reverse.
    """
    if (":" in gtid) != (":" in executed):
        return False
    if ":" in gtid:
        return MysqlGtidSet.parse(gtid).is_subset_of(MysqlGtidSet.parse(executed))
    return MariadbGtidState.parse(gtid).is_subset_of(MariadbGtidState.parse(executed))


def as_far_as(retrieved: str, executed: str) -> str:
    """Add to the set `retrieved` the newer transactions of the set `executed`, and return the result.

    The receiver's status file has the retrieved GTIDs. If the applier has executed newer transactions than this file
    lists, show-status calls this function, because each executed transaction was also retrieved. A transaction is added
    only if `retrieved` has a transaction of the same source or domain with a lower number. If one set is MySQL's and
    the other set is MariaDB's, the result is `retrieved`.
    """
    if (":" in retrieved) != (":" in executed):
        return retrieved
    if ":" not in retrieved:
        here, there = MariadbGtidState.parse(retrieved), MariadbGtidState.parse(executed)
        later = {  # only the numbers of one server show what is newer
            domain: last for domain, last in there.domains.items() if here.domains.get(domain, (None,))[0] == last[0]
        }
        return str(here.union(MariadbGtidState(later)))
    known, done = MysqlGtidSet.parse(retrieved), MysqlGtidSet.parse(executed)
    newer = {
        source: tuple((max(first, parts[-1][1] + 1), last) for first, last in done.intervals.get(source, ())
                      if last > parts[-1][1])
        for source, parts in known.intervals.items()
    }  # fmt: skip
    return str(known.union(MysqlGtidSet(newer)))
