"""The tool that takes the README's pictures works: tests/tools/take_pictures.py."""

from __future__ import annotations

import re
import struct
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.house.code import ROOT
from tests.kit.programs import required_program

README = (ROOT / "README.md").read_text()


@pytest.mark.long("tests/command/watching/test_page.py opens the same page in a browser.")
@pytest.mark.slow
@pytest.mark.spark
def test_the_tool_takes_each_picture_of_the_readme(tmp_path: Path) -> None:
    required_program("chromedriver", "chromium-driver")
    committed = {path: path.read_bytes() for path in (ROOT / "man").iterdir()}
    command = [sys.executable, "-m", "tests.tools.take_pictures", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    shown = {Path(name).name for name in re.findall(r"!\[[^]]*\]\((\S+)\)", README)}
    assert {path.name for path in tmp_path.iterdir()} == shown == {"page.png", "top.svg"}
    assert {path: path.read_bytes() for path in (ROOT / "man").iterdir()} == committed

    page = (tmp_path / "page.png").read_bytes()
    assert struct.unpack_from(">8s4x4sII", page) == (b"\x89PNG\r\n\x1a\n", b"IHDR", 1000, 900)
    assert 100_000 < len(page) < 400_000  # an empty page takes 5 kB
    words = " ".join(ElementTree.parse(tmp_path / "top.svg").getroot().itertext()).replace("\xa0", " ")
    for word in ("8 channels: 5 OK, 3 CRITICAL", "billing", "was killed", "shop_eu"):
        assert word in words
    assert "http" not in re.sub(r'xmlns="\S+"|<!--.*?-->', "", (tmp_path / "top.svg").read_text())
