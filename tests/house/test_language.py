"""Plain English (docs/style.md): what a machine can count of it is counted, and no count may grow.

`LIMITS` holds the counts of today. Whoever rewrites a text lowers its limit in the same commit; 0 is the goal.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.cli.program import whole_program
from tests.house.code import MODULES, ROOT, nodes

LIMITS = {
    "docstring that is no sentence": 0,
    "docstring below four words": 0,
    "private phrase in a text of the program": 0,
    "private phrase in a manual page": 0,
    "private phrase in a document or help": 0,
    "private word in a name": 0,
    "hint inside an error text": 0,
    "sentence above 25 words in a manual page": 0,
    "sentence above 25 words in a document or help": 0,
}
WORDS_PER_SENTENCE = 20  # on average
NO_SENTENCE = re.compile(r"(?:Of|As|With|But|For|For who|What|Whether|Asked|Told)\b")
PHRASES = re.compile(
    r"\b(?:to be had|goes? by|hangs? on|stands? still|stands at|beside|in work|as a rule|of late|anew|mends?|mended"
    r"|wants|is told|are told|is drawn|are drawn|what is there|what was there|is no (?:number|property|name)|behind it"
    r"|up to where|passes over|passed over|way out|heirs?|made good)\b",
    re.IGNORECASE,
)
PRIVATE = {
    *("bag", "bags", "drawn", "draw", "entangled", "lying", "apart", "unfolded", "unfolds", "unfold", "heir", "heirs"),
    *("settle", "settles", "told", "framed", "trouble", "witness", "superseded", "sever", "severed", "evict"),
    *("heeding", "expendable", "touched", "mend", "mended", "family", "families", "ledger", "chance"),
}
STORED_NAMES = {"Family"}  # the column of rplctl_clone that instances of earlier versions have


@cache
def counts() -> Counter[str]:
    found = Counter[str]()
    for path in MODULES:
        docstrings = [text for node in nodes(path) if (text := docstring_of(node))]
        found["docstring that is no sentence"] += sum(bool(NO_SENTENCE.match(text)) for text in docstrings)
        found["docstring below four words"] += sum(len(text.split()) < 4 for text in docstrings)
        for text in texts_of(path):
            found["private phrase in a text of the program"] += len(PHRASES.findall(text))
            found["hint inside an error text"] += "(hint:" in text
        names = names_of(path) - STORED_NAMES
        found["private word in a name"] += sum(not PRIVATE.isdisjoint(words) for words in map(words_of, names))
    found["private phrase in a manual page"] = sum(len(PHRASES.findall(text)) for text in MANUAL_PAGES)
    found["private phrase in a document or help"] = sum(len(PHRASES.findall(text)) for text in [*documents(), *helps()])
    for where, texts in (("manual page", MANUAL_PAGES), ("document or help", [*documents(), *helps()])):
        found[f"sentence above 25 words in a {where}"] = sum(length > 25 for length in sentences(texts))
    return found


def docstring_of(node: ast.AST) -> str:
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    return (ast.get_docstring(node) or "") if isinstance(node, kinds) else ""


def texts_of(path: Path) -> Iterator[str]:
    """Texts of two words and more that are no docstrings: messages, hints, help."""
    own = {
        id(node.body[0].value)
        for node in nodes(path)
        if docstring_of(node) and isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        if isinstance(node.body[0], ast.Expr)
    }
    for node in nodes(path):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in own and " " in node.value:
            yield node.value


def names_of(path: Path) -> set[str]:
    """What the module defines: functions, classes, parameters and variables."""
    found = {path.stem}
    for node in nodes(path):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.arg):
            found.add(node.arg)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
    return found


def words_of(name: str) -> set[str]:
    return set(re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower().split("_"))


def plain_manual(path: Path) -> str:
    """Running text only: no tables, examples, headings."""
    text = re.sub(r"^\.(?:nf|EX)\n.*?^\.(?:fi|EE)$", "", path.read_text(), flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"^\.(?:SH|SS|TH|TP|IP|PP|RS|RE).*$", "\n", text, flags=re.MULTILINE)
    text = re.sub(r"^\.[A-Z]+ ", "", text, flags=re.MULTILINE)
    return re.sub(r"\\f[BIR]|\\\(..", "", text).replace("\\-", "-")


MANUAL_PAGES = [plain_manual(path) for path in sorted(ROOT.glob("man/*.[0-9]"))]


def documents() -> list[str]:
    """README, docs/ and the like, without code and tables."""
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", *sorted(ROOT.glob("docs/**/*.md"))]
    skipped = re.compile(r"^```.*?^```$|^\|[^\n]*$|^#[^\n]*$|`[^`]*`|\]\([^)]*\)", re.MULTILINE | re.DOTALL)
    return [skipped.sub("", page.read_text()) for page in pages]


def helps() -> list[str]:
    """The help of each verb and option."""
    commands = whole_program().commands.values()
    options = [getattr(parameter, "help", "") or "" for command in commands for parameter in command.params]
    return [*(command.help or "" for command in commands), *options]


def sentences(texts: list[str]) -> list[int]:
    """The words of each sentence. A list's item ends one, as a full stop does."""
    parts = [part for text in texts for part in re.split(r"(?<=[.?!])\s|\n\s*\n|\n *(?:\*|-|\d+\.) ", text)]
    return [count for part in parts if (count := len(re.findall(r"[\w'/-]*\w", part))) > 2]


@pytest.mark.parametrize("what", LIMITS)
def test_no_count_grows(what: str) -> None:
    assert counts()[what] <= LIMITS[what], f"{what}: write it as docs/style.md says"


def test_the_sentences_of_documents_help_and_manual_pages_are_short() -> None:
    for texts in (documents(), helps(), MANUAL_PAGES):
        lengths = sentences(texts)
        assert sum(lengths) / len(lengths) <= WORDS_PER_SENTENCE


def test_the_counter_finds_what_it_counts(tmp_path: Path) -> None:
    module = tmp_path / "heir_of.py"
    module.write_text(
        '"""What is told."""\n\ndef settle(bag: int) -> str:\n    """Of it."""\n    return "mend it anew"\n'
    )
    assert [bool(NO_SENTENCE.match(text)) for node in nodes(module) if (text := docstring_of(node))] == [True, True]
    assert [PHRASES.findall(text) for text in texts_of(module)] == [["mend", "anew"]]
    assert {name for name in names_of(module) if not PRIVATE.isdisjoint(words_of(name))} == {"heir_of", "settle", "bag"}
