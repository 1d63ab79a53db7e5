"""TAB in bash, zsh and fish: verbs, flags, channels, relay logs and every value that is one of a few; nothing heavy."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
import termios
from collections.abc import Callable
from pathlib import Path

import pytest

from rplctl.cli import run
from rplctl.cli.app import VERBS
from tests.cli.program import Program, whole_program
from tests.cli.terminal import until
from tests.cli.test_start_up import HEAVY
from tests.kit.programs import required_program

Tab = Callable[..., list[str]]
SHELLS = ["bash", "zsh", "fish"]
CHOICES = [
    (verb, flag, parameter.metavar)
    for verb in VERBS
    for parameter in whole_program().commands[verb].params
    for flag in parameter.opts[:1]
    if re.fullmatch(r"[\w-]+(\|[\w-]+)+", getattr(parameter, "metavar", None) or "")
]


def asked(shell: str, line: str) -> dict[str, str]:
    """The environment in which that shell's script calls the program, the cursor at the end of the line."""
    if shell == "bash":
        words = line.split(" ")
        return {"_RPLCTL_COMPLETE": "complete_bash", "COMP_WORDS": "\n".join(words), "COMP_CWORD": str(len(words) - 1)}
    more = {"_TYPER_COMPLETE_FISH_ACTION": "get-args"} if shell == "fish" else {}
    return {"_RPLCTL_COMPLETE": f"complete_{shell}", "_TYPER_COMPLETE_ARGS": line, **more}


def offered(shell: str, out: str) -> list[str]:
    if shell == "zsh":
        return re.findall(r'^(?:_arguments.*\(\()?"([^"]*)"', out, re.MULTILINE)
    return [line.partition("\t")[0] for line in out.splitlines() if line]


@pytest.fixture
def tab(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Tab:
    def press(line: str, shell: str = "bash") -> list[str]:
        with monkeypatch.context() as patched:
            for name, value in asked(shell, line).items():
                patched.setenv(name, value)
            capsys.readouterr()
            assert run([]) == 0
        shown = capsys.readouterr()
        assert shown.err == ""
        return offered(shell, shown.out)

    return press


@pytest.mark.parametrize("shell", SHELLS)
def test_each_shell_is_offered_channels_of_the_folder_on_the_line(
    program: Program, configured: Program, tab: Tab, shell: str
) -> None:
    configured("change-master", "--channel", "east", "--master-host", "db2")
    configured("change-master", "--channel", "Ost 1", "--master-host", "db3")
    (configured.datadir / "run" / "@zz").mkdir(parents=True)  # not ours
    (configured.datadir / "run" / "table").mkdir()  # of a channel whose records are rows
    where = f"--datadir {configured.datadir}"
    assert tab(f"rplctl {where} start --channel ", shell) == ["east", "ost 1", "table"]
    assert tab(f"rplctl start {where} --channel e", shell) == ["east"]
    assert tab("rplctl --datadir /no/such start --channel ", shell) == []


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("rplctl sta", ["start"]),
        ("rplctl switch-repo --to ", ["table", "file"]),
        ("rplctl show-status --format v", ["vertical"]),
        ("rplctl --color a", ["auto", "always"]),
        ("rplctl change-master --require-table-primary-key-check s", ["STREAM"]),
        ("rplctl change-source --source-use-gtid s", ["slave_pos"]),
        ("rplctl crash-test --mode xa,mark", ["xa,marker", "xa,marker+log"]),
        ("rplctl init --replica-skip-errors d", ["ddl_exist_errors"]),
        ("rplctl stop --rec", ["--receiver"]),
        ("rplctl load-schema ", []),  # a file: the shell's own work
        ("rplctl change-master --password-file ", []),
        ("rplctl change-master --master-ssl-ca /", []),
    ],
)
def test_each_shell_is_offered_values(tab: Tab, shell: str, line: str, expected: list[str]) -> None:
    assert tab(line, shell) == expected


@pytest.mark.parametrize(("verb", "flag", "metavar"), CHOICES)
def test_every_option_with_a_few_values_offers_them(tab: Tab, verb: str, flag: str, metavar: str) -> None:
    named = f"{flag} " if flag.startswith("-") else ""  # an argument has no name
    assert tab(f"rplctl {verb} {named}") == metavar.split("|")


@pytest.mark.parametrize("verb", list(VERBS))
def test_every_verb_offers_the_options_of_every_command(tab: Tab, verb: str) -> None:
    assert {"--datadir", "--json", "--quiet"} <= set(tab(f"rplctl {verb} --"))


def test_relay_logs_and_columns_are_offered(configured: Program, tab: Tab) -> None:
    (configured.datadir / "relay-bin.000007").touch()
    line = f"rplctl --datadir {configured.datadir} start --until-relay-log-file "
    assert tab(line) == ["relay-bin.000007"]
    assert "Exec_Master_Log_Pos" in tab("rplctl show-status --field exec_")


@pytest.mark.parametrize("line", ["rplctl start --channel ", "rplctl show-status --format ", "rplctl st"])
def test_nothing_heavy_is_loaded_for_a_tab(configured: Program, line: str) -> None:
    code = (
        "import sys; from rplctl.cli import run; run([]);"
        f"print('LOADED', *[m for m in {HEAVY!r} if m in sys.modules], file=sys.stderr)"
    )
    environment = {**os.environ, "RPLCTL_DATADIR": str(configured.datadir), **asked("bash", line)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert done.stderr == "LOADED\n" and done.returncode == 0


@pytest.mark.long("bash stays; the others get the same answer.", keeps=r"^bash$")
@pytest.mark.slow
@pytest.mark.parametrize("shell", SHELLS)
def test_tab_in_a_real_shell_offers_the_channels(configured: Program, tmp_path: Path, shell: str) -> None:
    """`rplctl --install-completion` in that shell, and then TAB in a new one on a terminal, as an operator has it."""
    program = required_program(shell)
    for name in ("east", "west"):
        configured("change-master", "--channel", name, "--master-host", "db2")
    folder, home = tmp_path / "bin", tmp_path / "home"
    folder.mkdir()
    home.mkdir()
    (folder / "rplctl").write_text(f'#!/bin/sh\nexec {sys.executable} -m rplctl "$@"\n')
    (folder / "rplctl").chmod(0o755)
    environment = {
        **{name: value for name, value in os.environ.items() if name != "XDG_CONFIG_HOME"},
        "HOME": str(home),
        "PATH": f"{folder}:{os.environ['PATH']}",
        "PYTHONPATH": str(Path(__file__).parents[2]),
        "RPLCTL_DATADIR": str(configured.datadir),
        "TERM": "xterm",
    }
    install = f"rplctl --install-completion; cd {home}"  # two commands: a shell becomes its only one, and is not found
    subprocess.run([program, "-c", install], env=environment, capture_output=True, check=True)
    ours, its = pty.openpty()
    termios.tcsetwinsize(its, (40, 100))
    command = ["setsid", "--ctty", program, "-i"]  # fish needs the terminal to be its own
    with subprocess.Popen(command, stdin=its, stdout=its, stderr=its, env=environment) as process:
        try:
            until(ours, "\x1b[?2004h")  # the shell is ready for a line
            os.write(ours, b"rplctl stop --channel \t\t")
            assert "east" in until(ours, "west")
        finally:
            process.kill()
    os.close(ours)
    os.close(its)
