"""An instance folder of its own for every test, out of reach of the machine's option files."""

from __future__ import annotations

from pathlib import Path

import pytest

from rplctl import config, secret
from tests.cli.program import Program


@pytest.fixture(autouse=True)
def no_other_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(config, "SYSTEM_FILE", tmp_path / "etc.toml")
    monkeypatch.setattr(secret, "OPTION_FILES", ())
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    for name in ("RPLCTL_PASSWORD", "RPLCTL_CONFIG", "RPLCTL_DATADIR", "CREDENTIALS_DIRECTORY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def program(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Program:
    return Program(tmp_path / "instance", capsys)


@pytest.fixture
def configured(program: Program, tmp_path: Path) -> Program:
    """The default channel is configured: a server that nobody will ask."""
    password = tmp_path / "pw"
    password.write_text("C4nary\n")
    password.chmod(0o600)
    done = program(
        "change-master", "--master-host", "db1", "--master-user", "repl", "--password-file", str(password),
        "--master-log-file", "binlog.000003", "--master-log-pos", "1170",
    )  # fmt: skip
    assert done.code == 0, done.err
    return program
