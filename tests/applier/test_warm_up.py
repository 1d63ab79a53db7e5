"""Warming up touches what a task uses and leaves nothing behind."""

from __future__ import annotations

import sys

from rplctl.applier.warm_up import warm_up


def test_everything_a_task_needs_is_loaded_afterwards() -> None:
    warm_up()
    assert {"rplctl.binlog.values", "rplctl.binlog.net_change", "rplctl.binlog.images"} <= set(sys.modules)
