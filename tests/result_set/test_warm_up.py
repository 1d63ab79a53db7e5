"""The kernels of a copy are compiled before its first rows come."""

from __future__ import annotations

from typing import Any

import pytest

from rplctl.result_set import rows, stream
from rplctl.result_set.warm_up import run_kernels


@pytest.mark.long("It compiles all kernels anew; tests/event/test_warm_up.py loads the compiled ones.")
def test_a_row_of_one_number_compiles_each_kernel_once() -> None:
    run_kernels()
    kernels: list[Any] = [rows.measure, rows.walk, rows.unite, stream.step_over]
    assert [len(kernel.signatures) for kernel in kernels] == [1, 1, 1, 1]
