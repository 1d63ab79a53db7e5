"""Every command line that README.md, docs/ and the manual pages show: its block, its words, its comment."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
MANUAL = sorted((ROOT / "man").glob("*.[0-9]"))
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), *MANUAL]
SCHEDULE = re.compile(r"^(?:[\d*/,-]+\s+){5}")  # the five fields of a crontab
_FENCE = re.compile(r"^```\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_DISPLAY = re.compile(r"^\.(?:EX|nf)\n(.*?)^\.(?:EE|fi)$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Example:
    page: str
    section: str  # the heading above it
    block: int  # of the page
    words: tuple[str, ...]  # from `rplctl` on, or another program's
    comment: str


def examples() -> list[Example]:
    return [example for path in PAGES for example in _of(path)]


def option_files() -> list[str]:
    """What the manual pages show of rplctl.toml."""
    blocks = [_plain(block[1]) for path in MANUAL for block in _DISPLAY.finditer(path.read_text())]
    return [block for block in blocks if re.match(r"\[channel|\w+ = ", block) and "spark" not in block]  # Python


def _of(path: Path) -> Iterator[Example]:
    text = path.read_text()
    is_man = path.suffix != ".md"
    for number, block in enumerate((_DISPLAY if is_man else _FENCE).finditer(text)):
        headings = re.findall(r"^(?:\.SH|##) (.+)$", text[: block.start()], re.MULTILINE)
        shown = _plain(block[1]) if is_man else block[1]
        for line in re.sub(r"\\\n\s*|(?<=&&)\n\s*", " ", shown).splitlines():
            command = SCHEDULE.sub("", line)
            if re.match(r"(rplctl|mariadb|mariadb-dump|sqlite3|grep) ", command):
                words = shlex.split(command, comments=True)
                yield Example(path.name, (headings or [""])[-1], number, tuple(words), line.partition(" #")[2].strip())


def _plain(text: str) -> str:
    return re.sub(r"\\f[BIR]", "", text).replace("\\-", "-").replace("\\e", "\\").replace("\\(dq", '"')
