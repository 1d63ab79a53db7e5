"""MySQL's words since 8.0.22."""

from __future__ import annotations

import pytest

from rplctl.command.channel.source_terms import to_source, to_source_text


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Master_Host", "Source_Host"),
        ("Slave_IO_Running", "Replica_IO_Running"),
        ("Relay_Master_Log_File", "Relay_Source_Log_File"),
        ("Seconds_Behind_Master", "Seconds_Behind_Source"),
        ("Master_SSL_Verify_Server_Cert", "Source_SSL_Verify_Server_Cert"),
        ("Get_Master_public_key", "Get_Source_public_key"),
        ("Last_IO_Error", "Last_IO_Error"),
    ],
)
def test_columns_have_their_names_of_mysql_8_0_22(old: str, new: str) -> None:
    assert to_source(old) == new


def test_only_our_own_texts_are_translated() -> None:
    waiting = "Waiting for master to send event"
    assert to_source_text("Slave_IO_State", waiting) == "Waiting for source to send event"
    for column in ("Last_IO_Error", "Master_Host", "Master_Info_File", "Replicate_Do_DB"):
        assert to_source_text(column, "master.slave.example.org") == "master.slave.example.org"
    assert to_source_text("Slave_IO_State", None) is None
