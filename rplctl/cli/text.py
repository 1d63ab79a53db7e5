"""Format text for people and pipes.

Text from a source or a file name can neither move the cursor nor end a line.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

Row = Mapping[str, object]

_NAMED = {"\n": "\\n", "\t": "\\t", "\r": "\\r", "\0": "\\0"}


def clean(text: str) -> str:
    """Return the text with escapes instead of control characters (including C1, line separators and direction
    marks).
    """
    return text if text.isprintable() else "".join(c if c.isprintable() else _escaped(c) for c in text)


_LONGEST_WORD = 1024  # characters; no valid name is longer, but a path may be nearly as long


def shortened(text: str) -> str:
    """Return the text with very long words cut. A word may be pasted by mistake, and its beginning is enough to
    identify it.
    """
    if len(text) <= _LONGEST_WORD:
        return text
    return re.sub(rf"\S{{{_LONGEST_WORD},}}", lambda word: f"{word[0][:80]}… ({len(word[0])} characters)", text)


def fitted(text: str, width: int) -> str:
    """Return the text as one line of at most `width` columns of a terminal. A longer text ends with an ellipsis."""
    from rich.cells import set_cell_size

    text = clean(text)
    return text if len(text.encode()) <= width else set_cell_size(text, width - 1).rstrip() + "…"


def _escaped(character: str) -> str:
    code = ord(character)
    return _NAMED.get(character) or (
        f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else "\\?"
    )


def shown(value: object) -> str:
    """Return a value as text, in the format of the mysql client."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "Yes" if value else "No"
    return clean(str(value))


def vertical(rows: Sequence[Row]) -> str:
    """Return the rows in the layout that the mysql client uses for `\\G`."""
    lines = []
    for number, row in enumerate(rows, 1):
        width = max(map(len, row), default=0)
        lines.append(f"{'*' * 27} {number}. row {'*' * 27}")
        lines += [f"{name:>{width}}: {shown(value)}" for name, value in row.items()]
    return "".join(line + "\n" for line in lines)


def tsv(columns: Sequence[str], rows: Sequence[Row]) -> str:
    """Return the rows in the batch layout of the mysql client: a header line, tabs between values, and backslash
    escapes.
    """
    lines = ["\t".join(columns)]
    lines += ["\t".join(_tsv_cell(row[name]) for name in columns) for row in rows]
    return "".join(line + "\n" for line in lines)


def _tsv_cell(value: object) -> str:
    return clean(value.replace("\\", "\\\\")) if isinstance(value, str) else shown(value)


def ascii_table(columns: Sequence[str], rows: Sequence[Row]) -> str:
    """Return the rows in the table layout of the mysql client. Each column is as wide as its longest value."""
    cells = [[shown(row[name]) for name in columns] for row in rows]
    widths = [
        max(len(name), *(len(line[i]) for line in cells)) if cells else len(name) for i, name in enumerate(columns)
    ]
    rule = "+" + "+".join("-" * (width + 2) for width in widths) + "+"
    numeric = [all(_is_number(row[name]) for row in rows) and bool(rows) for name in columns]

    def line(values: Sequence[str]) -> str:
        padded = (v.rjust(w) if n else v.ljust(w) for v, w, n in zip(values, widths, numeric, strict=True))
        return "| " + " | ".join(padded) + " |"

    body = [rule, line(columns), rule, *map(line, cells), rule] if rows else [rule, line(columns), rule]
    return "".join(text + "\n" for text in body)


def _is_number(value: object) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


def to_json(value: object) -> str:
    """Return the value as one line of ASCII JSON, which is safe in any locale and on any terminal."""
    return json.dumps(value, ensure_ascii=True) + "\n"


def short(number: float, unit: str = "") -> str:
    """Return a number with a decimal prefix and at least two digits, such as `84 MB` or `0.7 M rows`."""
    for factor, letter in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= factor * 0.5:
            value = number / factor
            return f"{value:.1f} {letter}{unit}" if value < 10 else f"{value:.0f} {letter}{unit}"
    return f"{number:.0f} {unit.lstrip()}".rstrip()


def clock_time(seconds: float) -> str:
    """Return seconds in the form `0:07`, `12:30` or `3:05:00`."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
