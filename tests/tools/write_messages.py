"""Write docs/messages.md: every error of rplctl that has a number, with its text and the next command.

Run as `python -m tests.tools.write_messages` after a message has changed. The texts are read from the source of rplctl;
… stands for a name or a value.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from rplctl import errors, mysql_errors
from rplctl.applier.way_out import way_out
from rplctl.errors import RplError
from tests.house.code import MODULES, ROOT, nodes

PAGE = ROOT / "docs/messages.md"
HEAD = """# Messages

This page is generated from the source by `python -m tests.tools.write_messages`. It lists the errors that have a
number of MySQL or MariaDB. The sign … stands for a name or a value. [Troubleshooting](troubleshooting.md) explains the
common ones.

Every error also prints its channel, its position and a hint. `rplctl` exits with the code of the error;
`man -l man/rplctl.1` lists the codes.
"""
NUMBERS = {name: value for name, value in vars(mysql_errors).items() if name.isupper() and isinstance(value, int)}


class Message(NamedTuple):
    number: int
    name: str
    text: str
    hint: str
    exit_code: int


def page() -> str:
    """Return the page as the source of rplctl makes it now."""
    lines = [HEAD]
    messages = sorted(set(_messages()))
    for number, name in sorted({(message.number, message.name) for message in messages}):
        lines += [
            f"## {number} {name if name.startswith('CR_') else f'ER_{name}'}",
            "",
            "| text | hint | exit code |",
            "|---|---|---|",
        ]
        own = [message for message in messages if (message.number, message.name) == (number, name)]
        lines += [f"| {_cell(m.text)} | {_cell(m.hint)} | {m.exit_code} |" for m in own]
        lines.append("")
    return "\n".join(lines)


def _cell(text: str) -> str:
    lines = text.replace("|", "\\|").replace("<", "&lt;").strip().split("\n")
    return "<br>".join(" ".join(line.split()) for line in lines)


def _messages() -> Iterator[Message]:
    for path in MODULES:
        for node in nodes(path):
            if not isinstance(node, ast.Call) or not node.args:
                continue
            given = {keyword.arg: keyword.value for keyword in node.keywords}
            number = given.get("errno")
            kind = getattr(errors, ast.unparse(node.func).rpartition(".")[2], None)
            if not isinstance(number, ast.Attribute) or number.attr not in NUMBERS or not isinstance(kind, type):
                continue
            text = _template(node.args[0])
            if text.replace("…", "").strip(" :"):  # else another program's own text
                code = NUMBERS[number.attr]
                hint = _template(given["hint"]) if "hint" in given else _by_number(code, kind)
                yield Message(code, number.attr, text, hint, int(getattr(kind, "exit_code", 1)))


def _by_number(number: int, kind: type[RplError]) -> str:
    """The applier's hint for the number, or for damage of the relay log; '' where it has none of its own."""
    hint = way_out(kind("", errno=number))
    return "" if hint == way_out(RplError("")) else hint


def _template(node: ast.expr) -> str:
    """The text, with … for each part that is known only when the program runs."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(_template(part) for part in node.values)
    if isinstance(node, ast.FormattedValue):
        return _template(node.value)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _template(node.left) + _template(node.right)
    name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
    return _constants().get(name, "…")


@cache
def _constants() -> dict[str, str]:
    """The texts that modules hold by a name in capitals; a name that has two texts is left out."""
    assigned = [(name, value) for path in MODULES for name, value in _assigned(path) if name.lstrip("_").isupper()]
    plain = _single((name, str(v.value)) for name, v in assigned if isinstance(v, ast.Constant) and v.value)
    composed: dict[str, str] = {}
    for _ in range(3):  # a composed text may have composed texts as parts
        known = plain | composed
        composed = _single((name, _filled(v, known)) for name, v in assigned if isinstance(v, ast.JoinedStr))
    return {name: text for name, text in (plain | composed).items() if not (name in plain and name in composed)}


def _single(named: Iterator[tuple[str, str]]) -> dict[str, str]:
    found: dict[str, set[str]] = {}
    for name, text in named:
        found.setdefault(name, set()).add(text)
    return {name: texts.pop() for name, texts in found.items() if len(texts) == 1}


def _filled(text: ast.JoinedStr, names: dict[str, str]) -> str:
    """The text with the texts of the names that it contains."""
    parts = (part.value if isinstance(part, ast.FormattedValue) else part for part in text.values)
    return "".join(
        str(part.value) if isinstance(part, ast.Constant) else names.get(ast.unparse(part), "…") for part in parts
    )


def _assigned(path: Path) -> Iterator[tuple[str, ast.expr | None]]:
    for node in nodes(path):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            yield node.targets[0].id, node.value
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id, node.value


if __name__ == "__main__":
    PAGE.write_text(page())
