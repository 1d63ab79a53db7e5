"""Take the pictures of the README again: `serve`'s page in a browser, and `top`. `make pictures`, or with a folder.

The channels are real, of the kit's fifty_channels: three stopped, each for its reason, and five replicate. Two things
are made up, because a picture is not taken for an hour on a server: the curves of the last hour, and the folders of
the sources.
"""

from __future__ import annotations

import io
import math
import re
import shutil
import sys
from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from rich.console import Console

from rplctl.cli.top import picture
from rplctl.command.serve import HttpRequest, serve
from rplctl.command.watching.seen import Seen
from rplctl.command.watching.watch import POINT_S, POINTS, Point, Watch
from rplctl.config import load_config
from rplctl.demo import BINLOG_FOLDER
from tests.kit.browser import browser, texts
from tests.kit.fifty_channels import STOPPED, fifty_channels
from tests.kit.replica import wait_until

FINE: Final = ("crm", "ledger", "shop_eu", "shop_us", "stock")
COLUMNS: Final = 84
_FONTS = re.compile(r" *@font-face \{.*?\}\n", re.DOTALL)  # they would be loaded from elsewhere


class Pictured(Watch):
    """Channels as they are seen, with the curves of a whole hour and the folders of a server."""

    def __init__(self, datadir: Path) -> None:
        super().__init__(list)
        self._seen = Watch(lambda: [(name, load_config(datadir, name)) for name in (*STOPPED, *FINE)], checks=True)
        self._folders = {str(BINLOG_FOLDER): "/srv/archive", str(datadir.parent): "/srv"}

    def look(self) -> None:
        self._seen.look()
        moment = self._seen.latest
        channels = tuple(_renamed(each, self._folders) for each in moment.channels)
        verdicts = {name: _renamed(verdict, self._folders) for name, verdict in moment.verdicts.items()}
        history = {each.channel: tuple(_hour(number, each)) for number, each in enumerate(moment.channels)}
        self.latest = replace(moment, channels=channels, verdicts=verdicts, history=history)


def _renamed(value: Any, folders: dict[str, str]) -> Any:
    """The same record with other folders in its texts."""
    if isinstance(value, str):
        for here, there in folders.items():
            value = value.replace(here, there)
    elif isinstance(value, tuple):
        return tuple(_renamed(each, folders) for each in value)
    elif is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{field.name: _renamed(getattr(value, field.name), folders) for field in fields(value)})
    return value


def _hour(number: int, each: Seen) -> Iterator[Point]:
    """Points up to now. What has stopped applies nothing since ten minutes ago, and its lag is not known since then."""
    is_fine, space = each.channel in FINE, each.status.Relay_Log_Space if each.status else 0
    for left in reversed(range(POINTS)):
        hump = math.exp(-(((left - 400 + 30 * number) / 12) ** 2)) if number % 3 == 1 else 0.0
        rate = 40.0 * (number + 1) * (1 + 0.3 * math.sin(left / 40 + number) + 0.05 * math.sin(left * 1.7) + 2 * hump)
        runs = is_fine or left > 600 / POINT_S
        yield Point(
            at=each.at - left * POINT_S,
            lag_s=round(20 * hump) if runs else None,
            rows_per_s=rate if runs else 0.0,
            relay_log_bytes=space,
        )


def take_pictures(folder: Path, chromedriver: str) -> None:
    """Write page.png and top.svg into the folder."""
    with TemporaryDirectory() as made, fifty_channels(Path(made), FINE) as datadir:
        watch = Pictured(datadir)
        with serve(HttpRequest(listen="127.0.0.1:0"), watch) as server, browser(chromedriver, Path(made)) as page:
            page.get(server.url)
            wait_until(lambda: len([each for each in texts(page, ".OK") if "lag 0 s" in each]) == len(FINE), 60)
            page.save_screenshot(str(folder / "page.png"))
        console = Console(file=io.StringIO(), record=True, width=COLUMNS, force_terminal=True, highlight=False)
        console.print(picture(watch.latest, "state", console, height=24))
        (folder / "top.svg").write_text(_FONTS.sub("", console.export_svg(title="rplctl top", unique_id="top")))


if __name__ == "__main__":
    found = shutil.which("chromedriver")
    if not found:
        sys.exit("chromedriver is not installed: apt-get install chromium-driver")
    take_pictures(Path(sys.argv[1] if len(sys.argv) > 1 else "man"), found)
