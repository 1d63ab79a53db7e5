"""Commits can be read in one line each, say why, and bring nothing that a program left behind."""

from __future__ import annotations

import subprocess

import pytest

from tests.house.code import ROOT

RULE_BEGAN = "2026-11-23T09:00:00Z"  # older ones stay as they are
SUBJECT_CHARACTERS = 72
TOP_LEVEL = {
    *("pyproject.toml", "rplctl", "migrations", "tests", "man", "docs", "README.md"),
    *("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"),
    *("LICENSE", "Makefile", ".ci", ".gitignore", ".pre-commit-config.yaml"),
}


def test_subjects_fit_into_a_line_and_bodies_say_why() -> None:
    """As many as the clone has: one of depth 1 has one."""
    log = ["log", "--no-merges", f"--since={RULE_BEGAN}", "--format=%h%x1f%s%x1f%b%x1e"]
    commits = [record.strip("\n").split("\x1f") for record in _git(*log).split("\x1e") if record.strip("\n")]
    long = [f"{commit} {subject}" for commit, subject, _ in commits if len(subject) > SUBJECT_CHARACTERS]
    silent = [f"{commit} {subject}" for commit, subject, body in commits if not body.strip()]
    assert (long, silent) == ([], [])


def test_nothing_lies_beside_what_was_asked_for() -> None:
    """A folder of logs or an instance's files are committed by `git add -A` before anybody looks."""
    assert {name.partition("/")[0] for name in _git("ls-files").splitlines()} == TOP_LEVEL


def _git(*words: str) -> str:
    if not (ROOT / ".git").exists():
        pytest.skip("no history here: this is no clone (.git is missing)")
    command = ["git", "-c", "safe.directory=*", *words]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
