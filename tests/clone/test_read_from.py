"""The address of a replica that is read in the source's place, and what is no copy of the source."""

from __future__ import annotations

import pytest

from rplctl.clone.read_from import refuse_foreign, with_address
from rplctl.errors import SourceError, UsageError
from rplctl.info import MasterInfo
from tests.relay_log.stream import SOURCE_UUID

INFO = MasterInfo(host="src", port=3310, user_name="repl")


@pytest.mark.parametrize(
    ("there", "source", "foreign"),
    [
        ("0-1-5,1-1-2", "0-1-7,1-1-2", ""),
        ("0-1-8", "0-1-7", "0-1-8"),
        ("0-2-7", "0-1-7", "0-2-7"),  # the last number of a domain is one server's only
        ("0-1-1,9-2-1", "0-1-1", "9-2-1"),
        (f"{SOURCE_UUID}:1-5", f"{SOURCE_UUID}:1-9", ""),
        (f"{SOURCE_UUID}:1-11", f"{SOURCE_UUID}:1-9", f"{SOURCE_UUID}:10-11"),
        ("", "0-1-1", ""),
    ],
)
def test_what_the_source_has_not_is_named(there: str, source: str, foreign: str) -> None:
    if not foreign:
        return refuse_foreign(there, source, "r:1")
    with pytest.raises(SourceError, match=f"r:1 has transactions that the source does not have: {foreign}$"):
        refuse_foreign(there, source, "r:1")


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [("r", "r", 3310), ("r:7", "r", 7), ("[::1]:7", "::1", 7), ("[::1]", "::1", 3310), ("::1", "::1", 3310)],
)
def test_the_port_is_the_channels_where_none_is_given(text: str, host: str, port: int) -> None:
    read = with_address(INFO, text)
    assert (read.host, read.port, read.user_name) == (host, port, "repl")


@pytest.mark.parametrize("text", ["u@r", "r:x", "r:0", "r:65536", "mysql://r", ":3306"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="expected HOST or HOST:PORT"):
        with_address(INFO, text)
