"""Finds the collation of the target that replaces a collation of the other vendor (design D10).

If both vendors have a collation with the same id, it has the same rules on both. Collations with the same name can have
different rules: MySQL's utf8mb4_croatian_ci is MariaDB's utf8mb4_croatian_mysql561_ci. These collations compare alike:
MySQL's 0900 and MariaDB's uca1400 collations without a language, and the binary collations without padding.
tests/target/mysql/test_collations.py compares servers of both vendors. Invariant: the replacement regards two texts as
equal only if the source's collation does. So no key of the target refuses rows of the source. For the same reason, a
collation that distinguishes all letters replaces the collation of a language.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from rplctl import mysql_errors as er
from rplctl.errors import BY_HAND, TargetError

_NEAR: Final = (
    (r"utf8mb4_0900_(ai_ci|as_ci|as_cs)", r"utf8mb4_uca1400_nopad_\1"),
    (r"utf8mb4_0900_bin", "utf8mb4_nopad_bin"),
    (r"utf8mb4_\w+_0900_(?:ai_ci|as_cs(?:_ks)?)", "utf8mb4_uca1400_nopad_as_cs"),
    (r"(?:utf8mb4_)?uca1400_(?:nopad_)?(ai_ci|as_ci|as_cs)", r"utf8mb4_0900_\1"),
    (r"utf8mb4_nopad_bin", "utf8mb4_0900_bin"),
    (r"(?:utf8mb4_)?uca1400_\w+", "utf8mb4_0900_as_cs"),
)
UTF8MB4_GENERAL: Final = 45  # the default of utf8mb4 in MySQL 5.7, and in MariaDB before 11.5
COLLATION_NUMBERS: Final = {
    UTF8MB4_GENERAL: "utf8mb4_general_ci",
    255: "utf8mb4_0900_ai_ci",
    278: "utf8mb4_0900_as_cs",
    305: "utf8mb4_0900_as_ci",
    309: "utf8mb4_0900_bin",
    1070: "utf8mb4_nopad_bin",
    2304: "utf8mb4_uca1400_ai_ci",
    2306: "utf8mb4_uca1400_as_ci",
    2307: "utf8mb4_uca1400_as_cs",
    2308: "utf8mb4_uca1400_nopad_ai_ci",
    2310: "utf8mb4_uca1400_nopad_as_ci",
    2311: "utf8mb4_uca1400_nopad_as_cs",
}


def near_collation(name: str, known: Iterable[str] = ()) -> str:
    """Return the other vendor's collation that compares like the collation `name`, or more strictly.

    Return `name` itself if it is in `known` (the target's collations), or if rplctl knows no such collation.
    """
    if name not in known:
        for pattern, near in _NEAR:
            if re.fullmatch(pattern, name):
                return re.sub(rf"\A{pattern}\Z", near, name)
    return name


class Collations:
    """The ids and names of the target's collations. `read`: returns pairs of id and name from the target."""

    def __init__(self, read: Callable[[], Iterable[Sequence[object]]]) -> None:
        self._read = read
        self._names: dict[int, str] = {}

    @property
    def names(self) -> dict[int, str]:
        if not self._names:
            self._names = {int(str(number)): str(name) for number, name in self._read()}
        return self._names

    def name_of(self, number: int) -> str:
        """Return the target's name for the collation with this id, or '' if the target lacks the collation."""
        return self.names.get(number, "")


def collation_of_other_vendor(number: int, name_on_target: Callable[[int], str]) -> str:
    """Return the target's name for the collation that has this id on a source of the other vendor.

    Raises TargetError 1273 if the target has no collation with the same rules.
    """
    if found := name_on_target(number):
        return found
    name = COLLATION_NUMBERS.get(number, "")
    near = near_collation(name)
    if near != name:
        return near
    raise TargetError(
        f"the statement was executed with a collation that this target does not have: {name or f'#{number}'}",
        errno=er.UNKNOWN_COLLATION,
        hint=BY_HAND,
    )
