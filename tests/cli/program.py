"""Run the command line in this process: exit code, stdout, stderr."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from rplctl.cli import run
from rplctl.cli.app import command_for


def whole_program() -> Any:
    """The program with every verb."""
    return command_for([])


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str


class Program:
    """`program("show-status", "--json")` on one instance folder."""

    def __init__(self, datadir: Path, capture: pytest.CaptureFixture[str]) -> None:
        self.datadir = datadir
        self.capture = capture

    def __call__(self, *arguments: str) -> Outcome:
        self.capture.readouterr()
        code = run(["--datadir", str(self.datadir), *arguments])
        shown = self.capture.readouterr()
        return Outcome(code, shown.out, shown.err)
