"""Write the systemd units of an instance: a service for each channel, and timers for periodic tasks (`init --systemd`).

Invariants: a file that somebody has changed is overwritten only on request, and an up-to-date file is not written
again. `_word` and `_argument` make each path one word of a unit, and no shell interprets it. man rplctl describes the
units. Their settings have these reasons:

Type=notify       the main process is `start --foreground`; it feeds the watchdog while its threads live (service.py)
WatchdogSignal    KILL: a frozen process handles no other signal, and a kill loses nothing (D1)
KillMode=mixed    TERM to the main process, which stops the threads like `stop`; KILL to all only after the timeout
OOMPolicy         continue: if a task runs out of memory, the applier reports this with a hint
StartLimit        a permanent error is retried five times; waiting for an unreachable target does not count as an error
no MemoryDenyWriteExecute: the JVM and Numba compile at run time
no PrivateUsers, no empty CapabilityBoundingSet: a folder of binary logs may belong to another user
"""

from __future__ import annotations

import os
import pwd
import string
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rplctl.command.log_status import sqlite_file
from rplctl.config import Config
from rplctl.durable import replace_file
from rplctl.errors import UsageError, file_error
from rplctl.option_text import is_clean

SYSTEM_FOLDER: Final = Path("/etc/systemd/system")
_WRITTEN: Final = "# Written by rplctl init --systemd; systemctl edit keeps your changes in a file of their own.\n"
_HARDENED: Final = """\
NoNewPrivileges=yes
ProtectSystem=strict
ProtectHome=read-only
PrivateTmp=yes
PrivateDevices=yes
ProtectClock=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
ProtectControlGroups=yes
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
LockPersonality=yes
SystemCallArchitectures=native
"""
_STAYS: Final = """\
Type=notify
NotifyAccess=main
Restart=on-failure
RestartSec=10
RestartPreventExitStatus=2 4 5 78
SuccessExitStatus=10
TimeoutStartSec=300
TimeoutStopSec=180
WatchdogSec=120
WatchdogSignal=SIGKILL
KillMode=mixed
OOMPolicy=continue
"""


_PLAIN: Final = frozenset(string.ascii_letters + string.digits + "/._-+=@%:,$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Units:
    folder: Path
    written: tuple[str, ...]
    next_commands: tuple[str, ...]


def user_folder() -> Path:
    return Path(os.environ.get("XDG_CONFIG_HOME") or "~/.config", "systemd", "user").expanduser()


def unit_folder(given: Path | None) -> Path:
    """Return the folder for the units: the `given` one, or systemd's folder for this user. A missing folder is created.

    Raises UsageError if it cannot be created.
    """
    folder = given or (SYSTEM_FOLDER if os.geteuid() == 0 else user_folder())
    if not is_clean(str(folder)):
        raise UsageError("--systemd-dir: the name of the folder has a control character")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(
            f"cannot write units to {folder}: {error.strerror}", hint="name another folder: --systemd-dir DIR"
        ) from error
    return folder


def write_units(config: Config, folder: Path, *, force: bool) -> Units:
    """Write the units into `folder`. `force` overwrites files that somebody has changed.

    Without `force`, raises UsageError before the first write if there is such a file. Raises RplError if a unit cannot
    be written.
    """
    is_system = folder != user_folder()
    wanted = dict(_units(config, is_system=is_system))
    try:
        there = {name: (folder / name).read_text() for name in wanted if (folder / name).exists()}
        changed = [name for name, text in there.items() if text != wanted[name]]
        if changed and not force:
            raise UsageError(
                f"existing units in {folder} have other contents: {', '.join(changed)}",
                hint="add --force to overwrite them; systemctl edit NAME stores your changes in separate files",
            )
        names = tuple(name for name in wanted if there.get(name) != wanted[name])
        for name in names:
            replace_file(folder / name, wanted[name].encode())
            (folder / name).chmod(0o644)
    except OSError as error:
        raise file_error(error) from error
    control = "systemctl" if is_system else "systemctl --user"
    commands = [
        f"{control} daemon-reload",
        f"{control} enable --now rplctl.service          # the default channel; rplctl@NAME.service a named one",
        f"{control} enable --now rplctl-verify.timer rplctl-backup.timer rplctl-metrics.timer",
        f"{control} enable --now rplctl-sync.timer       # instead of rplctl.service: each minute, as from cron",
    ]
    return Units(folder=folder, written=names, next_commands=tuple(commands))


def _units(config: Config, *, is_system: bool) -> Iterator[tuple[str, str]]:
    """Yield the file name and the content of each unit. `is_system` is False for units that the manager of a user
    runs.
    """
    datadir = config.datadir.resolve()
    program = f"{_program()} -q --datadir {_argument(datadir)}"
    metrics = "/var/lib/prometheus/node-exporter" if is_system else str(datadir)
    kept = datadir.with_name(f"{datadir.name}-backups")
    box, make = "NoNewPrivileges=yes\nLockPersonality=yes\n", "/usr/bin/install -d -m 700 ${BACKUPS}"
    if is_system:
        owner = pwd.getpwuid(datadir.stat().st_uid)
        make = f"+/usr/bin/install -d -m 700 -o {owner.pw_name} ${{BACKUPS}}"
        box = f"User={owner.pw_name}\n{_HARDENED}{_writable(config, datadir, owner.pw_dir)}"
    for at, channel, of in (("", "--channel ''", "the default channel"), ("@", '--channel "%I"', "channel %I")):
        head = _head(f"rplctl: {of}", is_system=is_system) + "StartLimitIntervalSec=600\nStartLimitBurst=5\n"
        install = f"[Install]\nWantedBy={'multi-user' if is_system else 'default'}.target\n"
        service = f"[Service]\n{_STAYS}ExecStart={program} start --foreground {channel}\n{box}"
        yield f"rplctl{at}.service", f"{head}\n{service}\n{install}"
        verify = f"ExecStart={program} verify --max-load 10 {channel}\n{box}"
        yield from _timed(f"rplctl-verify{at}", f"compare {of} with its source", verify, "*-*-* 03:15", is_system)
    sync = f"ExecStart={program} start --until-synced --max-time 50\n{box}"
    yield from _timed("rplctl-sync", "apply what the sources have now", sync, "minutely", is_system)
    exec_start = f"ExecStart={program} metrics --textfile {_argument(f'{metrics}/rplctl.prom')}\n{box}"
    exec_start += f"ReadWritePaths=-{metrics}\n" if is_system else ""
    yield from _timed("rplctl-metrics", "metrics for node_exporter", exec_start, "minutely", is_system)
    shell = """/bin/sh -c 'exec "$$@" "$$BACKUPS/$$(date +%%Y%%m%%d-%%H%%M%%S)"' sh"""
    copied = f"Environment={_word(f'BACKUPS={kept}')}\nExecStartPre={make}\nExecStart={shell} {program} backup\n{box}"
    copied += f"ReadWritePaths={_word(f'-{kept}')}\n" if is_system else ""
    yield from _timed("rplctl-backup", "copy the instance", copied, "*-*-* 02:30", is_system)


def _program() -> str:
    own = Path(sys.executable).with_name("rplctl")
    return _argument(own) if own.exists() else f"{_argument(sys.executable)} -P -m rplctl"


def _timed(name: str, what: str, rest: str, when: str, is_system: bool) -> Iterator[tuple[str, str]]:
    head = _head(f"rplctl: {what}", is_system=is_system)
    yield f"{name}.service", f"{head}\n[Service]\nType=oneshot\nTimeoutStartSec=infinity\n{rest}"
    spread = "" if when == "minutely" else "RandomizedDelaySec=15min\nPersistent=yes\n"
    timer = f"[Timer]\nOnCalendar={when}\n{spread}\n[Install]\nWantedBy=timers.target\n"
    yield f"{name}.timer", f"{_WRITTEN}[Unit]\nDescription=rplctl: {what}\n\n{timer}"


def _head(what: str, *, is_system: bool) -> str:
    """Return the head of a unit: its comment, description and dependencies.

    The system's manager waits for the network and the database servers. The manager of a user cannot do this.
    """
    online = "Wants=network-online.target\nAfter=network-online.target\n" if is_system else ""
    after = "After=mariadb.service mysql.service postgresql.service\n" if is_system else ""
    return f"{_WRITTEN}[Unit]\nDescription={what}\nDocumentation=man:rplctl(1)\n{online}{after}"


def _writable(config: Config, datadir: Path, home: str) -> str:
    """Return the settings that let a unit write the instance folder and the folders of other files.

    These are the files of a SQLite target, of a binary log in another folder, and of compiled code.
    """
    found = {datadir, (datadir / config.log_bin).parent if config.log_bin else datadir}
    if (target := sqlite_file(config)) is not None:
        found.add(target.parent.resolve())
    places = [*(str(place) for place in sorted(found)), f"-{home}/.cache/rplctl"]
    return "".join(f"ReadWritePaths={_word(place)}\n" for place in places)


def _argument(word: Path | str) -> str:
    """Return `word` as one argument of a command in a unit. A `$` is doubled, so that systemd does not expand
    variables.
    """
    return _word(str(word)).replace("$", "$$")


def _word(word: str) -> str:
    """Return `word` as one word of a setting, with quotes if they are needed.

    Raises UsageError for a quotation mark, a backslash or a control character. Some settings of systemd do not
    interpret a backslash, so these characters cannot be escaped.
    """
    if not word.isprintable() or set(word) & set('"\\'):
        raise UsageError(
            f"{word!r} cannot be written in a unit of systemd",
            hint='use a path without control characters, " and \\: rplctl --datadir DIR init --systemd',
        )
    word = word.replace("%", "%%")
    return word if set(word) <= _PLAIN else f'"{word}"'
