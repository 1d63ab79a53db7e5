"""What Spark imports while it looks for formats ends no other format's query."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.long("An installation without pyarrow is rare.")
@pytest.mark.slow
@pytest.mark.parametrize(("missing", "told"), [("", "True"), ("pyarrow", "False")])
def test_the_module_can_be_imported_where_pyarrow_is_missing(missing: str, told: str) -> None:
    code = f"import sys; sys.modules[{missing!r}] = None; import rplctl.data_source.pyspark_binlog as found; "
    run = [sys.executable, "-c", f"{code}print(hasattr(found, 'DefaultSource'))"]
    done = subprocess.run(run, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, told), done.stderr
