"""The folder of the tests is as tests/README.md and tests/bench/README.md describe it."""

from __future__ import annotations

import ast
import re
import tomllib

from tests.bench.__main__ import PARTS
from tests.house.code import ROOT, called, imports, nodes

TESTS = ROOT / "tests"
TEXTS = {path: path.read_text() for path in sorted(TESTS.rglob("*.py"))}
README = (TESTS / "README.md").read_text()


def rows_below(heading: str, text: str) -> list[list[str]]:
    """Return the cells of the table below a heading, without the table's head."""
    part = text.split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]
    lines = [line for line in part.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def test_every_path_that_the_page_names_exists() -> None:
    named = re.findall(r"(?<![\w/])((?:tests|rplctl)/[\w/.]*\w/?)", README.replace("tests/a/test_b.py", ""))
    assert len(named) > 25
    assert [path for path in named if path != "rplctl/a/b.py" and not (ROOT / path).exists()] == []


def test_the_page_explains_every_marker() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    declared = {line.partition(":")[0] for line in settings["tool"]["pytest"]["ini_options"]["markers"]}
    explained = {name for row in rows_below("Markers", README) for name in re.findall(r"`([^`]+)`", row[0])}
    assert declared == explained


def test_the_page_of_the_benchmarks_describes_every_part_and_every_variable() -> None:
    page = (TESTS / "bench/README.md").read_text()
    rows = [re.split(r" *\| *", line.strip("| ")) for line in page.splitlines() if line.startswith("| `")]
    assert [row[0].strip("`") for row in rows] == list(PARTS)
    assert [row[0] for row in rows if len(row) != 4 or not all(row) or not re.search(r"\d+ (s|min)", row[3])] == []
    read = {name for path in TESTS.glob("bench/*.py") for name in re.findall(r"RPLCTL_BENCH_[A-Z_]+", TEXTS[path])}
    assert set(re.findall(r"RPLCTL_BENCH_[A-Z_]+", page)) == read


def test_tests_and_kit_import_no_tool_but_the_one_under_test() -> None:
    """What a tool shares with tests is a kit module, so that a tool can change freely."""
    users = {
        f"{path.relative_to(TESTS)}: {name}"
        for path, text in TEXTS.items()
        if "tests.tools" in text and TESTS / "tools" not in path.parents
        for name in imports(path)
        if name.startswith("tests.tools.") and (TESTS / f"{name.removeprefix('tests.').replace('.', '/')}.py").exists()
    }
    assert users == {  # what tests a recording, or a page
        "demo/test_demo.py: tests.tools.record_demo",
        "house/test_messages.py: tests.tools.write_messages",
    }


def test_a_skipped_test_gives_its_reason() -> None:
    silent = []
    for path, text in TEXTS.items():
        for node in nodes(path) if re.search(r"pytest\.skip\(|mark\.skip", text) else ():
            match node:
                case ast.Call(ast.Attribute(attr="skip"), []):
                    silent.append(f"{path.relative_to(ROOT)}:{node.lineno}")
                case ast.Call() if called(node) == "skipif" and not any(key.arg == "reason" for key in node.keywords):
                    silent.append(f"{path.relative_to(ROOT)}:{node.lineno}")
                case ast.FunctionDef() if any(ast.unparse(mark) == "pytest.mark.skip" for mark in node.decorator_list):
                    silent.append(f"{path.relative_to(ROOT)}:{node.lineno}")
    assert silent == []
