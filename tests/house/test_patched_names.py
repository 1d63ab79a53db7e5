"""What a test puts something else in the place of is there: also in the long tests, which only `make torture` runs."""

from __future__ import annotations

import ast
import pkgutil
from collections.abc import Iterator
from pathlib import Path

from tests.house.code import ROOT

OURS = ("rplctl", "tests")


def imported(module: ast.Module) -> dict[str, str]:
    """Name in the module → dotted path of what it stands for, of our own."""
    found: dict[str, str] = {}
    for node in ast.walk(module):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith(OURS):
            found |= {part.asname or part.name: f"{node.module}.{part.name}" for part in node.names}
        elif isinstance(node, ast.Import):
            found |= {part.asname: part.name for part in node.names if part.asname and part.name.startswith(OURS)}
    return found


def patched(module: ast.Module) -> Iterator[str]:
    """Dotted path of each thing that `monkeypatch.setattr` changes, where the text alone tells it."""
    names = imported(module)
    for node in ast.walk(module):
        match node:
            case ast.Call(ast.Attribute(ast.Name(), "setattr"), [ast.Constant(str(path)), *_], []):
                yield path
            case ast.Call(ast.Attribute(ast.Name(), "setattr"), [ast.Name(name), ast.Constant(str(attribute)), *_], []):
                if name in names:
                    yield f"{names[name]}.{attribute}"


def is_there(path: str) -> bool:
    try:
        pkgutil.resolve_name(path)
    except (AttributeError, ImportError):
        return False
    return True


def test_what_a_test_patches_is_there() -> None:
    found: dict[str, Path] = {}
    for file in sorted((ROOT / "tests").rglob("*.py")):
        if "setattr(" in (text := file.read_text()):
            found |= dict.fromkeys(patched(ast.parse(text)), file)
    assert len(found) > 100
    assert not {path: str(file) for path, file in found.items() if not is_there(path)}
