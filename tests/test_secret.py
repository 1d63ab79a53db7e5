"""Passwords: found in the order of design D14, encrypted at rest, never in a text."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from rplctl.errors import ConfigError, RplError, UsageError
from rplctl.secret import KEY_FILE, PasswordSources, check_reference, find_password, protect, read_option_file, reveal

CANARY = "C4nary-pässwörd"


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CREDENTIALS_DIRECTORY", "RPLCTL_PASSWORD"):
        monkeypatch.delenv(name, raising=False)


def secret_file(path: Path, text: str, mode: int = 0o600) -> Path:
    path.write_text(text)
    path.chmod(mode)
    return path


def test_what_is_stored_is_encrypted_and_comes_back(tmp_path: Path) -> None:
    stored = protect(CANARY, tmp_path)
    assert CANARY not in stored and stored.startswith("fernet:")
    assert reveal(stored, tmp_path) == CANARY
    key = tmp_path / KEY_FILE
    assert key.stat().st_mode & 0o777 == 0o600
    assert protect(CANARY, tmp_path) != stored  # equal passwords do not look equal
    assert sorted(p.name for p in tmp_path.iterdir()) == [KEY_FILE]


def test_no_password_stays_no_password(tmp_path: Path) -> None:
    assert protect("", tmp_path) == "" == reveal("", tmp_path)


def test_a_hand_edited_clear_text_password_works(tmp_path: Path) -> None:
    assert reveal("secret", tmp_path) == "secret"
    assert reveal("with:colon", tmp_path) == "with:colon"


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o666])
def test_a_key_that_others_can_read_is_refused(tmp_path: Path, mode: int) -> None:
    stored = protect(CANARY, tmp_path)
    (tmp_path / KEY_FILE).chmod(mode)
    with pytest.raises(ConfigError, match="others can read"):
        reveal(stored, tmp_path)


def test_a_lost_or_foreign_key_says_what_to_do(tmp_path: Path) -> None:
    stored = protect(CANARY, tmp_path)
    (tmp_path / KEY_FILE).unlink()
    with pytest.raises(ConfigError, match="missing") as missing:
        reveal(stored, tmp_path)
    protect("another", tmp_path)
    with pytest.raises(RplError, match="does not fit") as foreign:
        reveal(stored, tmp_path)
    for caught in (missing, foreign):
        assert "--ask-password" in caught.value.hint
        assert CANARY not in repr(caught.value) + str(caught.value.__cause__)


def test_of_two_makers_of_the_key_one_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = protect(CANARY, tmp_path)
    monkeypatch.setattr(Path, "exists", lambda self: False)  # the other one looked before the key was there
    second = protect(CANARY, tmp_path)
    assert reveal(first, tmp_path) == reveal(second, tmp_path) == CANARY


def test_references_are_read_when_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REPL_PW", CANARY)
    assert reveal("env:REPL_PW", tmp_path) == CANARY
    path = secret_file(tmp_path / "pw", f"{CANARY}\nsecond line\n")
    assert reveal(f"file:{path}", tmp_path) == CANARY
    monkeypatch.delenv("REPL_PW")
    with pytest.raises(ConfigError, match="REPL_PW"):
        reveal("env:REPL_PW", tmp_path)
    path.chmod(0o644)
    with pytest.raises(ConfigError, match="others can read"):
        reveal(f"file:{path}", tmp_path)


@pytest.mark.parametrize(
    "text", ["", "env:", "env:A B", "env:1X", "file:relative", "file:", "vault:x", "file:/a\nb", CANARY]
)
def test_a_malformed_reference_is_refused_without_showing_it(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        check_reference(text)
    assert CANARY not in caught.value.message


def test_passwords_are_found_in_the_documented_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = secret_file(tmp_path / "given", "from-file")
    mycnf = secret_file(tmp_path / "my.cnf", "[client]\nuser=repl\npassword='from-option-file'\n")
    credentials = tmp_path / "credentials"
    credentials.mkdir()
    secret_file(credentials / "rplctl.password", "from-credentials")
    files = (str(mycnf),)
    found = []
    monkeypatch.setenv("RPLCTL_PASSWORD", "from-environment")
    found.append(find_password(PasswordSources(), "repl", option_files=()))
    found.append(find_password(PasswordSources(), "repl", option_files=files))
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(credentials))
    found.append(find_password(PasswordSources(), "repl", option_files=files))
    found.append(find_password(PasswordSources(ask=lambda: "from-terminal"), "repl", option_files=files))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"from-stdin\n")))
    found.append(find_password(PasswordSources(password_stdin=True), "repl", option_files=files))
    found.append(find_password(PasswordSources(password_file=given), "repl", option_files=files))
    assert found == [
        f"from-{place}" for place in ("environment", "option-file", "credentials", "terminal", "stdin", "file")
    ]


def test_nobody_has_a_password() -> None:
    assert find_password(PasswordSources(), "repl", option_files=()) is None


def test_an_option_file_of_another_account_does_not_count(tmp_path: Path) -> None:
    path = secret_file(tmp_path / "my.cnf", "[client]\nuser=alice\npassword=x\n")
    assert find_password(PasswordSources(), "repl", option_files=(str(path),)) is None


def test_option_groups_are_merged_and_the_later_file_wins(tmp_path: Path) -> None:
    first = secret_file(tmp_path / "1", "[client]\npassword=one\n[rplctl]\nuser=repl\n")
    second = secret_file(tmp_path / "2", '[mysqld]\nskip-networking\n[rplctl]\npassword="p%(a)s#x"\n')
    assert find_password(PasswordSources(), "repl", option_files=(str(first), str(second))) == "p%(a)s#x"
    assert read_option_file(first) == {"password": "one", "user": "repl"}


def test_an_open_option_file_with_a_password_is_refused(tmp_path: Path) -> None:
    path = secret_file(tmp_path / "my.cnf", f"[client]\npassword={CANARY}\n", 0o644)
    with pytest.raises(ConfigError) as caught:
        find_password(PasswordSources(), "repl", option_files=(str(path),))
    assert CANARY not in str(caught.value)
    secret_file(path, "[client]\nport=3306\n", 0o644)
    assert find_password(PasswordSources(), "repl", option_files=(str(path),)) is None


def test_a_broken_option_file_is_named_without_its_lines(tmp_path: Path) -> None:
    path = secret_file(tmp_path / "my.cnf", f"password={CANARY}\n")
    with pytest.raises(ConfigError) as caught:
        read_option_file(path)
    assert str(path) in caught.value.message and CANARY not in repr(caught.value) + str(caught.value.__cause__)


@pytest.mark.parametrize(("mode", "good"), [(0o600, True), (0o400, True), (0o640, False), (0o644, False)])
def test_a_password_file_must_be_private(tmp_path: Path, mode: int, good: bool) -> None:
    path = secret_file(tmp_path / "pw", "x\r\n", mode)
    if good:
        assert find_password(PasswordSources(password_file=path), "u", option_files=()) == "x"
    else:
        with pytest.raises(ConfigError, match="chmod|others"):
            find_password(PasswordSources(password_file=path), "u", option_files=())


@pytest.mark.parametrize("data", [b"\xff\xfe", b"x" * 5000])
def test_a_password_file_with_rubbish_is_refused(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "pw"
    path.write_bytes(data)
    path.chmod(0o600)
    with pytest.raises(ConfigError):
        find_password(PasswordSources(password_file=path), "u", option_files=())


def test_a_missing_password_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="nowhere"):
        find_password(PasswordSources(password_file=tmp_path / "nowhere"), "u", option_files=())
