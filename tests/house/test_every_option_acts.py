"""No option is taken and then ignored: what can be set, in a file, by CHANGE MASTER or by a flag, is read by code.

Read means: an attribute of that name is loaded somewhere that is neither the table it stands in, nor what stores, moves
or shows it. What an option then does is its own test; this one finds the option that nobody looks at.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from functools import cache
from pathlib import Path

import pytest

from rplctl.cli.app import VERBS
from rplctl.command.channel.change_options import CHANGE_OPTIONS
from rplctl.config import OPTIONS
from tests.cli.program import whole_program
from tests.house.code import MODULES, PACKAGE, nodes, short

# stores, moves, shows or checks records as a whole
KEEPERS = ("config.py", "info.py", "repository/", "command/change_", "command/show_status.py", "command/import_info.py",
           "command/export_info.py", "cli/")  # fmt: skip
# rows of repository/record.py name these; RelayLogInfo's and MasterInfo's files and tables look them up there
BY_RECORD = {"sync_master_info", "sync_relay_log_info", "master_info_repository", "relay_log_info_repository"}
# the read position is one property, and so is where the applier is
BY_PROPERTY = {"master_log_name", "master_log_pos", "relay_log_name", "relay_log_pos", "target_password", "nul_in_text"}


def attributes(path: Path) -> set[str]:
    return {node.attr for node in nodes(path) if isinstance(node, ast.Attribute)}


@cache
def read() -> set[str]:
    return {name for path in MODULES if not short(path).startswith(KEEPERS) for name in attributes(path)}


@pytest.mark.parametrize("name", sorted(OPTIONS))
def test_every_option_of_the_option_file_is_read(name: str) -> None:
    if name in BY_RECORD:
        assert f'"{name}"' in (PACKAGE / "repository" / "record.py").read_text()
    else:
        assert name in read() or name in BY_PROPERTY & attributes(PACKAGE / "config.py")


@pytest.mark.parametrize("name", sorted(CHANGE_OPTIONS))
def test_every_option_of_change_master_is_read_or_refused(name: str) -> None:
    row = CHANGE_OPTIONS[name]
    if row.refused:
        assert row.instead, "a refusal says what to do instead"
        return
    field = row.stores.partition(".")[2]
    if field == "assign_gtids_to_anonymous_transactions_type":
        field = "assign_gtids_to_anonymous_transactions_value"
    assert field in read() or field in BY_PROPERTY & attributes(PACKAGE / "info.py"), f"{name}: nobody looks at {field}"


@pytest.mark.parametrize("verb", list(VERBS))
def test_every_parameter_of_a_verb_is_used_in_its_function(verb: str) -> None:
    function = inspect.unwrap(whole_program().commands[verb].callback)
    tree = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    assert isinstance(tree, ast.FunctionDef)
    used = {node.id for part in tree.body for node in ast.walk(part) if isinstance(node, ast.Name)}
    wanted = {argument.arg for argument in (*tree.args.args, *tree.args.kwonlyargs)}
    if tree.args.kwarg is not None:
        assert tree.args.kwarg.arg in used, "rows of a table, looked up by name"
    assert wanted <= used, f"{verb} takes {wanted - used} and does not look at it"
