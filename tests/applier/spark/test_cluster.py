"""What the operator may say of a cluster, what keeps strangers out of it, and what an executor must have."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from rplctl.applier.spark.cluster import (
    KEEP_OUT,
    SECRET,
    Cluster,
    Executor,
    given_settings,
    is_on_this_machine,
    look_around,
    own_versions,
    protection,
    refuse_other_versions,
)
from rplctl.applier.spark.split_task import Split, chunks_of, run_on_executor
from rplctl.config import Config
from rplctl.errors import ConfigError, RplError
from rplctl.event.format_description import parse_format_description
from rplctl.schema.plan import Catalog
from tests.event.logs import events, log

STANDALONE = "spark://boss:7077"


@pytest.mark.parametrize("master", ["", "local", "local[2]", "local[*,4]"])
def test_a_local_spark_is_always_closed_to_others(master: str) -> None:
    assert is_on_this_machine(master)
    assert protection(master, {}, is_insecure=True) == KEEP_OUT


@pytest.mark.parametrize("master", [STANDALONE, "yarn", "k8s://https://x", "local-cluster[1,1,1024]"])
def test_any_other_may_be_elsewhere(master: str) -> None:
    assert not is_on_this_machine(master)
    assert protection(master, {SECRET: "s"}, is_insecure=False).items() >= KEEP_OUT.items()
    assert protection(master, {}, is_insecure=True) == {}


def test_a_standalone_cluster_without_a_secret_is_refused() -> None:
    with pytest.raises(ConfigError, match="a standalone cluster needs a secret"):
        protection(STANDALONE, {}, is_insecure=False)


@pytest.mark.parametrize("name", [*KEEP_OUT, "spark.master", "spark.python.daemon.module"])
def test_what_rplctl_sets_is_not_the_operators(name: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=f"{name} is set by rplctl"):
        given_settings(Config(tmp_path, spark_conf=f"{name}=x"))


def test_a_secret_is_a_reference_and_its_file_is_its_owners_only(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text("hidden\n")
    file.chmod(0o600)
    config = Config(tmp_path, spark_conf=f"{SECRET}=file:{file},spark.jars=a,b")
    assert given_settings(config) == {SECRET: "hidden", "spark.jars": "a,b"}
    file.chmod(0o644)
    with pytest.raises(RplError, match="secret"):
        given_settings(config)
    with pytest.raises(RplError):
        given_settings(replace(config, spark_conf=f"{SECRET}=plain"))


def test_only_who_reads_the_witness_sees_our_files(tmp_path: Path) -> None:
    probe = Cluster(tmp_path, {}, print).probe
    assert look_around(probe).sees_files
    Path(probe.path).write_text("another cluster's")
    assert not look_around(probe).sees_files
    Path(probe.path).unlink()
    assert not look_around(probe).sees_files


def test_an_executor_that_has_another_version_is_named_with_both() -> None:
    ours = own_versions()
    refuse_other_versions([Executor("w1", True, ours)], ours)
    for name, version in ours:
        other = tuple((n, "0.0" if n == name else v) for n, v in ours)
        told = f"the executor on w2 has {name} 0.0, the applier's machine has {version}"
        with pytest.raises(RplError, match=told.replace(".", r"\.")):
            refuse_other_versions([Executor("w1", True, ours), Executor("w2", True, other)], ours)


def test_an_executor_that_comes_later_decodes_nothing_with_another_version(tmp_path: Path) -> None:
    data = log("my97-crash-inuse")
    (tmp_path / "relay-bin.000001").write_bytes(data)
    first = next(events(data))
    split = Split(
        path=str(tmp_path / "relay-bin.000001"),
        start=4,
        end=4 + len(first),
        table_maps=(),
        description=parse_format_description(first),
        spool_folder="",
    )
    assert chunks_of(run_on_executor(split, Catalog(), own_versions())) == []
    wanted = tuple((name, "9.9" if name == "numba" else version) for name, version in own_versions())
    with pytest.raises(RplError, match="the applier's machine has 9.9"):
        chunks_of(run_on_executor(split, Catalog(), wanted))
