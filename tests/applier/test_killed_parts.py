"""Spark's own parts killed while they decode: a Python worker once or always, the JVM. A real Spark in an applier of
its own process; what it leaves, the next start goes on from.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from rplctl.applier.job import Applier
from rplctl.applier.options import StartOptions
from rplctl.channel import Channel
from rplctl.config import Config
from rplctl.status import read_status
from tests.applier.demo_log import demo_groups
from tests.applier.test_job import channel, rows

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900)]
__all__ = ["channel"]

# The program is the process's __main__, so what it puts in the place of the task travels to the workers whole.
PROGRAM = """
import os, signal, sys
from pathlib import Path
from rplctl.applier import pipeline
from rplctl.applier.__main__ import main

folder, what = Path(sys.argv[1]), sys.argv[2]
really_run = pipeline.run_split

def run_split(split, catalog):
    import os, signal
    from rplctl.applier.pipeline import run_split as really_run
    tries = os.open(folder / "tries", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    before = os.fstat(tries).st_size
    os.write(tries, b"x")
    if what == "always" or (what == "once" and before == 0):
        os.kill(os.getpid(), signal.SIGKILL)
    if what == "jvm" and before == 0:
        os.kill(int((folder / "jvm").read_text()), signal.SIGKILL)
    return really_run(split, catalog)

def decode(self, *arguments):
    from pyspark import SparkContext
    (folder / "jvm").write_text(str(SparkContext._gateway.proc.pid))
    return really_decode(self, *arguments)

really_decode, pipeline.Pipeline.decode, pipeline.run_split = pipeline.Pipeline.decode, decode, run_split
sys.exit(main([str(folder), "", sys.argv[3]]))
"""


def applied(channel: Channel, what: str) -> tuple[int, str]:
    options = json.dumps({"until_source": str(demo_groups().end_source)})
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(channel.datadir), what, options],
        capture_output=True,
        text=True,
        timeout=800,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )
    return done.returncode, done.stderr


def assert_whole(channel: Channel) -> None:
    end = demo_groups().end_source
    Applier(Config(datadir=channel.datadir), channel, StartOptions(until_source=end)).run()
    assert read_status(channel.status_path("applier")).exec_log_pos == end.log_pos
    assert rows(channel, "orders") > 0


def test_a_worker_that_is_killed_once_costs_another_attempt_of_its_task(channel: Channel) -> None:
    code, said = applied(channel, "once")
    assert code == 0, said
    assert len((channel.datadir / "tries").read_bytes()) > 1
    status = read_status(channel.status_path("applier"))
    assert (status.exec_log_pos, status.last_errno) == (demo_groups().end_source.log_pos, 0)


@pytest.mark.parametrize("what", ["jvm", pytest.param("always", marks=pytest.mark.torture)])
def test_a_session_that_dies_stops_the_applier_with_an_error_and_the_next_start_goes_on(
    channel: Channel, what: str
) -> None:
    code, said = applied(channel, what)
    assert code not in (0, -9), said
    status = read_status(channel.status_path("applier"))
    assert status.last_errno and status.last_error, said
    assert_whole(channel)
