"""The manual pages say what the program does: every verb, option, exit code and variable, and nothing else."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from rplctl import errors
from rplctl.cli.app import GROUPS, VERBS
from rplctl.command.show_status import COLUMNS
from rplctl.config import OPTIONS
from rplctl.schema.model import (
    BINARY_TYPES,
    CHARACTER_TYPES,
    GEOMETRY_TYPES,
    INTEGER_BITS,
    TEMPORAL_TYPES,
    TEXT_BYTES,
    Column,
)
from rplctl.target.postgresql.ddl_type import declared
from rplctl.target.sqlite.ddl_type import affinity
from tests.cli.program import whole_program

ROOT = Path(__file__).parents[2]
MAN = ROOT / "man"
PAGES = sorted(MAN.glob("*.[0-9]"))
SECTIONS = [
    *("NAME", "SYNOPSIS", "DESCRIPTION", "CONCEPTS", "EXAMPLES"),
    *("COMMANDS", "OPTIONS", "EXIT STATUS", "FILES", "ENVIRONMENT"),
]


def plain(page: str) -> str:
    text = (MAN / page).read_text()
    return re.sub(r"\\f[BIR]", "", text).replace("\\-", "-").replace("\\e", "\\")


def sections(text: str, macro: str) -> dict[str, str]:
    parts = re.split(rf"^\.{macro} (.+)$", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def flags_of(command: Any) -> set[str]:
    return {
        flag
        for parameter in command.params
        if not getattr(parameter, "hidden", False)
        for flag in [*parameter.opts, *parameter.secondary_opts]
        if flag.startswith("-") and flag not in ("-h", "--help", "--install-completion", "--show-completion")
    }


def documented_flags(text: str) -> set[str]:
    heads = re.findall(r"^\.TP\n(.+)$", text, flags=re.MULTILINE)
    return {flag for head in heads for flag in re.findall(r"(?<![\w-])--?[A-Za-z][\w-]*", head)}


SUBSECTIONS = sections(sections(plain("rplctl.1"), "SH")["COMMANDS"], "SS")


def test_the_page_has_the_usual_sections_in_order() -> None:
    found = list(sections(plain("rplctl.1"), "SH"))
    assert [name for name in found if name in SECTIONS] == SECTIONS
    assert found[-1] == "SEE ALSO"


def test_every_verb_has_its_section_and_the_reverse() -> None:
    assert list(SUBSECTIONS) == list(VERBS)


def test_the_page_lists_the_verbs_by_task_as_help_does() -> None:
    lead = sections(plain("rplctl.1"), "SH")["COMMANDS"].partition("\n.PP\n")[0]
    items = re.findall(r"^\.TP\n\.B (.+)\n((?:(?!\.).+\n?)+)", lead, flags=re.MULTILINE)
    assert {group: tuple(re.findall(r"[\w-]+", names)) for group, names in items} == GROUPS


def flags_of_the_option_file() -> set[str]:
    """The options of rplctl.toml(5) as options of `init`, which that page documents."""
    text = sections(plain("rplctl.toml.5"), "SH")["OPTIONS"]
    names = {*re.findall(r"^\.TP\n(\w+) = ", text, flags=re.MULTILINE)} - {"datadir", "target_password"}
    old_names = {name.replace("replica_", "slave_", 1) for name in names if "replica_" in name}
    return {"--" + name.replace("_", "-") for name in names | old_names}


@pytest.mark.parametrize(("name", "aliases"), list(VERBS.items()))
def test_every_option_and_alias_of_a_verb_is_documented_and_the_reverse(name: str, aliases: tuple[str, ...]) -> None:
    elsewhere = flags_of_the_option_file() if name == "init" else set[str]()
    assert documented_flags(SUBSECTIONS[name]) | elsewhere == flags_of(whole_program().commands[name])
    for alias in aliases:
        assert f"{alias}" in SUBSECTIONS[name] and whole_program().commands[alias].hidden


def test_global_options_are_documented_and_the_reverse() -> None:
    text = sections(plain("rplctl.1"), "SH")["OPTIONS"]
    found = documented_flags(text) - {"--help", "-h", "--install-completion", "--show-completion"}
    assert found == flags_of(whole_program())


def test_exit_codes_are_those_of_the_error_tree() -> None:
    text = sections(plain("rplctl.1"), "SH")["EXIT STATUS"]
    documented = {int(code) for code in re.findall(r"^\.TP\n\.B (\d+)$", text, flags=re.MULTILINE)}
    classes = [
        value for value in vars(errors).values() if isinstance(value, type) and issubclass(value, errors.RplError)
    ]
    assert documented == {0, 130} | {kind.exit_code for kind in classes}


def test_every_option_of_the_option_file_is_documented_with_range_and_default() -> None:
    text = sections(plain("rplctl.toml.5"), "SH")["OPTIONS"]
    rows = dict(re.findall(r"^\.TP\n(\w+) = (.+)$", text, flags=re.MULTILINE))
    assert rows.pop("datadir") == "text"
    assert rows == {o.name: o.range_text for o in OPTIONS.values()}
    for o in OPTIONS.values():
        shown = str(o.default).lower() if isinstance(o.default, bool) else str(o.default) or "empty"
        assert re.search(rf"^{o.name} = .+\n.+\nDefault: {re.escape(shown)}\.$", text, flags=re.MULTILINE), o.name


def test_the_json_page_names_the_columns() -> None:
    text = plain("rplctl-json.5")
    for name in COLUMNS[COLUMNS.index("Master_TLS_Version") :]:
        assert name in text


def test_the_types_page_says_what_each_type_is_declared_as_in_sqlite() -> None:
    """Every type of the models is there, with what `ddl_type` of SQLite makes of it."""
    items = re.findall(
        r"^\.TP\n\.B (.+)\nDeclared (.+)\.$", sections(plain("rplctl-types.7"), "SH")["SQLITE"], re.MULTILINE
    )
    documented = {name.lower(): declared for names, declared in items for name in names.split(", ")}
    words = {
        "with its own name": None,
        "without a type": "",
        **{f"as {word}": word for word in ("INT", "REAL", "TEXT", "BLOB")},
    }
    unsigned = {"bigint unsigned": Column("c", "bigint", unsigned=True), "bit(64)": Column("c", "bit", length=64)}
    for name, how in documented.items():
        column = unsigned.get(name, Column("c", name))
        assert affinity(column) == (name.upper() if words[how] is None else words[how]), name
    known = {*INTEGER_BITS, *TEXT_BYTES, *BINARY_TYPES, *GEOMETRY_TYPES, *TEMPORAL_TYPES, *CHARACTER_TYPES}
    assert known <= documented.keys()


def test_the_types_page_says_what_each_type_is_declared_as_in_postgresql() -> None:
    items = re.findall(
        r"^\.TP\n\.B (.+)\nDeclared as (.+)\.$", sections(plain("rplctl-types.7"), "SH")["POSTGRESQL"], re.MULTILINE
    )
    documented = {name.lower(): words for names, words in items for name in names.split(", ")}
    for name, words in documented.items():
        kind, _, unsigned = name.partition(" ")
        length, scale = (9, 4) if kind == "decimal" else (3, None)
        expected = words.replace("(n)", "(3)").replace("(p,s)", "(9,4)")
        assert declared(Column("c", kind, length, scale, unsigned=bool(unsigned))) == expected, name
    known = {*INTEGER_BITS, *TEXT_BYTES, *BINARY_TYPES, *GEOMETRY_TYPES, *TEMPORAL_TYPES, *CHARACTER_TYPES}
    assert known | {f"{name} unsigned" for name in INTEGER_BITS} <= documented.keys()


def test_every_decision_that_the_code_refers_to_is_on_the_design_page() -> None:
    decisions = {name.split()[0] for name in sections(sections(plain("rplctl-design.7"), "SH")["DECISIONS"], "SS")}
    unknown = [
        f"{path.relative_to(ROOT)}: {number}"
        for folder in ("rplctl", "tests", "migrations")
        for path in sorted((ROOT / folder).rglob("*.py"))
        for reference in re.findall(r"design ((?:D[0-9]+(?:, | and )?)+)", path.read_text())
        for number in re.findall(r"D[0-9]+", reference)
        if number not in decisions
    ]
    assert unknown == []


def test_every_text_that_is_named_is_in_the_repository() -> None:
    elsewhere = re.compile(r"(?:mission|reliability|ecosystem|style)[- ]map|design (?:section|§)")
    named = [
        f"{path.relative_to(ROOT)}: {found}"
        for path in sorted(
            {*ROOT.glob("rplctl/**/*.py"), *ROOT.glob("tests/**/*.py"), *ROOT.glob("migrations/**/*.py")}
        )
        if path != Path(__file__)
        for found in elsewhere.findall(path.read_text())
    ]
    assert named == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
@pytest.mark.parametrize(
    "command", [("mandoc", "-T", "lint", "-W", "warning"), ("groff", "-man", "-Tutf8", "-ww", "-z")], ids=lambda c: c[0]
)
def test_formatters_have_nothing_to_say(page: Path, command: tuple[str, ...]) -> None:
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed")
    done = subprocess.run([*command, str(page)], capture_output=True, text=True)
    assert (done.stdout + done.stderr, done.returncode) == ("", 0)
