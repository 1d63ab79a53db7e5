"""Sources and targets that accept a connection and say nothing, as a server that SIGSTOP froze does."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.program import Program
from tests.kit.replica import wait_until


@pytest.fixture
def silent(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """The port of a server that never answers; commands wait for half a second."""
    monkeypatch.setattr("rplctl.deadline.DEADLINE_S", 0.5)
    monkeypatch.setattr("rplctl.deadline.LEAST_S", 0.3)
    with socket.create_server(("127.0.0.1", 0), backlog=100) as server:
        yield int(server.getsockname()[1])


def configured(datadir: Path, capsys: pytest.CaptureFixture[str], port: int) -> Program:
    program = Program(datadir, capsys)
    address = ("--master-host", "127.0.0.1", "--master-port", str(port))
    assert program("change-master", *address, "--password-reference", "env:HOME").code == 0
    return program


def test_check_says_within_its_deadline_that_the_source_hangs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], silent: int
) -> None:
    program = configured(tmp_path / "instance", capsys, silent)
    began = time.monotonic()
    done = program("check", "--online", "--json")
    assert time.monotonic() - began < 5
    (verdict,) = json.loads(done.out)
    (away,) = (finding for finding in verdict["findings"] if finding["code"] == "source_away")
    assert done.code == 2 and verdict["level"] == "CRITICAL"
    assert away["text"] == f"the source 127.0.0.1:{silent} did not answer within 0.5 s"


@pytest.mark.long("test_what_starts_or_changes_a_channel_names_the_target_that_hangs has the same deadline.")
@pytest.mark.parametrize("scheme", ["mysql+pymysql", "postgresql+psycopg"])
def test_what_only_looks_ends_when_the_target_hangs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], silent: int, scheme: str
) -> None:
    program = configured(tmp_path / "instance", capsys, silent)
    with (tmp_path / "instance" / "rplctl.toml").open("a") as file:
        file.write(f'target = "{scheme}://u@127.0.0.1:{silent}/d"\n')
        file.write('master_info_repository = "TABLE"\nrelay_log_info_repository = "TABLE"\n')
    for verb, code in (
        ("check", 3), ("check --online", 3), ("show-status", 7), ("show-channels", 7), ("show-clone", 7),
        ("metrics", 7), ("doctor", 2),
    ):  # fmt: skip
        began = time.monotonic()
        done = program(*verb.split())
        assert time.monotonic() - began < 10, verb
        assert "did not answer within" in done.out + done.err, (verb, done)
        assert done.code == code, (verb, done)


def test_a_query_that_nobody_waits_for_any_more_prints_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rplctl.deadline.DEADLINE_S", 0.5)
    monkeypatch.setattr("rplctl.deadline.LEAST_S", 0.3)
    with socket.create_server(("127.0.0.1", 0), backlog=100) as server:
        port = int(server.getsockname()[1])
        program = configured(tmp_path / "instance", capsys, port)
        with (tmp_path / "instance" / "rplctl.toml").open("a") as file:
            file.write(f'target = "mysql+pymysql://u@127.0.0.1:{port}/d"\nrelay_log_info_repository = "TABLE"\n')
        for verb in ("metrics", "check"):
            done = program(verb)
            assert "did not answer within" in done.out + done.err, (verb, done)
    wait_until(lambda: all("question" not in thread.name for thread in threading.enumerate()))
    assert capsys.readouterr() == ("", "")


@pytest.mark.long("One verb stays; each has the same deadline.", keeps=r"^verify")
@pytest.mark.parametrize("verb", ["verify", "clone --databases shop", "clone --dry-run", "repair"])
def test_what_compares_or_copies_names_the_source_that_hangs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], silent: int, verb: str
) -> None:
    program = configured(tmp_path / "instance", capsys, silent)
    began = time.monotonic()
    done = program(*verb.split())
    assert time.monotonic() - began < 5
    assert f"the source 127.0.0.1:{silent} did not answer within 0.5 s" in done.err, done
    assert done.code == 6, done


@pytest.mark.long("One verb stays; each has the same deadline.", keeps=r"^verify")
@pytest.mark.parametrize("verb", ["verify", "clone --databases shop", "repair"])
def test_what_compares_or_copies_names_the_target_that_hangs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], silent: int, verb: str
) -> None:
    program = configured(tmp_path / "instance", capsys, silent)
    with (tmp_path / "instance" / "rplctl.toml").open("a") as file:
        file.write(f'target = "postgresql+psycopg://u@127.0.0.1:{silent}/d"\n')
    began = time.monotonic()
    done = program(*verb.split())
    assert time.monotonic() - began < 5
    assert f"the target postgresql+psycopg://u@127.0.0.1:{silent}/d did not answer within 0.5 s" in done.err, done
    assert done.code == 7, done


@pytest.mark.long("Tables stay, which lie in the target.", keeps=r"^TABLE$")
@pytest.mark.parametrize("repositories", ["FILE", "TABLE"])
def test_what_starts_or_changes_a_channel_names_the_target_that_hangs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], silent: int, repositories: str
) -> None:
    program = configured(tmp_path / "instance", capsys, silent)
    with (tmp_path / "instance" / "rplctl.toml").open("a") as file:
        file.write(f'target = "mysql://u@127.0.0.1:{silent}/"\n')
        file.write(f'master_info_repository = "{repositories}"\nrelay_log_info_repository = "{repositories}"\n')
    for verb in ("start", "start --until-synced", "switch-repo --to table", "reset --yes", "skip 1", "recover"):
        if repositories == "FILE" and verb in ("skip 1", "recover"):  # these ask no target then
            continue
        began = time.monotonic()
        done = program(*verb.split())
        assert time.monotonic() - began < 5, verb
        assert f"the target mysql://u@127.0.0.1:{silent}/ did not answer within 0.5 s" in done.err, (verb, done)
        assert done.code == 7, (verb, done)


def test_a_start_that_waits_for_the_end_names_the_source_that_hangs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], silent: int
) -> None:
    program = configured(tmp_path / "instance", capsys, silent)
    began = time.monotonic()
    done = program("start", "--until-synced")
    assert time.monotonic() - began < 20
    assert f"the source 127.0.0.1:{silent} did not answer within 0.5 s" in done.err, done
    assert done.code == 6, done
