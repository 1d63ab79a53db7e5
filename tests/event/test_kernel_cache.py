"""Compiled code is kept where only its owner can write, or nowhere; a user without a home works all the same."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest

import rplctl
from rplctl.channel import Channel
from rplctl.cli import run
from rplctl.event import kernel_cache
from rplctl.event.kernel_cache import VARIABLE, cache_folder, choose_folder, is_private, made_folder
from tests.relay_log.stream import FakeSource, write_relay_log

NOBODY = 65534
PLACES = (".", "cache", "cache/numba")
WRONG = ("others can write", "its group can write", "another's", "a link")  # a link to an instance folder is as good
KEEPS_READING = ("--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search")  # this Python may lie in a home


@pytest.fixture
def datadir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Of a user whose package and home are not to be written."""
    monkeypatch.setattr(kernel_cache, "is_kept_beside", lambda: False)
    monkeypatch.setenv(VARIABLE, "")  # so that it is taken back
    monkeypatch.delenv(VARIABLE)
    monkeypatch.delitem(sys.modules, "numba", raising=False)
    (tmp_path / "home").touch()  # root could write to any folder
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    folder = tmp_path / "instance"
    folder.mkdir(mode=0o700)
    return folder


def test_without_a_home_it_is_kept_in_the_instance_folder_for_the_owner_alone(datadir: Path) -> None:
    choose_folder(datadir)
    assert not (datadir / "cache").exists()  # `doctor` asks, too, and changes nothing
    before = os.umask(0)
    try:
        assert made_folder() == datadir / "cache" / "numba" == cache_folder()
    finally:
        os.umask(before)
    assert {(datadir / name).stat().st_mode & 0o777 for name in ("cache", "cache/numba")} == {0o700}
    assert os.environ[VARIABLE] == str(datadir / "cache" / "numba")  # children inherit it


@pytest.mark.parametrize(("name", "wrong"), [pair for pair in product(PLACES, WRONG) if pair != (".", "a link")])
def test_none_is_used_that_another_user_can_put_code_into(name: str, wrong: str, datadir: Path, tmp_path: Path) -> None:
    (datadir / "cache" / "numba").mkdir(parents=True)
    place = datadir / name
    if wrong == "another's":
        if os.geteuid():
            pytest.skip("needs root to give a folder away")
        os.chown(place, NOBODY, NOBODY)
    elif wrong == "a link":
        place.rename(tmp_path / "elsewhere")
        place.symlink_to(tmp_path / "elsewhere")
    else:
        place.chmod(0o777 if wrong == "others can write" else 0o770)
    choose_folder(datadir)
    assert (VARIABLE in os.environ, cache_folder(), made_folder()) == (False, None, None)


@pytest.mark.parametrize("wrong", ["another's", 0o777, 0o775, 0o1777])
def test_a_folder_above_decides_too(wrong: str | int, datadir: Path, tmp_path: Path) -> None:
    """Who can rename in a folder above can put another cache in its place; a sticky folder such as /tmp keeps ours."""
    above = tmp_path / "above"
    place = above / "deeper" / "instance"
    place.mkdir(parents=True, mode=0o700)
    if isinstance(wrong, int):
        above.chmod(wrong)
    elif os.geteuid():
        pytest.skip("needs root to give a folder away")
    else:
        os.chown(above, NOBODY, NOBODY)
    choose_folder(place)
    assert (cache_folder() is not None) is (wrong == 0o1777)
    assert is_private(place) is (wrong == 0o1777)


def test_folders_that_are_made_on_the_way_are_private(
    datadir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "a" / "b"))
    before = os.umask(0)
    try:
        choose_folder(datadir)
        made = made_folder()
    finally:
        os.umask(before)
    assert made == tmp_path / "a" / "b" / "rplctl" / "numba"
    assert {path.stat().st_mode & 0o777 for path in (made, *list(made.parents)[:3])} == {0o700}


def test_the_home_comes_first_and_an_operators_folder_before_it(
    datadir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "new"))
    choose_folder(datadir)
    assert cache_folder() == tmp_path / "new" / "rplctl" / "numba"
    monkeypatch.setenv(VARIABLE, str(tmp_path / "told"))
    choose_folder(datadir)
    assert made_folder() == tmp_path / "told"


def test_doctor_says_where_and_warns_of_nowhere(datadir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def row() -> tuple[str, str]:
        run(["--datadir", str(datadir), "--json", "doctor"])
        found = next(line for line in json.loads(capsys.readouterr().out) if line["Check"] == "compiled code")
        return found["Result"], found["Detail"]

    assert row() == ("OK", f"kept in {datadir / 'cache' / 'numba'}")
    del os.environ[VARIABLE]
    datadir.chmod(0o777)
    assert row()[0] == "WARN"


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """One that another user reaches."""
    folder = Path(tempfile.mkdtemp(prefix="rpl-other-", dir="/tmp"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.mark.torture
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to run as another user")
@pytest.mark.skipif(shutil.which("setpriv") is None, reason="needs setpriv (util-linux)")
def test_a_service_without_a_home_and_a_system_wide_package_works(open_folder: Path) -> None:
    package, datadir = open_folder / "system", open_folder / "instance"
    shutil.copytree(Path(rplctl.__file__).parent, package / "rplctl", ignore=shutil.ignore_patterns("__pycache__"))

    def ran(*words: str) -> str:
        user = ("--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups")
        environment = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "PYTHONPATH": str(package)}
        program = [sys.executable, "-P", "-m", "rplctl", "--datadir", str(datadir), *words]
        done = subprocess.run(
            ["setpriv", *user, *KEEPS_READING, *program],
            env=environment,
            cwd="/",
            capture_output=True,
            text=True,
            timeout=300,
        )
        if "setpriv:" in done.stderr:
            pytest.skip(f"no such user can be had here: {done.stderr.strip()}")
        assert "Traceback" not in done.stderr and "this is a bug" not in done.stderr
        return done.stdout

    run(["--datadir", str(datadir), "change-master", "--master-host", "db1", "--master-user", "u"])
    write_relay_log(Channel("", datadir), FakeSource(), 2)
    for path in (datadir, *datadir.rglob("*")):
        os.chown(path, NOBODY, NOBODY)
    assert f"kept in {datadir}/cache/numba" in ran("doctor")
    assert "relay-bin.000001" in ran("show-relaylog-events")
    compiled = list((datadir / "cache" / "numba").rglob("*.nbi"))
    assert compiled and all(path.stat().st_uid == NOBODY for path in compiled)
    datadir.chmod(0o777)  # it is nobody's alone no more: what is kept there is not loaded
    assert "not cached" in ran("doctor")
    assert "relay-bin.000001" in ran("show-relaylog-events")
