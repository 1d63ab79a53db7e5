"""One line of `rplctl doctor`: field names are columns. Here because a kind of target has lines of its own to say."""

from __future__ import annotations

from dataclasses import dataclass

OK, WARN, FAIL = "OK", "WARN", "FAIL"
POWER_CUT = "power cut"
RESTORE = "the target may be damaged: restore it from a backup then"


@dataclass(frozen=True, slots=True)
class DoctorLine:
    Check: str
    Result: str  # OK | WARN | FAIL
    Detail: str
    Hint: str = ""
