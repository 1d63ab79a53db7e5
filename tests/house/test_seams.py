"""Tests reach rplctl by its public names: a private one can change without a test that knows of it.

Where a test needs more than a public name, it passes the part, sets an option, uses a failpoint, replaces what the
module imports, or looks at the result. If a private name is the real seam, the name becomes public.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from pymysql.connections import Connection

from tests.house.code import MODULES, ROOT, called, nodes

# File → how many uses it has, and why. The numbers may only fall, and no file may be added without a reason as good.
ALLOWED = {
    "tests/bench/ledger.py": 8,  # a clock around each inner step of the applier; it measures, and asserts nothing
}
DEFINED = re.compile(r"\b(?:def|class) (_[A-Za-z]\w*)|^ *(?:self\.)?(_[A-Za-z]\w*)(?:: [^=\n]+)?(?: =|$)", re.MULTILINE)
SETTERS = {"setattr", "getattr", "delattr", "object", "setitem"}


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def defined(found: Iterable[ast.AST]) -> Iterator[str]:
    """Yield the private names that a module gives to functions, classes, constants and attributes."""
    for node in found:
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.AnnAssign(target=ast.Name(id=name)):
                yield name
            case ast.Attribute(value=ast.Name(id="self"), attr=name, ctx=ast.Store()):
                yield name
            case ast.Assign(targets=targets):
                yield from (target.id for target in targets if isinstance(target, ast.Name))


def names_in(text: str) -> frozenset[str]:
    """Return the private names that a module defines, by its text: to parse all modules takes a minute."""
    return frozenset(name for found in DEFINED.findall(text) for name in found if name)


@cache
def private_names() -> frozenset[str]:
    texts = [path.read_text() for path in MODULES]
    found = frozenset().union(*map(names_in, texts), *(re.findall(r"\bself\.(_[A-Za-z]\w*)", text) for text in texts))
    return found - set(dir(Connection))  # PyMySQL's, which our connection inherits


def uses(found: tuple[ast.AST, ...], names: frozenset[str]) -> Iterator[tuple[int, str]]:
    """Yield line and text of each use of one of the `names` that the test does not define itself."""
    own = set(defined(found))
    foreign = names - own
    for node in found:
        match node:
            case ast.ImportFrom(module=str(module), names=parts) if module.startswith("rplctl"):
                yield from ((node.lineno, part.name) for part in parts if is_private(part.name))
            case ast.Attribute(attr=name) if name in foreign:
                yield node.lineno, ast.unparse(node)
            case ast.Call(args=given) if called(node) in SETTERS:
                texts = [argument.value for argument in given if isinstance(argument, ast.Constant)]
                yield from ((node.lineno, text) for text in texts if isinstance(text, str) and text in names)
            case ast.Constant(value=str(text)) if re.fullmatch(r"rplctl(\.\w+)+", text):
                yield from ((node.lineno, text) for part in text.split(".") if is_private(part))
            case ast.Constant(value=str(text)) if re.search(r"^(from|import) rplctl", text, re.MULTILINE):
                yield from ((node.lineno, use) for _, use in uses(_program(text), names))


def _program(text: str) -> tuple[ast.AST, ...]:
    """Parse a program that a test starts; a text that is none, or that has holes, has no nodes."""
    try:
        return tuple(ast.walk(ast.parse(text)))
    except SyntaxError:
        return ()


def found_in(path: Path) -> list[str]:
    text = path.read_text()
    named = set(re.findall(r"\b_[A-Za-z]\w*", text)) - names_in(text)
    quoted = set(re.findall(r"[\"'.](_[A-Za-z]\w*)[\"'.]", text))
    if private_names().isdisjoint(named | quoted):
        return []
    return [f"{path.relative_to(ROOT)}:{line} {use}" for line, use in uses(nodes(path), private_names())]


def test_no_test_uses_a_private_name_of_rplctl() -> None:
    files = [path for path in sorted((ROOT / "tests").rglob("*.py")) if path != Path(__file__)]
    found = [use for path in files for use in found_in(path)]
    counts = Counter(use.partition(":")[0] for use in found)
    assert [use for use in found if counts[use.partition(":")[0]] > ALLOWED.get(use.partition(":")[0], 0)] == []
    assert counts == ALLOWED, "fewer than are allowed: lower the number"


def test_each_way_to_use_a_private_name_is_found() -> None:
    names = frozenset({"_open", "_Switch"})
    program = "import rplctl.a\nrplctl.a._open = None\n"
    lines = [
        "from rplctl.a import _open",
        "thing._open()",
        "monkeypatch.setattr(thing, '_open', 1)",
        "monkeypatch.setattr('rplctl.a._Switch.write', 1)",
        f"run({program!r})",
    ]
    found = uses(tuple(ast.walk(ast.parse("\n".join(lines)))), names)
    assert sorted(line for line, _ in found) == [1, 2, 3, 4, 5]
    own = "class Mine:\n    def _open(self): ...\n\nMine()._open()\nos._exit(0)"
    assert not list(uses(tuple(ast.walk(ast.parse(own))), names))
