"""systemd's units of an instance: what systemd itself says of them, and that an operator's changes are kept."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from rplctl.command.instance.units import user_folder, write_units
from rplctl.config import Config
from rplctl.errors import UsageError
from tests.cli.program import Program


@pytest.fixture
def config(tmp_path: Path) -> Config:
    for folder in ("a b%", "units", "systemd/user"):
        (tmp_path / folder).mkdir(parents=True)
    return Config(tmp_path / "a b%", log_bin="/var/log/rpl/binlog")


HOSTILE = ("a b%", "o'brien", "$(touch m)", "${HOME} %h", "; touch m #", "-x=1,ü")


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd is not installed")
@pytest.mark.parametrize("whose", ["--system", "--user"])
@pytest.mark.parametrize("name", HOSTILE)
def test_systemd_finds_nothing_wrong_with_them(
    name: str, tmp_path: Path, whose: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in (name, "units", "systemd/user"):
        (tmp_path / folder).mkdir(parents=True)
    config = Config(tmp_path / name, log_bin=f"{tmp_path / name}/log/binlog")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    units = write_units(config, user_folder() if whose == "--user" else tmp_path / "units", force=False)
    paths = [str(units.folder / name) for name in units.written]
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", whose, *paths], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def words_of(line: str) -> list[str]:
    """A command of a unit as systemd takes it: %% and $$ are one, and nothing else of our lines is replaced."""
    words = [word.replace("%%", "%").replace("$$", "\0") for word in shlex.split(line)]
    assert not any("$" in word.replace("${BACKUPS}", "") for word in words)
    return [word.replace("\0", "$") for word in words]


@pytest.mark.parametrize("name", HOSTILE)
def test_a_name_is_one_argument_and_no_code(name: str, tmp_path: Path) -> None:
    datadir, program = tmp_path / name, tmp_path / "program"
    for folder in (datadir, tmp_path / "units"):
        folder.mkdir()
    program.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    program.chmod(0o700)
    units = write_units(Config(datadir), tmp_path / "units", force=False)
    for unit in units.written:
        for line in (units.folder / unit).read_text().splitlines():
            key, _, command = line.partition("=")
            if key != "ExecStart":
                continue
            words = words_of(command)
            assert words.count(str(datadir)) == 1, line
            if words[0] == "/bin/sh":
                words[words.index("-q") - 1] = str(program)
                environment = {"BACKUPS": f"{datadir}-backups", "PATH": os.environ["PATH"]}
                done = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path, env=environment, check=True)
                *said, last = done.stdout.splitlines()
                assert said == ["-q", "--datadir", str(datadir), "backup"] and last.startswith(f"{datadir}-backups/")
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize("name", ["a\nExecStartPre=/bin/touch m", 'a"b', "a\\x22b", "a\rb", os.fsdecode(b"\xff")])
def test_a_name_that_no_unit_can_hold_is_refused(name: str, tmp_path: Path) -> None:
    for folder in (name, "units"):
        (tmp_path / folder).mkdir(parents=True)
    with pytest.raises(UsageError, match="cannot be written in a unit of systemd"):
        write_units(Config(tmp_path / name), tmp_path / "units", force=False)
    assert not any((tmp_path / "units").iterdir())


def test_the_services_of_the_system_are_boxed_in_and_write_where_they_must(config: Config, tmp_path: Path) -> None:
    units = write_units(config, tmp_path / "units", force=False)
    texts = {name: (units.folder / name).read_text() for name in units.written}
    assert len(texts) == 12 and (units.folder / "rplctl.service").stat().st_mode & 0o777 == 0o644
    for name, text in texts.items():
        if name.endswith(".service"):
            assert "ProtectSystem=strict" in text and "User=" in text and "ReadWritePaths=/var/log/rpl\n" in text
            assert f'ReadWritePaths="{tmp_path}/a b%%"\n' in text
            assert "MemoryDenyWriteExecute" not in text, "Java and Numba compile"
    assert '--channel "%I"' in texts["rplctl@.service"] and "--channel ''" in texts["rplctl.service"]
    assert units.next_commands[0] == "systemctl daemon-reload"


def test_those_of_a_user_ask_for_nothing_that_only_root_may(
    config: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    units = write_units(config, user_folder(), force=False)
    text = (units.folder / "rplctl.service").read_text()
    assert "Protect" not in text and "User=" not in text and "WantedBy=default.target" in text
    assert units.next_commands[0] == "systemctl --user daemon-reload"


def test_init_writes_them_and_tells_what_to_type_next(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = Program(tmp_path / "data", capsys)
    done = program("init", "--systemd-dir", str(tmp_path / "units"))
    assert done.code == 0 and f"\n{tmp_path / 'units'}: rplctl.service, " in done.out
    assert "\nnext:\n  systemctl daemon-reload\n" in done.out
    (row,) = json.loads(program("init", "--systemd-dir", str(tmp_path / "units"), "--json").out)
    assert row["Units"] == [] and row["Next_Commands"][0] == "systemctl daemon-reload"
    (tmp_path / "units/rplctl.service").write_text("mine\n")
    assert program("init", "--systemd-dir", str(tmp_path / "units")).code == 2
    assert program("init", "--systemd-dir", str(tmp_path / "units"), "--force", "-q").out == ""


def test_a_changed_unit_is_written_over_only_when_asked(config: Config, tmp_path: Path) -> None:
    units = write_units(config, tmp_path, force=False)
    assert write_units(config, tmp_path, force=False).written == ()
    (tmp_path / "rplctl.service").write_text("mine\n")
    (tmp_path / "rplctl-sync.timer").unlink()
    with pytest.raises(UsageError, match=r"have other contents: rplctl\.service$"):
        write_units(config, tmp_path, force=False)
    assert not (tmp_path / "rplctl-sync.timer").exists(), "nothing is written then"
    assert write_units(config, tmp_path, force=True).written == ("rplctl.service", "rplctl-sync.timer")
    assert (tmp_path / "rplctl.service").read_text() != "mine\n" and len(units.written) == 12
