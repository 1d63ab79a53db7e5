"""Spark starts from an archive of its classes, where there is one; a missing or broken one is only slower."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rplctl.applier.spark.class_archive import archive_options, doubt, is_wanted, trust
from rplctl.applier.spark.java import find_java
from rplctl.applier.spark.session import path_of_archive

LONG = pytest.mark.long(
    "A damaged archive is rare; "
    "test_an_archive_is_given_up_when_spark_does_not_start_with_it_twice_in_a_row holds what follows."
)

START = """
import sys
from pathlib import Path
from rplctl.applier.spark import session
from rplctl.channel import Channel
from rplctl.config import Config

begun = []
session.make_in_background = lambda java_home, is_direct: begun.append(is_direct)
folder = Path(sys.argv[1])
context = session.open_session(Config(datadir=folder), "", Channel("", folder).run_folder)
assert context.parallelize(range(4), 2).map(str).collect() == ["0", "1", "2", "3"]
print("/rplctl/spark-" in Path(f"/proc/{context._gateway.proc.pid}/maps").read_text(), len(begun))
session.close_session(context, Channel("", folder).run_folder)
"""
MAKE = "from rplctl.applier.spark.make_class_archive import make; print(make())"


def run(code: str, *arguments: str) -> str:
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1]  # a JVM that dies tells about it first


@pytest.fixture
def no_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file in the place of one."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    path = path_of_archive(find_java("", tmp_path / "java"), is_direct=True)
    path.parent.mkdir(parents=True)
    path.write_bytes(bytes(1 << 20))
    return path


@pytest.mark.torture
@pytest.mark.spark
def test_an_archive_is_made_once_then_used_and_a_broken_one_does_no_harm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert run(START, str(tmp_path / "instance")) == "False 1"
    path = path_of_archive(find_java("", tmp_path / "java"), is_direct=True)
    assert run(MAKE) == str(path)
    assert run(MAKE) == "None"
    assert run(START, str(tmp_path / "instance")) == "True 0"
    os.truncate(path, path.stat().st_size // 2)
    assert run(START, str(tmp_path / "instance")) == "False 0"
    assert path.exists(), "its JVM may have been killed"
    assert run(START, str(tmp_path / "instance")) == "False 0"
    assert not path.exists()


@LONG
@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.usefixtures("no_archive")
def test_what_is_no_archive_does_no_harm(tmp_path: Path) -> None:
    """The JVM passes over it by itself; one that it dies of is in the long version above."""
    assert run(START, str(tmp_path / "instance")) == "False 0"


@LONG
@pytest.mark.slow
@pytest.mark.spark
def test_a_jvm_that_is_killed_as_it_starts_says_nothing_of_the_archive(tmp_path: Path, no_archive: Path) -> None:
    killing = """
killed = []
def killing(started, really=session.connect):
    gateway = really(started)
    if not killed:
        gateway.proc.kill()
        killed.append(gateway)
    return gateway
session.connect = killing
"""
    assert run(START.replace("begun = []", f"{killing}begun = []"), str(tmp_path / "instance")) == "False 0"
    assert [*no_archive.parent.glob("spark-*")] == [no_archive], "nothing is doubted"


def test_an_archive_is_given_up_when_spark_does_not_start_with_it_twice_in_a_row(no_archive: Path) -> None:
    doubt(no_archive)
    trust(no_archive)
    doubt(no_archive)
    assert no_archive.exists() and archive_options(no_archive)
    doubt(no_archive)
    assert not no_archive.exists() and not archive_options(no_archive) and not is_wanted(no_archive)


@pytest.mark.long("A class archive that cannot be made is rare, and costs a second at each start.")
def test_what_could_not_be_made_is_not_tried_again_for_a_day(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    path = path_of_archive(find_java("", tmp_path / "java"), is_direct=True)
    assert is_wanted(path)
    code = MAKE.replace(
        "; ",
        "; import rplctl.applier.spark.make_class_archive as a; a._classes_of_a_job = lambda *_, **__: ('x', ''); ",
    )
    assert run(code) == "None"
    assert not is_wanted(path)
    failed = path.with_suffix(".failed")
    assert "CalledProcessError" in failed.read_text()
    os.utime(failed, (time.time() - 90_000,) * 2)
    assert is_wanted(path)
