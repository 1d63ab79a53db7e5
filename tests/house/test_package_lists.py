"""The docstring of each package lists every module and every package in its folder, one per line."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path

import pytest

from rplctl.cli.app import VERBS
from tests.house.code import MODULES, PACKAGE, short, tree

ROW = re.compile(r"^(\w+/?) {2,}(\S.*)$", re.MULTILINE)
PACKAGES = [path.parent for path in MODULES if path.name == "__init__.py"]
VERB_MODULES = {verb.replace("-", "_") for verb in VERBS}
HAVE_A_MODULE_PER_VERB = {PACKAGE / "cli", PACKAGE / "command"}  # tests/house/test_verbs.py compares these modules


@pytest.mark.parametrize("package", PACKAGES, ids=short)
def test_the_docstring_lists_the_modules_of_the_folder(package: Path) -> None:
    docstring = ast.get_docstring(tree(package / "__init__.py")) or ""
    assert differences(docstring, package, VERB_MODULES if package in HAVE_A_MODULE_PER_VERB else set()) == []


@pytest.mark.parametrize("package", PACKAGES, ids=short)
def test_each_module_has_a_phrase_of_four_to_twelve_words(package: Path) -> None:
    rows = ROW.findall(ast.get_docstring(tree(package / "__init__.py")) or "")
    assert [f"{name}: {phrase}" for name, phrase in rows if not 4 <= len(phrase.split()) <= 12] == []


def differences(docstring: str, folder: Path, exempt: set[str]) -> list[str]:
    """Return the differences between the list in a docstring and the folder. A package has a / after its name."""
    listed = Counter(name for name, _ in ROW.findall(docstring))
    modules = {path.stem for path in folder.glob("*.py")} - {"__init__"} - exempt
    there = modules | {f"{path.parent.name}/" for path in folder.glob("*/__init__.py")}
    return [
        *(f"{name} is not listed" for name in sorted(there - set(listed))),
        *(f"{name} is listed, but is not in the folder" for name in sorted(set(listed) - there)),
        *(f"{name} is listed more than once" for name, times in sorted(listed.items()) if times > 1),
    ]


@pytest.mark.parametrize(
    ("rows", "found"),
    [
        ("reader  reads one file\nkinds/  one package for each kind", []),
        ("reader  reads one file", ["kinds/ is not listed"]),
        ("kinds/  one package for each kind", ["reader is not listed"]),
        (
            "reader  reads one file\nkinds  one package",
            ["kinds/ is not listed", "kinds is listed, but is not in the folder"],
        ),
        (
            "reader  reads one file\nkinds/  one package\nwriter  writes one file",
            ["writer is listed, but is not in the folder"],
        ),
        (
            "reader  reads one file\nkinds/  one package\nreader  reads it again",
            ["reader is listed more than once"],
        ),
        (
            "reader.py  reads one file\nkinds/  one package;  other  another one",
            ["reader is not listed"],
        ),
    ],
)
def test_a_module_that_is_missing_gone_or_listed_twice_is_found(tmp_path: Path, rows: str, found: list[str]) -> None:
    (tmp_path / "kinds").mkdir()
    (tmp_path / "data").mkdir()  # a folder without modules is no package
    for name in ("__init__.py", "reader.py", "start.py", "kinds/__init__.py"):
        (tmp_path / name).touch()
    assert differences(f"Files of one kind.\n\n{rows}\n", tmp_path, {"start"}) == found
