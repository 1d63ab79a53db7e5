"""The runbooks of man 7 rplctl-cluster: each command of rplctl in them is run; the YAML is read."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.kit.replica import Replica, wait_until
from tests.kit.servers import MariadbServer

pytestmark = [pytest.mark.slow, pytest.mark.mariadb, pytest.mark.torture, pytest.mark.timeout(900)]
SCHEMA = "DROP DATABASE IF EXISTS shop; CREATE DATABASE shop; CREATE TABLE shop.t (id INT PRIMARY KEY)"
PAGE = (Path(__file__).parents[2] / "man/rplctl-cluster.7").read_text()


def blocks(section: str) -> list[str]:
    """Examples of a section, as they are typed."""
    text = PAGE.partition(f".SH {section}\n")[2].partition("\n.SH ")[0]
    return [part.partition(".EE")[0].replace("\\-", "-") for part in text.split(".EX\n")[1:]]


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Replica]:
    replica = Replica(tmp_path, "shard01", spark=False)
    yield replica
    replica.close()
    Replica(tmp_path / "there", "shard01", spark=False).close()


def test_the_commands_for_kubernetes_do_without_one_what_they_say(made: Replica, source: MariadbServer) -> None:
    manifest, commands, executors = blocks("KUBERNETES")
    service, stateful = yaml.safe_load_all(manifest)
    pod = stateful["spec"]["template"]["spec"]
    assert service["metadata"]["name"] == stateful["spec"]["serviceName"]
    assert [one["name"] for one in pod["containers"]] == ["rplctl", "shell"] and stateful["spec"]["replicas"] == 1
    typed = [line.partition(" -- ")[2] for line in commands.splitlines() if " -- " in line]
    init, change, *rest = (shlex.split(line.partition(" < ")[0])[1:] for line in typed)
    at = init.index("--target")
    del init[at : at + 2], init[init.index("--target-password-stdin")]  # SQLite in its place
    made.run(*init)
    change = [source.host if word == "shard01.db" else word for word in change]
    made.run(*change, "--master-port", str(source.port), password="rpl")
    environment = {**os.environ, **made.variables, "RPLCTL_DATADIR": str(made.datadir)}
    command = [sys.executable, "-m", *pod["containers"][0]["command"]]
    staying = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_until(lambda: made.status()["Slave_SQL_Running"] == "Yes", 120)
        made.run("wait", "--channel", "shard01", "--state", "synced", "--timeout", "120")
        for words in rest:
            made.run(*words, expect=None if words[0] == "check" else 0)
        told = json.loads(made.run("show-status", "--json").stdout)[0]
        assert (told["Slave_IO_Running"], told["Slave_SQL_Running"]) == ("Yes", "Yes")
    finally:
        staying.terminate()
        staying.wait(120)
    assert "spark.driver.host=rplctl-west-0." in executors


def test_the_commands_of_a_group_move_it(made: Replica, source: MariadbServer, tmp_path: Path) -> None:
    toml, start, daily, foreground, moving = blocks("GROUPS OF CHANNELS")
    made.run("init")
    with (made.datadir / "rplctl.toml").open("a") as file:
        file.write(toml)
    for name in ("shard01", "shard02"):
        made.change_master(source, "--channel", name)
    for line in [*start.splitlines(), *daily.splitlines()]:
        words = shlex.split(line)[1:]
        made.run(*words, expect=None if words[0] in ("check", "show-channels") else 0)
    assert made.pid("applier")
    assert foreground.split()[-1] == "--foreground"
    there = str(tmp_path / "there/replica")
    for line in moving.replace("/srv/here/west", str(made.datadir)).replace("/srv/there/west", there).splitlines():
        (tmp_path / "there").mkdir(exist_ok=True)
        words = shlex.split(line)
        if words[0] == "mv":
            subprocess.run(words, check=True)
            made = Replica(tmp_path / "there", "shard01", spark=False)
        else:
            made.run(*(words[3:] if words[1] == "--datadir" else words[1:]))
    assert made.pid("applier") and made.pid("receiver")
    made.run("stop", "--group", "west")
