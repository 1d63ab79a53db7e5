"""The page of `serve` in a real browser: what it shows, that it refreshes by itself, and that a click harms nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rplctl.channel import Channel
from rplctl.demo import BINLOG_FOLDER
from rplctl.status import read_status
from tests.kit.browser import complaints, resize, texts
from tests.kit.fifty_channels import has_customers
from tests.kit.private_server import free_port
from tests.kit.replica import Replica, wait_until

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

pytestmark = [pytest.mark.slow, pytest.mark.spark]
ODD = "broken<b>"  # a name that is also markup
WORST_FIRST = ["billing", ODD, ""]
CLICKABLE = "a, button, summary, input, select, label, [onclick], [role=button], [tabindex], .channel, .row > *, li, tr"


@pytest.fixture(scope="module")
def replica(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Replica]:
    """The default channel replicates, billing stopped by an error, and the third was never started."""
    replica = Replica(tmp_path_factory.mktemp("page"), spark=False)
    try:
        replica.run("init")
        for name in ("", "billing", ODD):
            replica.run("change-master", "--channel", name, "--master-binlog-dir", os.fspath(BINLOG_FOLDER))
        replica.run("start", "--channel", "")
        wait_until(lambda: has_customers(replica), 60)
        replica.run("start", "--channel", "billing", expect=None)  # the default channel's table is in its way
        failed = Channel("billing", replica.datadir).status_path("applier")
        wait_until(lambda: read_status(failed).last_errno, 60)
        yield replica
    finally:
        for name in ("", "billing"):
            Replica(replica.datadir.parent, name, spark=False).close()


@contextmanager
def serving(replica: Replica, port: int, *options: str) -> Iterator[subprocess.Popen[str]]:
    """`rplctl serve` as a program of its own, which answers when the block begins."""
    command = [sys.executable, "-m", "rplctl", "--datadir", str(replica.datadir), "serve", *options]
    with subprocess.Popen([*command, "--listen", f"127.0.0.1:{port}"], stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr and "rplctl serves" in process.stderr.readline()
            yield process
        finally:
            process.kill()


@pytest.fixture(scope="module")
def url(replica: Replica) -> Iterator[str]:
    port = free_port()
    with serving(replica, port):
        yield f"http://127.0.0.1:{port}/"


def opened(page: Chrome, url: str) -> None:
    """Open the page and wait until it shows the channels as they are: `check` looks at them each 15 seconds."""
    page.get("about:blank")
    complaints(page)
    page.get(url)
    wait_until(lambda: texts(page, "#sum") == ["3 channels: 2 CRITICAL, 1 OK"] and texts(page, "polyline"), 60)
    wait_until(lambda: "receiver runningapplier running" in texts(page, ".channel")[-1], 60)


def channels(page: Chrome) -> list[str]:
    names: list[str] = page.execute_script(
        "return [...document.querySelectorAll('.channel')].map((each) => each.dataset.channel)"
    )
    return names


def test_the_page_shows_the_worst_first_and_why_it_stopped(page: Chrome, url: str) -> None:
    opened(page, url)
    assert channels(page) == WORST_FIRST and page.title == "CRITICAL · rplctl"
    billing, odd, default = texts(page, ".channel")
    assert "applier_error" in billing and "already exists" in billing and "applier failed" in billing
    assert "never_started" in odd and "rplctl start" in odd and odd.startswith(ODD)
    assert default.startswith("default channel")
    assert any("start" in row for row in texts(page, "#events tr"))
    assert texts(page, "#trouble:not([hidden])") == [] and complaints(page) == []


def test_the_page_fits_a_telephone(page: Chrome, url: str) -> None:
    opened(page, url)
    try:
        resize(page, 360, 800)
        assert page.execute_script("return document.documentElement.scrollWidth") <= 360
    finally:
        resize(page, 1000, 2000)


def test_a_click_on_anything_changes_nothing(page: Chrome, url: str) -> None:
    opened(page, url)
    middles = page.execute_script(
        """return [...document.querySelectorAll(arguments[0])].map((each) => each.getBoundingClientRect())
             .filter((box) => box.width && box.height && box.bottom < innerHeight)
             .map((box) => [Math.round(box.x + box.width / 2), Math.round(box.y + box.height / 2)])""",
        CLICKABLE,
    )
    assert len(middles) > 20
    for x, y in middles:
        for event in ("mousePressed", "mouseReleased"):
            where = {"type": event, "x": x, "y": y, "button": "left", "clickCount": 1}
            page.execute_cdp_cmd("Input.dispatchMouseEvent", where)
    assert channels(page) == WORST_FIRST and page.current_url == url and len(page.window_handles) == 1
    assert texts(page, "#trouble:not([hidden])") == [] and complaints(page) == []


@pytest.mark.long("test_the_page_shows_the_worst_first_and_why_it_stopped waits for a refresh, too.")
def test_the_page_refreshes_without_being_loaded_again(page: Chrome, url: str, replica: Replica) -> None:
    opened(page, url)
    page.execute_script("window.loaded = 'once'")
    replica.run("stop", "--channel", "", "--receiver")
    wait_until(lambda: "receiver stopped" in texts(page, "[data-channel='']")[0], 30)
    replica.run("start", "--channel", "", "--receiver")
    assert page.execute_script("return window.loaded") == "once"
    assert complaints(page) == []


@pytest.mark.long("test_the_page_shows_the_worst_first_and_why_it_stopped opens it in a browser in make test.")
def test_the_page_says_when_nothing_answers_and_recovers(page: Chrome, replica: Replica, tmp_path: Path) -> None:
    """A server that asks for a token, then dies, then is back: what the page shows is never taken for the present."""
    token = tmp_path / "token"
    token.write_text("s3cret\n")
    token.chmod(0o600)
    port = free_port()
    with serving(replica, port, "--token-file", str(token)) as process:
        opened(page, f"http://me:s3cret@127.0.0.1:{port}/")
        process.send_signal(signal.SIGKILL)
        wait_until(lambda: "does not answer" in "".join(texts(page, "#trouble:not([hidden])")), 30)
    with serving(replica, port, "--token-file", str(token)):
        wait_until(lambda: not texts(page, "#trouble:not([hidden])"), 30)
    assert all("net::ERR_" in line for line in complaints(page))
