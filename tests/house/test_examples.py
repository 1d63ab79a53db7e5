"""Each command line that README.md or a manual page shows is one that the program takes; the stories run them."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from rplctl.cli.app import command_for, verb_of
from rplctl.cli.globals import hoist
from rplctl.config import load_config
from tests.kit.examples import PAGES, examples, option_files

PLACEHOLDERS = {"POS": "4", "N": "4"}


def rplctl_lines() -> list[tuple[str, ...]]:
    """Also those that a shell of an example runs."""
    found = []
    for example in examples():
        lines = [example.words]
        if "-c" in example.words:
            script = example.words[example.words.index("-c") + 1]
            lines += [tuple(shlex.split(part)) for part in script.split("&&")]
        found += [words[1:] for words in lines if words[0] == "rplctl"]
    return sorted(set(found))


@pytest.mark.parametrize("words", rplctl_lines(), ids=" ".join)
def test_the_program_takes_every_line_that_is_shown(words: tuple[str, ...]) -> None:
    hoisted = hoist([PLACEHOLDERS.get(word, word) for word in words])
    name = verb_of(hoisted)
    own = hoisted[hoisted.index(name) + 1 :]
    command_for(hoisted).commands[name].make_context(name, own).close()


@pytest.mark.parametrize("text", option_files())
def test_every_option_file_that_is_shown_can_be_loaded(text: str, tmp_path: Path) -> None:
    (tmp_path / "rplctl.toml").write_text(text)
    load_config(tmp_path)


def test_the_pictures_of_the_readme_are_there() -> None:
    shown = re.findall(r"!\[[^]]+\]\(([^)]+)\)", PAGES[0].read_text())
    assert len(shown) == 2 and all((PAGES[0].parent / path).is_file() for path in shown)


def test_all_pages_are_read() -> None:
    assert {"README.md", "rplctl.1"} <= {example.page for example in examples()}
    assert len(examples()) > 40 and len(option_files()) > 1
