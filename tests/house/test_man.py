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
from rplctl.event.gtid import MysqlGtidSet
from rplctl.info import MasterInfo
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
from tests.kit.native_rows import EXPLAINED

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
    unsigned = {
        "bigint unsigned": Column(name="c", type="bigint", unsigned=True),
        "bit(64)": Column(name="c", type="bit", length=64),
    }
    for name, how in documented.items():
        column = unsigned.get(name, Column(name="c", type=name))
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
        assert declared(Column(name="c", type=kind, length=length, scale=scale, unsigned=bool(unsigned))) == expected, (
            name
        )
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


DIFFERENCES = {  # from a replica of the source's vendor, and the test that holds our side
    "Statements without a default database": "test_a_statement_without_a_default_database_passes_by_its_tables",
    "Letter case of table rules": "test_rows_are_asked_for_their_database_then_their_table",
    "Collations of the other vendor": "test_a_collation_that_the_target_lacks_stops",
    "Earlier positions": "test_an_earlier_position_without_gtids_of_mysql_is_confirmed",
    "Relay logs": "test_relay_logs_stay_when_neither_source_nor_position_nor_gtid_is_named",
    "GTIDs after reset": "test_executed_gtids_of_mysql_are_passed_over_as_by_mysql",
    "Until a GTID position of MariaDB": "test_mariadbs_gtids_count_by_domain",
    "Number of skipped transactions": "test_a_dry_run_shows_gtid_position_tables_and_rows_of_each",
    "Temporary tables": "test_temporary_tables_that_a_stop_loses_are_named",
    "Triggers of the target": "test_rows_are_checked_as_their_event_says_and_replayed_where_only_that_is_right",
    "Types of the target's columns": "test_columns_that_cannot_be_matched_stop_with_the_number_a_replica_stops_with",
    "Attempts to connect": "test_each_difference_from_a_replica_has_a_reason_and_a_test",
    "State of the applier": "test_every_verb_status_and_error_is_equal_or_explained",
    "Killed threads": "test_what_is_frozen_or_killed_is_never_said_to_be_in_order",
    "Sets of GTIDs": "test_each_difference_from_a_replica_has_a_reason_and_a_test",
    "Options without effect": "test_each_wrong_value_has_its_error_and_changes_nothing",
    "Statements that join tables": "test_every_filter_is_equal_or_explained",
    "Existing tables and databases": "test_every_verb_status_and_error_is_equal_or_explained",
    "Options of a running thread": "test_every_option_and_pair_of_options_is_equal_or_explained",
    "Options and GTIDs": "test_every_option_and_pair_of_options_is_equal_or_explained",
    "What reset keeps": "test_every_verb_status_and_error_is_equal_or_explained",
    "Numbers of errors": "test_every_verb_status_and_error_is_equal_or_explained",
    "Positions before the first connection": "test_every_verb_status_and_error_is_equal_or_explained",
    "Retrieved GTIDs": "test_every_verb_status_and_error_is_equal_or_explained",
    "Change to GTIDs": "test_every_verb_status_and_error_is_equal_or_explained",
    "Lag without a connection": "test_every_verb_status_and_error_is_equal_or_explained",
    "Encryption by default": "test_every_verb_status_and_error_is_equal_or_explained",
    "Counters of MariaDB": "test_every_verb_status_and_error_is_equal_or_explained",
}


def test_each_difference_from_a_replica_has_a_reason_and_a_test() -> None:
    text = sections(plain("rplctl.1"), "SH")["DIFFERENCES FROM A MYSQL REPLICA"]
    parts = re.split(r"^\.TP\n\.B (.+)$", text, flags=re.MULTILINE)
    entries = dict(zip(parts[1::2], parts[2::2], strict=True))
    assert list(entries) == list(DIFFERENCES)
    assert [name for name, entry in entries.items() if entry.count("\nReason: ") != 1] == []
    assert {row.sentence for row in EXPLAINED} <= entries.keys()
    tests = "".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
    assert [name for name in DIFFERENCES.values() if f"def {name}(" not in tests] == []
    two = "3e11fa47-71ca-11e1-9e33-c80aa9429562:1,4e11fa47-71ca-11e1-9e33-c80aa9429562:1-2"
    assert str(MysqlGtidSet.parse(two)) == two
    assert MasterInfo().retry_count == int(re.findall(r"is (\d+) by default", text)[0])
