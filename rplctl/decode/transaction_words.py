"""Patterns for QUERY events that begin or end a transaction or a part of it, with groups for savepoints and XIDs."""

from __future__ import annotations

import re
from typing import Final

TRANSACTION_WORDS: Final = re.compile(r"(BEGIN|COMMIT|START\s+TRANSACTION|ROLLBACK)\s*(WORK)?\s*;?\s*\Z", re.IGNORECASE)
SAVEPOINT: Final = re.compile(r"SAVEPOINT\s+(.+?)\s*;?\s*\Z", re.IGNORECASE | re.DOTALL)
ROLLBACK_TO: Final = re.compile(
    r"ROLLBACK\s+(?:WORK\s+)?TO\s+(?:SAVEPOINT\s+)?(.+?)\s*;?\s*\Z", re.IGNORECASE | re.DOTALL
)
XA: Final = re.compile(r"XA\s+(\w+)\s+(\S+?)\s*(?:ONE\s+PHASE)?\s*;?\s*\Z", re.IGNORECASE)  # verb, XID
WORDS: Final = re.compile(
    r"(BEGIN|COMMIT|START\s+TRANSACTION|ROLLBACK|SAVEPOINT|RELEASE\s+SAVEPOINT|XA|#|/\*\s*dummy)\b", re.IGNORECASE
)  # the first words of events that contain no statement to replicate
