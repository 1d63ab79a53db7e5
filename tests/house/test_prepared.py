"""What the kit sets and an operator does not is listed with a reason: nothing hides a defect of a plain session."""

from __future__ import annotations

import re

from tests.house.code import ROOT
from tests.kit import servers
from tests.kit.prepared import ENVIRONMENT, POSTGRESQL_SETTINGS, SERVER_OPTIONS

SET = re.compile(r"(?:setenv\(|environ\.setdefault\(|self\.variables \|?= \{|else \{)\"([A-Z_]+)\"")


def test_every_variable_that_the_kit_sets_for_programs_is_listed() -> None:
    texts = [(ROOT / "tests" / name).read_text() for name in ("conftest.py", "kit/replica.py")]
    assert {name for text in texts for name in SET.findall(text)} == set(ENVIRONMENT)


def test_every_option_of_the_servers_is_listed() -> None:
    kinds = [
        kind for kind in vars(servers).values() if isinstance(kind, type) and issubclass(kind, servers.MariadbServer)
    ]
    given = {option.partition("=")[0] for kind in kinds for option in (*kind.base_options, *kind.own_options)}
    assert given == set(SERVER_OPTIONS)


def test_every_setting_of_postgresql_is_listed() -> None:
    text = (ROOT / "tests/kit/servers.py").read_text()
    settings = text.partition("settings = {")[2].partition("}")[0]
    assert set(re.findall(r'^ *"(\w+)":', settings, re.MULTILINE)) == set(POSTGRESQL_SETTINGS)
