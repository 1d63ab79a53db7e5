"""Sets and removes options in an option file. The operator's comments and the order of the options are unchanged.

Invariants: a value is checked before it is written, and `config.read_file` returns exactly the written value. A change
is based on the file that it replaces, because each change holds a lock.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rplctl.config import INSTANCE_FILE, Value, check_value, read_file
from rplctl.durable import private_folder, replace_file
from rplctl.locks import PATIENCE_S, lock_wait_timeout, options_lock
from rplctl.plain_file import read_plain

if TYPE_CHECKING:
    from tomlkit import TOMLDocument
    from tomlkit.items import Table

_HEAD = "Options of this instance; see rplctl.toml(5). Changed by `rplctl init`."


@contextmanager
def options_held(datadir: Path) -> Iterator[None]:
    """Prevent other commands from changing the option file within the block.

    Raises LockBusy 1205 if another command does not release the lock in time, for example because it is frozen.
    """
    with closing(options_lock(datadir)) as lock:
        if not lock.acquire(patience_s=PATIENCE_S):
            raise lock_wait_timeout("another command changes rplctl.toml", "run the same command again")
        yield


def read_document(path: Path) -> TOMLDocument:
    """Return an option file as a document with its comments. Return a new document if the file does not exist.

    Raises ConfigError if the file cannot be read or parsed.
    """
    import tomlkit  # here, because a read-only command also loads this module, but never needs tomlkit

    if not path.exists():
        document = tomlkit.document()
        document.add(tomlkit.comment(_HEAD))
        return document
    read_file(path)
    return tomlkit.parse(read_plain(path))


def to_bytes(document: TOMLDocument) -> bytes:
    return document.as_string().encode()


def sections_of(document: TOMLDocument, channel: str) -> list[str]:
    """Return the names of the channel's sections, which may differ in letter case. A later section has priority."""
    return [name for name in document.get("channel", {}) if name.lower() == channel.lower()]


def section_of(document: TOMLDocument, channel: str) -> Table:
    """Return the channel's section of the document, and create the section if it is missing."""
    import tomlkit

    sections = document.setdefault("channel", tomlkit.table(is_super_table=True))
    found: Table = sections.setdefault([channel, *sections_of(document, channel)][-1], tomlkit.table())
    return found


def store_options(datadir: Path, channel: str, values: Mapping[str, Value], *, only_this_channel: bool = False) -> Path:
    """Set options in `<datadir>/rplctl.toml` durably, and return the path of the file.

    If `channel` is '', the options are set for the whole instance. With `only_this_channel`, '' means only the default
    channel, `[channel.""]`. Other options and all comments are unchanged. Raises ConfigError if the file or a value is
    not valid.
    """
    path = private_folder(datadir) / INSTANCE_FILE
    with options_held(datadir):
        document = read_document(path)
        section = section_of(document, channel) if channel or only_this_channel else document
        for name, value in values.items():
            section[name] = check_value(name, value, "command line")
        replace_file(path, to_bytes(document))
    return path


def forget_options(datadir: Path, channel: str, names: Collection[str]) -> None:
    """Remove these options from the channel's own sections of `<datadir>/rplctl.toml`.

    Raises ConfigError if the file is not valid.
    """
    path = datadir / INSTANCE_FILE
    with options_held(datadir):
        document = read_document(path)
        sections = document.get("channel", {})
        found = {name: sections[name].keys() & set(names) for name in sections_of(document, channel)}
        if not any(found.values()):
            return
        for name, given in found.items():
            for option in given:
                del sections[name][option]
            if not sections[name]:
                del sections[name]
        replace_file(path, to_bytes(document))
