"""Finds, stores and reads the passwords of sources and targets (design D14; WL#2775's open issue 1).

rplctl never writes a password as clear text into a repository or an option file. It writes one of these forms:

    fernet:TOKEN     encrypted and authenticated with the instance's key (`<datadir>/rplctl.key`, 0600)
    env:NAME         the value of the environment variable NAME, which rplctl reads when it needs the password
    file:PATH        the first line of the file PATH, which only its owner may read

Any other stored value is a password in clear text. So rplctl can read a `master.info` that somebody has edited, or that
a MySQL server has written (WL#5125). Invariant: no function of this module puts a secret into an exception, a log or a
repr.
"""

from __future__ import annotations

import configparser
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rplctl.durable import is_readable_by_others, private_folder, replace_file
from rplctl.errors import ConfigError, RplError, UsageError
from rplctl.plain_file import read_plain

KEY_FILE = "rplctl.key"
ENCRYPTED = "fernet:"
PASSWORD_VARIABLE = "RPLCTL_PASSWORD"
CREDENTIALS_VARIABLE = "CREDENTIALS_DIRECTORY"  # systemd LoadCredential=
CREDENTIAL_NAME = "rplctl.password"
OPTION_FILES = ("/etc/my.cnf", "/etc/mysql/my.cnf", "~/.my.cnf")
OPTION_GROUPS = ("client", "rplctl")  # an option in the later group overrides the one in the earlier group
MAX_SECRET_BYTES = 4096


@dataclass(frozen=True, slots=True)
class PasswordSources:
    """The options of one command line that provide a password. `find_password` also looks in other places."""

    password_file: Path | None = None
    password_stdin: bool = False
    ask: Callable[[], str] | None = None  # for --ask-password: it asks on the terminal
    reference: str = ""  # env:NAME or file:PATH, stored unchanged

    @property
    def is_given(self) -> bool:
        return bool(self.password_file or self.password_stdin or self.ask or self.reference)


def find_password(sources: PasswordSources, user: str, *, option_files: tuple[str, ...] = OPTION_FILES) -> str | None:
    """Return the clear-text password from the first place that has one. Return None if no place has one.

    The places are those of design D14, in this order: options, terminal, systemd, option files, environment. A password
    in an option file is used only if the file names the user `user` or no user, because `[client]` often has another
    account. Raises ConfigError if a file cannot be read, or if other users can read it. Raises UsageError if the
    operator enters no password.
    """
    if sources.password_file:
        return read_secret_file(sources.password_file)
    if sources.password_stdin:
        return _first_line(sys.stdin.buffer.read(MAX_SECRET_BYTES + 1), "standard input")
    if sources.ask:
        return sources.ask()
    folder = os.environ.get(CREDENTIALS_VARIABLE)
    if folder and (Path(folder) / CREDENTIAL_NAME).exists():
        return read_secret_file(Path(folder) / CREDENTIAL_NAME)
    found = _from_option_files(option_files)
    if "password" in found and found.get("user", "") in ("", user):
        return found["password"]
    return os.environ.get(PASSWORD_VARIABLE)


def _from_option_files(option_files: tuple[str, ...]) -> dict[str, str]:
    """Return the options in `[client]` and `[rplctl]` of all existing option files. The last file wins.

    Raises ConfigError if a file is not an option file, or if it has a password and other users can read it.
    """
    merged: dict[str, str] = {}
    for name in option_files:
        path = Path(name).expanduser()
        if path.is_file() and os.access(path, os.R_OK):
            found = read_option_file(path)
            if "password" in found and is_readable_by_others(path):
                raise ConfigError(
                    f"{path} holds a password and others can read it",
                    hint=f"to let only its owner read the file, run: chmod 600 {path}",
                )
            merged |= found
    return merged


def read_option_file(path: Path) -> dict[str, str]:
    """Return the options in `[client]` and `[rplctl]` of a MySQL option file, without the quotes around values.

    Raises ConfigError if the file is not an option file.
    """
    parser = configparser.ConfigParser(
        allow_no_value=True, interpolation=None, strict=False, delimiters=("=",), comment_prefixes=("#", ";", "!")
    )
    try:
        parser.read_string(path.read_text(encoding="utf-8"))
    except (configparser.Error, UnicodeDecodeError) as error:
        # the parser's own text would quote the line, which may contain the password
        raise ConfigError(f"{path}: not an option file ({type(error).__name__})") from None
    merged: dict[str, str] = {}
    for group in OPTION_GROUPS:
        if parser.has_section(group):
            merged |= {key: value.strip("'\"") for key, value in parser.items(group) if value}
    return merged


def read_secret_file(path: Path) -> str:
    """Return the first line of a file that only its owner can read.

    Raises ConfigError if the file cannot be read, or if other users can read it.
    """
    try:
        if path.is_file() and is_readable_by_others(path):
            raise ConfigError(
                f"{path} holds a secret and others can read it",
                hint=f"to let only its owner read the file, run: chmod 600 {path}",
            )
        with path.open("rb") as file:  # also a pipe: --password-file <(pass show db)
            return _first_line(file.read(MAX_SECRET_BYTES + 1), str(path))
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}", hint="name a file that only you can read") from error


def _first_line(data: bytes, where: str) -> str:
    if len(data) > MAX_SECRET_BYTES:
        raise ConfigError(f"{where}: the password has more than {MAX_SECRET_BYTES} bytes")
    try:
        return data.partition(b"\n")[0].rstrip(b"\r").decode()
    except UnicodeDecodeError:
        raise ConfigError(f"{where}: the password is not UTF-8") from None


def check_reference(reference: str) -> str:
    """Return the reference to a password unchanged if it is `env:NAME` or `file:PATH` with an absolute path.

    Raises UsageError for any other text.
    """
    kind, _, name = reference.partition(":")
    is_good = name.isidentifier() if kind == "env" else name.startswith("/") if kind == "file" else False
    if not is_good or not name.isprintable():
        raise UsageError("a password reference must be env:NAME or file:/ABSOLUTE/PATH")
    return reference


def protect(clear: str, datadir: Path, *, makes_key: bool = True) -> str:
    """Return the password, encrypted with the instance's key, to store it. '' is unchanged.

    If the instance has no key, `makes_key` decides: True creates a key, False returns the password unchanged. False is
    for callers that store nothing. Raises ConfigError if others can read the key.
    """
    if not clear:
        return ""
    if not makes_key and not (datadir / KEY_FILE).exists():
        return clear
    from cryptography.fernet import Fernet

    return ENCRYPTED + Fernet(_key(datadir, create=True)).encrypt(clear.encode()).decode()


def reveal(stored: str, datadir: Path) -> str:
    """Return the clear-text password for a stored value in one of the forms that the module's docstring lists.

    Raises ConfigError if the variable, the file or the key cannot be read. Raises RplError if the key does not decrypt
    the value. The text of an error never contains the password.
    """
    kind, _, rest = stored.partition(":")
    if kind == "env":
        if rest not in os.environ:
            raise ConfigError(f"environment variable {rest}, which has the password, is not set")
        return os.environ[rest]
    if kind == "file":
        return read_secret_file(Path(rest))
    if not stored.startswith(ENCRYPTED):
        return stored
    from cryptography.fernet import Fernet, InvalidToken

    try:
        return Fernet(_key(datadir, create=False)).decrypt(rest.encode()).decode()
    except (InvalidToken, ValueError):
        raise RplError(
            f"the stored password does not fit the key {datadir / KEY_FILE}",
            hint="to set it again, run: rplctl change-master --ask-password",
        ) from None


def _key(datadir: Path, *, create: bool) -> bytes:
    path = datadir / KEY_FILE
    if create and not path.exists():
        _create_key(path)
    try:
        if is_readable_by_others(path):
            raise ConfigError(
                f"{path} is the key of stored passwords and others can read it",
                hint=f"to let only its owner read the file, run: chmod 600 {path}",
            )
        return read_plain(path, MAX_SECRET_BYTES).strip()
    except FileNotFoundError:
        raise ConfigError(
            f"{path} is missing: stored passwords cannot be read",
            hint="restore the key, or set the password again: rplctl change-master --ask-password",
        ) from None


def _create_key(path: Path) -> None:
    """Create the file with the key. If another process creates it at the same time, keep the first key.

    The function writes a complete draft, and links the draft under the final name. The link fails if the name exists.
    """
    from cryptography.fernet import Fernet

    private_folder(path.parent)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    replace_file(draft, Fernet.generate_key() + b"\n")
    try:
        os.link(draft, path)
    except FileExistsError:
        pass
    finally:
        draft.unlink()
