"""The list of verbs: every one builds, helps, has its aliases; only the one asked for is loaded."""

from __future__ import annotations

import inspect
import subprocess
import sys

import pytest

from rplctl.cli import app
from rplctl.cli.app import GROUPS, VERBS, command_for
from rplctl.cli.plain_values import PlainValue, use_plain_values
from tests.cli.program import Program

NAMES = list(VERBS)
ALIASES = [(name, alias) for name, aliases in VERBS.items() for alias in aliases]


def parameters(verb: str) -> dict[str, list[str]]:
    return {p.name: p.opts for p in command_for([verb]).commands[verb].params}


def test_no_name_is_given_twice() -> None:
    every = [*NAMES, *(alias for _, alias in ALIASES)]
    assert len(every) == len(set(every))


@pytest.mark.parametrize("verb", NAMES)
def test_help_of_every_verb_is_a_usage_line_a_sentence_and_all_its_options(program: Program, verb: str) -> None:
    done = program(verb, "--help")
    assert done.code == 0 and done.err == ""
    assert f"Usage: rplctl {verb}" in done.out
    for options in parameters(verb).values():
        shown = [o for o in options if o.startswith("--") and o not in ("--help",)]
        hidden = verb in ("change-master", "init") and any("password" in o for o in shown)
        assert not shown or hidden or any(o in done.out for o in shown), shown


def test_the_list_of_commands_shows_whole_sentences(program: Program) -> None:
    lines = program("--help").out.splitlines()
    shown = {line.split()[0]: line for line in lines if line.startswith("  ") and line.split()[0] in NAMES}
    assert list(shown) == NAMES, "aliases are not listed"
    assert [line for line in shown.values() if line.endswith("...") or len(line) > 80] == []


def test_help_lists_the_verbs_of_each_task_one_line_each(program: Program) -> None:
    text = program("--help").out
    for group, names in GROUPS.items():
        block = text.partition(f"\n{group}:\n")[2].partition("\n\n")[0].splitlines()
        assert [line.split()[0] for line in block] == list(names)


@pytest.mark.parametrize(("verb", "alias"), ALIASES)
def test_an_alias_has_the_same_options(verb: str, alias: str) -> None:
    command = command_for([alias]).commands
    assert {p.name: p.opts for p in command[alias].params} == parameters(verb)


def test_a_line_that_names_its_verb_builds_that_verb_only() -> None:
    assert set(command_for(["--datadir", "show-status", "stop"]).commands) == {"stop", "stop-slave", "stop-replica"}
    assert set(command_for([]).commands) >= set(NAMES)
    assert set(command_for(["--help", "stop"]).commands) >= set(NAMES)  # help of the program, not of the verb
    assert set(command_for(["sotp"]).commands) >= set(NAMES)  # a typo is compared with all of them


@pytest.mark.parametrize("word", ["sotp", "show-statsu", "STOP"])
def test_a_mistyped_verb_is_answered_with_the_nearest_ones(program: Program, word: str) -> None:
    done = program(word)
    assert done.code == 2 and f"No such command '{word}'" in done.err
    if word != "STOP":
        assert "Did you mean" in done.err


def test_every_function_of_the_list_says_what_it_does() -> None:
    for verb in VERBS:
        assert inspect.getdoc(app.function_of(verb)), verb


def test_version_is_the_packages(program: Program) -> None:
    from rplctl import __version__

    assert program("--version").out == f"rplctl {__version__}\n"


# plain values: Typer's own conversion is not loaded, its errors are the same


@pytest.mark.parametrize(
    ("line", "code", "words"),
    [
        ("show-relaylog-events --limit 2x", 2, "'2x' is not a valid integer"),
        ("skip 1.5 --yes", 2, "'1.5' is not a valid integer"),
        ("start --until-master-log-pos=", 2, "'' is not a valid integer"),
    ],
)
def test_a_number_that_is_none_is_refused_with_the_option_it_was_for(
    program: Program, line: str, code: int, words: str
) -> None:
    done = program(*line.split())
    assert done.code == code and words in done.err and "Invalid value for" in done.err
    assert line.split()[1].partition("=")[0].removeprefix("1.5") in done.err


def test_every_parameter_of_every_verb_is_converted_without_typers_own_means() -> None:
    command = command_for([])
    for verb in (command, *command.commands.values()):
        use_plain_values(verb)
        context = verb.make_context("x", [], resilient_parsing=True)
        plain = [hasattr(p, "_runtime_param") for p in verb.get_params(context)]
        assert all(plain), "this Typer has other insides: pydantic is loaded again"
        kinds = {
            type(p._runtime_param)
            for p in verb.get_params(context)
            if getattr(getattr(p, "type_descriptor", None), "annotation", None) in (bool, int, str)
        }
        assert kinds <= {PlainValue}


def test_help_of_a_verb_loads_no_other_verbs_module() -> None:
    code = (
        "import sys; from rplctl.cli import run; run(['stop', '--help']);"
        "print([m for m in sys.modules if m.startswith('rplctl.cli.')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = done.stdout.splitlines()[-1]
    assert "'rplctl.cli.stop'" in loaded
    for other in VERBS:
        assert other == "stop" or f"'rplctl.cli.{other.replace('-', '_')}'" not in loaded
