"""START REPLICA's options reach the applier unchanged, and wrong ones are refused."""

from __future__ import annotations

import pytest

from rplctl.applier.options import StartOptions, Until
from rplctl.errors import UsageError
from rplctl.position import BinlogPosition, RelayLogPosition


def test_nothing_said_means_run_until_stopped() -> None:
    assert StartOptions.from_json("") == StartOptions()


def test_every_field_is_read() -> None:
    text = (
        '{"until": {"kind": "master_pos", "log_name": "b.000002", "log_pos": 9}, "spark_master": "local[1]",'
        ' "until_source": "b.000003:44", "insecure_cluster": true}'
    )
    expected = StartOptions(
        until=Until(kind="master_pos", log_name="b.000002", log_pos=9),
        spark_master="local[1]",
        until_source=BinlogPosition("b.000003", 44),
        insecure_cluster=True,
    )
    assert StartOptions.from_json(text) == expected


def test_an_until_has_a_position_only_of_its_own_kind() -> None:
    relay = Until(kind="relay_pos", log_name="r.000001", log_pos=5)
    assert (relay.relay_position, relay.source_position) == (RelayLogPosition("r.000001", 5), None)


@pytest.mark.parametrize("text", ['{"until": {"kind": "sometime"}}', '{"until_source": "b.000003"}'])
def test_what_makes_no_sense_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        StartOptions.from_json(text)
