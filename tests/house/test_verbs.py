"""`rplctl VERB` is two files named VERB: its options in rplctl/cli/, its work in rplctl/command/."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import rplctl
from rplctl.cli.app import VERBS
from tests.cli.program import whole_program

PACKAGE = Path(rplctl.__file__).parent
FOLDERS = {"check": "check/verb"}  # → a verb that is a package: its parts are used by others, too
# modules of cli/ that are no verb's
SHARED = {
    *("__init__", "app", "globals", "completion", "plain_values"),  # the program
    *("options", "passwords", "backup_lock"),  # what several verbs take
    *("output", "text", "color", "progress"),  # what they show
}


@pytest.mark.parametrize("verb", [name for name in whole_program().commands if name in VERBS])
def test_a_verb_is_a_file_on_either_side(verb: str) -> None:
    name = verb.replace("-", "_")
    assert [place for place in (f"cli/{name}.py", f"command/{FOLDERS.get(name, name)}.py") if not at(place)] == []
    assert name in functions_of(PACKAGE / f"cli/{name}.py")


def at(place: str) -> bool:
    return (PACKAGE / place).is_file()


def functions_of(path: Path) -> set[str]:
    return {node.name for node in ast.parse(path.read_text()).body if isinstance(node, ast.FunctionDef)}


def test_each_command_is_a_verb_or_an_alias_of_one() -> None:
    assert set(whole_program().commands) == {name for verb, aliases in VERBS.items() for name in (verb, *aliases)}


def test_each_file_is_a_verbs_or_lies_in_a_package() -> None:
    verbs = {verb.replace("-", "_") for verb in VERBS}
    assert {path.stem for path in (PACKAGE / "cli").glob("*.py")} == verbs | SHARED
    assert {path.stem for path in (PACKAGE / "command").glob("*.py")} == (verbs - set(FOLDERS)) | {"__init__"}
