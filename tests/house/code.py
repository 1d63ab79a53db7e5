"""The code as the rules of the house read it: modules, their trees, and who imports whom."""

from __future__ import annotations

import ast
import gc
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "rplctl"
MODULES = sorted(PACKAGE.rglob("*.py"))
LOADERS = {"import_module", "__import__"}


def name_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def short(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    """All of the module's, outer ones first: a walk takes longer than to look at what it finds."""
    _load_package()
    return tuple(ast.walk(tree(path)))


@cache
def _load_package() -> None:
    """Read all modules of the package at once: a collection of garbage would walk 600,000 nodes again and again."""
    gc.disable()
    for path in MODULES:
        tree(path)
    gc.freeze()
    gc.enable()


def is_empty(path: Path) -> bool:
    """Nothing but a docstring, imports and `__all__`."""
    allowed = (ast.Import, ast.ImportFrom, ast.Expr)
    others = [node for node in tree(path).body if not isinstance(node, allowed)]
    if not all(isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign) for node in others):
        return False  # to write a class or a function out as text takes long
    return all(ast.unparse(node).startswith(("__all__", "__version__")) for node in others)


def nothing_runs(path: Path) -> bool:
    """Constants, records and protocols only: no function has a body."""
    bodies = [node.body[-1] for node in nodes(path) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    return all(isinstance(last, ast.Expr) and isinstance(last.value, ast.Constant) for last in bodies)


@cache
def imports(path: Path) -> set[str]:
    """Absolute names imported anywhere in the module, `from a import b` as both `a` and `a.b`."""
    names: set[str] = set()
    package = name_of(path) if path.name == "__init__.py" else name_of(path).rpartition(".")[0]
    for node in nodes(path):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parents = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*parents, *filter(None, [node.module])])
            names.update([base, *(f"{base}.{alias.name}" for alias in node.names)])
    return names


def loaded_by_name(path: Path) -> set[str]:
    """Modules that the code loads by a text: `import_module("rplctl.a.b")`, or `import_module(f"rplctl.a.{x}")`
    with the module's own texts that can be x ("b", or "b-c" for b_c as in a table of commands), or `f"{x}.b"`.
    """
    calls = [node for node in nodes(path) if isinstance(node, ast.Call) and node.args]
    asked = [call.args[0] for call in calls if called(call) in LOADERS]
    texts = {node.value for node in nodes(path) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    names = {text for text in texts if asked and text.startswith("rplctl.")}
    for argument in asked:
        if isinstance(argument, ast.JoinedStr) and isinstance(argument.values[0], ast.Constant):
            names |= {str(argument.values[0].value) + text.replace("-", "_") for text in texts}
        elif isinstance(argument, ast.JoinedStr) and isinstance(argument.values[-1], ast.Constant):
            names |= {text + str(argument.values[-1].value) for text in texts if text.startswith("rplctl.")}
    return names


def called(call: ast.Call) -> str:
    """`c` of `a.b.c()`."""
    match call.func:
        case ast.Name(name) | ast.Attribute(attr=name):
            return name
    return ""


@dataclass(frozen=True, order=True)
class Edge:
    """`importer` imports the module `imported`, in the function `inside`; "" is the top of the module."""

    importer: str
    imported: str
    inside: str
    for_types_only: bool = False

    def __str__(self) -> str:
        return f"{self.importer} → {self.imported}" + (f" in {self.inside}" if self.inside else "")


@cache
def edges() -> frozenset[Edge]:
    """Every import of a module by a module of rplctl/, and of other libraries by their first name."""
    known = {name_of(path) for path in MODULES}
    return frozenset(edge for path in MODULES for edge in _edges(tree(path), path, known, "", False))


def _edges(node: ast.AST, path: Path, known: set[str], inside: str, for_types: bool) -> Iterator[Edge]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import | ast.ImportFrom):
            assert not isinstance(child, ast.ImportFrom) or child.level == 0, f"{short(path)}: a relative import"
            base = child.module or "" if isinstance(child, ast.ImportFrom) else ""
            names = {alias.name if not base else f"{base}.{alias.name}" for alias in child.names}
            for name in {name if name in known else base or name for name in names}:
                to = name if name in known else name.partition(".")[0]
                yield Edge(name_of(path), to, inside, for_types)
        at = inside
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            at = inside or child.name
        types = for_types or isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test)
        yield from _edges(child, path, known, at, types)
