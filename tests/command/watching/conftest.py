"""A browser for the tests of the page: one for all of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.kit.browser import browser
from tests.kit.programs import required_program

if TYPE_CHECKING:
    from selenium.webdriver import Chrome


@pytest.fixture(scope="package")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    chromedriver = required_program("chromedriver", "chromium-driver")
    with browser(chromedriver, tmp_path_factory.mktemp("browser"), height=2000) as driver:
        yield driver
