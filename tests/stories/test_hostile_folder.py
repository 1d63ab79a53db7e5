"""No process of ours runs code from the working directory, which may be anybody's (`cd /their/folder; sudo rplctl …`).

The invariant is rplctl.own_process: command, environment and folder of each process. The family: every verb that starts
one is run in a folder of modules that leave a mark when they are imported, and then fail.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rplctl import demo
from rplctl.applier.spark.java import find_java
from rplctl.command.init import init
from rplctl.config import load_config
from rplctl.errors import ConfigError, RplError
from rplctl.own_process import own_environment
from rplctl.target import open_engine

PROGRAM = Path(sys.executable).with_name("rplctl")
MODULES = "json typing numpy pyspark py4j sqlalchemy yaml sitecustomize usercustomize rplctl"
MARK = "import sys; open({mark!r}, 'a').write(f'{{__name__}} by {{sys.argv}}\\n'); raise ImportError('hostile')\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The hostile folder; `marks` next to it is what its modules write."""
    made = tmp_path / "theirs"
    made.mkdir()
    for name in MODULES.split():
        (made / f"{name}.py").write_text(MARK.format(mark=str(tmp_path / "marks")))
    (made / ".numba_config.yaml").write_text(f"cache_dir: {tmp_path / 'marks'}\n")
    return made


def run(folder: Path, *arguments: str, python_path: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run the program there. It ignores `python_path` itself (-I); what it starts has to."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [str(PROGRAM)]
    if python_path is not None:
        environment["PYTHONPATH"] = python_path
        command = [sys.executable, "-I", str(PROGRAM)]
    command += ["--datadir", str(folder.with_name("data")), *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=600)


def succeed(folder: Path, *arguments: str, python_path: str | None = None) -> None:
    done = run(folder, *arguments, python_path=python_path)
    marks = folder.with_name("marks")
    assert not marks.exists(), f"{arguments}: {marks.read_text() if marks.is_file() else 'a cache of kernels'}"
    assert done.returncode == 0, f"{arguments}: {done.stderr}"


@pytest.mark.slow
@pytest.mark.spark
def test_an_applier_with_spark_runs_no_code_from_the_folder_it_is_begun_in(folder: Path) -> None:
    python_path = f".{os.pathsep}{os.pathsep}sub"
    succeed(folder, "change-master", "--master-binlog-dir", os.fspath(demo.BINLOG_FOLDER), python_path=python_path)
    succeed(folder, "start", "--until-synced", python_path=python_path)
    assert "hostile" not in (folder.with_name("data") / "run" / "@" / "applier.log").read_text()


@pytest.mark.long("test_an_applier_with_spark_runs_no_code_from_the_folder_it_is_begun_in starts the same processes.")
@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("python_path", [None, f".{os.pathsep}{os.pathsep}sub"])
def test_no_verb_runs_code_from_the_folder_it_is_begun_in(folder: Path, python_path: str | None) -> None:
    told = folder.with_name("told")
    succeed(folder, "init", "--on-error", f"cat > {told}", python_path=python_path)
    succeed(folder, "change-master", "--master-binlog-dir", os.fspath(demo.BINLOG_FOLDER), python_path=python_path)
    succeed(folder, "start", python_path=python_path)
    succeed(folder, "wait", "--state", "synced", python_path=python_path)
    succeed(folder, "stop", python_path=python_path)
    log = folder.with_name("data") / "run" / "@" / "applier.log"
    assert "hostile" not in log.read_text()


@pytest.mark.long(
    "test_an_applier_with_spark_runs_no_code_from_the_folder_it_is_begun_in starts children in the same way."
)
@pytest.mark.slow
def test_the_runner_of_on_error_runs_no_code_from_there(folder: Path) -> None:
    told = folder.with_name("told")
    succeed(folder, "init", "--on-error", f"cat > {told}", "--spark", "auto")
    gone = folder.with_name("logs")
    gone.mkdir()
    succeed(folder, "change-master", "--master-binlog-dir", str(gone))
    failed = run(folder, "start", "--foreground", "--max-time", "60", python_path=".")
    assert failed.returncode and not folder.with_name("marks").exists()
    assert "1236" in told.read_text()


@pytest.mark.long(
    "test_an_applier_with_spark_runs_no_code_from_the_folder_it_is_begun_in holds it for the verbs that run every day."
)
@pytest.mark.slow
@pytest.mark.parametrize("verb", [("demo",), ("crash-test", "--points", "crash_before_purge_logs"), ("fsync-report",)])
def test_no_test_of_itself_does(folder: Path, verb: tuple[str, ...]) -> None:
    succeed(folder, *verb, python_path=".")


def test_what_is_named_from_the_working_directory_stays_what_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    found = own_environment({"PYTHONPATH": f"a:/b::.:{tmp_path}", "JAVA_HOME": "jdk", "RPLCTL_CONFIG": "", "PATH": "."})
    assert found["PYTHONPATH"] == f"/b:{tmp_path}" and found["JAVA_HOME"] == str(tmp_path / "jdk")
    assert (found["RPLCTL_CONFIG"], found["PATH"], found["PYTHONSAFEPATH"]) == ("", ".", "1")
    assert "PYTHONPATH" not in own_environment({"PYTHONPATH": "."})
    init(tmp_path, {"target": "sqlite:///t.db?timeout=9", "java_home": "jdk"})
    config = load_config(tmp_path)
    assert (config.target, config.java_home) == (f"sqlite:///{tmp_path}/t.db?timeout=9", f"{tmp_path}/jdk")


@pytest.mark.parametrize("kind", ["sqlite", "duckdb"])
def test_a_file_that_is_named_from_the_working_directory_is_refused_elsewhere(tmp_path: Path, kind: str) -> None:
    (tmp_path / "rplctl.toml").write_text(f'target = "{kind}:///t.db"')
    with pytest.raises(RplError, match="needs a file"):
        open_engine(load_config(tmp_path).target_url)
    with pytest.raises(ConfigError, match="expected an absolute path"):
        find_java("jdk", tmp_path)
