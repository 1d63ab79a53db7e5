"""Programs that tests drive besides servers: a browser, Prometheus, shells. `make servers` installs them."""

from __future__ import annotations

import os
import shutil

import pytest


def required_program(name: str, package: str = "") -> str:
    """Return the path of a program. `package`: its Debian package, if that has another name.

    Without the program the test is skipped. In CI, where `CI` is set, the test fails instead.
    """
    if path := shutil.which(name):
        return path
    reason = f"{name} is not installed (apt-get install {package or name})"
    if os.environ.get("CI"):
        pytest.fail(f"{reason}; in CI no test may be skipped for that")
    pytest.skip(reason)
