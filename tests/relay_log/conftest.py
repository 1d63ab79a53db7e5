from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from rplctl.channel import Channel


@pytest.fixture
def channel(tmp_path: Path) -> Channel:
    return Channel("", tmp_path)


@pytest.fixture(scope="session")
def mariadb_binlog() -> str:
    """The vendor's tool as a second reader."""
    path = shutil.which("mariadb-binlog")
    if path is None:
        pytest.skip("mariadb-binlog is not installed (package mariadb-client)")
    return path
