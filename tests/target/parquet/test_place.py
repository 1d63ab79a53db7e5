"""A URL of plain Parquet files names a folder; what such files cannot be is refused with what to write instead."""

from __future__ import annotations

from pathlib import Path

import pytest

from rplctl.errors import ConfigError
from rplctl.target import open_target
from rplctl.target.parquet.place import place_of


def test_a_url_names_the_folder_and_where_positions_are() -> None:
    plain = place_of("parquet+file:///srv/my%20lake/")
    assert (plain.root, plain.state) == ("/srv/my lake", "/srv/my lake/_rplctl_parquet/state.db")
    other = place_of("parquet+file:///srv/lake?state=/var/state.db&zero_dates=null")
    assert (other.state, other.zero_dates_null) == ("/var/state.db", True)


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("parquet+s3://bucket/lake?state=/s.db", "need a file system that can rename"),
        ("parquet+file:///srv/lake?layer=mirror", "plain Parquet files support only the layer changes"),
        ("parquet+file:///srv/lake?AWS_REGION=x", "unknown option of plain Parquet files"),
        ("parquet+file:///srv/lake?zero_dates=no", "is neither error nor null"),
        ("parquet+file:///srv/lake?state=s.db", "is not an absolute path"),
        ("parquet+file:///", "does not name a folder"),
        ("parquet:///srv/lake", "need a file system that can rename"),
    ],
)
def test_what_plain_files_cannot_be_is_refused(url: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why) as refused:
        place_of(url)
    assert "parquet+file" in refused.value.hint or "delta+file" in refused.value.hint


@pytest.mark.parametrize(("first", "second"), [("delta", "parquet"), ("parquet", "delta")])
def test_a_folder_of_the_other_kind_of_lake_is_refused(tmp_path: Path, first: str, second: str) -> None:
    begun = open_target(f"{first}+file://{tmp_path}")
    begun.engine.connect().close()
    begun.close()
    with pytest.raises(ConfigError, match="is not a lake of rplctl"):
        open_target(f"{second}+file://{tmp_path}")
