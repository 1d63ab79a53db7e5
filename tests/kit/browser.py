"""A real browser without a window: Chromium, driven by the chromedriver of the same Debian source package."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

ARGUMENTS = (
    "--headless=new",
    "--no-sandbox",  # Chromium refuses to start as root with it
    "--disable-dev-shm-usage",  # containers have a /dev/shm of 64 MB
    "--disable-gpu",
    "--hide-scrollbars",
    "--lang=en-US",
)


@contextmanager
def browser(chromedriver: str, folder: Path, width: int = 1000, height: int = 900) -> Iterator[Chrome]:
    """Start a browser whose page is that large, in UTC. The folder holds everything that the browser writes."""
    from selenium.webdriver import Chrome, ChromeOptions, ChromeService  # each worker would load it

    options = ChromeOptions()
    for argument in (*ARGUMENTS, f"--user-data-dir={folder / 'profile'}"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    service = ChromeService(chromedriver, env={**os.environ, "HOME": str(folder), "TZ": "UTC"})
    driver = Chrome(options, service)
    try:
        resize(driver, width, height)
        yield driver
    finally:
        driver.quit()


def resize(driver: Chrome, width: int, height: int) -> None:
    """Give the page that size in pixels. A window without a screen still has borders, so its own size is larger."""
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


def texts(driver: Chrome, selector: str) -> list[str]:
    """Return the texts of the elements in the order of the page, hidden ones included."""
    found: list[str] = driver.execute_script(
        "return [...document.querySelectorAll(arguments[0])].map((each) => each.textContent)", selector
    )
    return found


def complaints(driver: Chrome) -> list[str]:
    """Return what the browser's console has said since the last call."""
    entries = driver.get_log("browser")  # type: ignore[no-untyped-call]
    return [f"{entry['level']} {entry['message']}" for entry in entries]
