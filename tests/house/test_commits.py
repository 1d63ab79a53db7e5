"""Commits can be read in one line each, and say why."""

from __future__ import annotations

import subprocess

import pytest

from tests.house.code import ROOT

RULE_BEGAN = "2026-11-23T09:00:00Z"  # older ones stay as they are
SUBJECT_CHARACTERS = 72


def test_subjects_fit_into_a_line_and_bodies_say_why() -> None:
    """As many as the clone has: one of depth 1 has one."""
    if not (ROOT / ".git").exists():
        pytest.skip("no history here: this is no clone (.git is missing)")
    log = ["log", "--no-merges", f"--since={RULE_BEGAN}", "--format=%h%x1f%s%x1f%b%x1e"]
    done = subprocess.run(["git", "-c", "safe.directory=*", *log], cwd=ROOT, capture_output=True, text=True, check=True)
    commits = [record.strip("\n").split("\x1f") for record in done.stdout.split("\x1e") if record.strip("\n")]
    long = [f"{commit} {subject}" for commit, subject, _ in commits if len(subject) > SUBJECT_CHARACTERS]
    silent = [f"{commit} {subject}" for commit, subject, body in commits if not body.strip()]
    assert (long, silent) == ([], [])
