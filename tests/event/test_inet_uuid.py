"""Addresses and UUIDs print as MariaDB prints them (more of them, recorded, in test_values)."""

from __future__ import annotations

import pytest

from rplctl.event.inet_uuid import inet4_text, inet6_text, uuid_text


@pytest.mark.parametrize(
    ("groups", "text"),
    [
        ("0 0 0 0 0 0 0 0", "::"),
        ("0 0 0 0 0 0 0 1", "::1"),
        ("1 0 0 2 0 0 0 3", "1:0:0:2::3"),
        ("1 0 2 0 3 0 4 0", "1::2:0:3:0:4:0"),
        ("10 0 100 0 0 1 1 1", "10:0:100::1:1:1"),
        ("1 2 3 4 5 6 7 0", "1:2:3:4:5:6:7::"),
        ("0 0 0 0 0 ffff 102 304", "::ffff:1.2.3.4"),
        ("0 0 0 0 0 0 102 304", "::1.2.3.4"),
    ],
)
def test_inet6(groups: str, text: str) -> None:
    assert inet6_text(b"".join(int(group, 16).to_bytes(2, "big") for group in groups.split())) == text


def test_inet4() -> None:
    assert inet4_text(b"\x01\x02\x00\xff") == "1.2.0.255"


def test_only_uuids_of_versions_1_to_5_are_stored_in_reverse() -> None:
    assert uuid_text(bytes.fromhex("426655440000a45612d3e89b123e4567")) == "123e4567-e89b-12d3-a456-426655440000"
    assert uuid_text(bytes.fromhex("017f22e279b07cc398c4dc0c0c07398f")) == "017f22e2-79b0-7cc3-98c4-dc0c0c07398f"
