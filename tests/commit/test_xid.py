"""Names of transactions in two phases: whose they are, and which step they lead to."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from rplctl.channel import Channel
from rplctl.commit.xid import INSTANCE_FILE, instance_name, number_of, xid_of, xid_prefix
from tests.commit.xa_probe import at


def test_a_name_says_instance_channel_and_step(tmp_path: Path) -> None:
    assert instance_name(tmp_path) == ""
    prefix = xid_prefix(Channel("East", tmp_path))
    assert re.fullmatch("rplctl:[0-9a-f]{12}:[0-9a-f]{12}:", prefix)
    assert prefix.split(":")[1] == instance_name(tmp_path)
    assert prefix == xid_prefix(Channel("EAST", tmp_path)) != xid_prefix(Channel("", tmp_path))
    name = xid_of(prefix, at(1))
    assert name.startswith(prefix) and len(name) == 49 and re.fullmatch("[0-9a-f]{16}", name.removeprefix(prefix))
    assert name == xid_of(prefix, replace(at(1), sql_delay=5, gtid_executed="")) != xid_of(prefix, at(2))
    assert xid_prefix(Channel("East", tmp_path / "other")) != prefix


def test_the_number_of_a_name_is_that_of_its_last_part() -> None:
    assert number_of("rplctl:0:0:00000000000000ff") == 255


@pytest.mark.parametrize("text", ["", "0123456789ab", "0123456789AB\n", "0123456789ab\n\n", "0123456789abc\n"])
def test_an_instance_whose_name_is_none_gets_a_new_one(tmp_path: Path, text: str) -> None:
    (tmp_path / INSTANCE_FILE).write_text(text)
    assert instance_name(tmp_path) == ""
    xid_prefix(Channel("", tmp_path))
    assert re.fullmatch("[0-9a-f]{12}", instance_name(tmp_path))
    assert (tmp_path / INSTANCE_FILE).read_text() == f"{instance_name(tmp_path)}\n"


def test_a_step_whose_digest_is_zero_has_a_number_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """0 says in a shadow-page file that nothing is prepared."""

    class Zero:
        def digest(self) -> bytes:
            return bytes(32)

    monkeypatch.setattr("rplctl.commit.xid.hashlib.sha256", lambda _: Zero())
    assert xid_of("rplctl:0:0:", at(1)) == "rplctl:0:0:0000000000000001"
