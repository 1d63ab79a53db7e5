"""The ledger of a drain counts each second once, and its bare load does the same to a server as the drain."""

from __future__ import annotations

import subprocess

import pytest

from tests.bench.bench_ledger import accounts, shown
from tests.bench.workload import SOURCE_OPTIONS, Workload, checksums, phase_of
from tests.house.code import ROOT
from tests.kit.servers import MariadbServer

pytestmark = [
    pytest.mark.long("A benchmark is a tool; tests/bench is not part of the product."),
    pytest.mark.slow,
    pytest.mark.spark,
    pytest.mark.mariadb,
]
NEW = (
    "CREATE TABLE t (id INT PRIMARY KEY, k INT, c CHAR(120)); INSERT INTO t SELECT seq, seq % 97, MD5(seq) FROM"
    " seq_1_to_20000; CREATE INDEX k ON t (k)"
)
CHANGES = (
    "UPDATE t SET c = REVERSE(c) WHERE id % 3 = 0; DELETE FROM t WHERE id % 5 = 0;"
    " INSERT INTO t SELECT seq, 1, 'new' FROM seq_20001_to_25000"
)


@pytest.mark.torture
def test_the_parts_are_the_whole_and_the_bare_load_does_the_same_work() -> None:
    with MariadbServer(SOURCE_OPTIONS) as source:
        source.sql("CREATE DATABASE sb")
        phases = [
            phase_of(source, "new", lambda: source.sql(NEW, "sb")),
            phase_of(source, "changes", lambda: source.sql(CHANGES, "sb")),
        ]
        load = Workload(source, phases, "sb", ["t"], checksums(source, "sb", ["t"]))
        told = accounts(load, "2")  # compares the tables of all servers with the source's
    for account in told:
        assert sum(spent[0] for spent in account["parts"].values()) == pytest.approx(account["seconds"], rel=0.1)
        assert account["tasks"]["jobs"] and account["tasks"]["decode"] > 0 and account["tasks"]["encode"] > 0
        assert account["parts"]["server: rows"][0] > 0 and account["parts"]["position"][0] > 0
        assert all(seconds > 0 for seconds, _ in account["bare"].values())
    assert told[0]["parts"]["server: statements of the log"][0] > 0
    lines = [str(line) for line in shown("new", told[0])]
    assert (
        any("to the bare load" in line and "with the log read" in line for line in lines)
        and sum(line.endswith("*") for line in lines) == 1
    )


def test_words_behind_make_bench_choose_its_parts() -> None:
    words = ["make", "-n", "bench", "ledger", "clone"]
    said = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert "-m tests.bench ledger clone" in said
