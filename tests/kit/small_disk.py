"""A file system of a fixed size for tests of a full disk: ext4 in a file, so that full means full.

A tmpfs counts its pages by core and frees some a moment later: a test cannot know that it is full.
"""

from __future__ import annotations

import contextlib
import errno
import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

BALLAST = "ballast"
_BLOCK = 4096


@contextlib.contextmanager
def small_disk(folder: Path, mebibytes: int) -> Iterator[Path]:
    """Mount an empty disk at `folder`; skip the test where mounting is not allowed."""
    with tempfile.TemporaryDirectory(prefix="rpl-disk-") as beside:
        image = Path(beside) / "image"
        with image.open("wb") as file:
            file.truncate(mebibytes << 20)
        make = ["mkfs.ext4", "-q", "-b", str(_BLOCK), "-m", "0", "-O", "^has_journal,^resize_inode", "-E", "nodiscard"]
        subprocess.run([*make, str(image)], check=True)
        # with delayed allocation ext4 reserves more blocks than a file needs, and frees them when it writes the file
        options = ["-o", "loop,nodelalloc"]
        mounted = subprocess.run(["mount", *options, image, folder], capture_output=True, text=True)
        if mounted.returncode:
            pytest.skip(f"a file system cannot be mounted here: {mounted.stderr.strip()}")
        try:
            (folder / "lost+found").rmdir()
            yield folder
        finally:
            subprocess.run(["umount", "-l", folder], check=True)


def fill(folder: Path) -> Path:
    """Take every free block of the disk; returns the largest of the files that hold them."""
    ballast = folder / BALLAST
    with ballast.open("wb") as file:
        step, size = 1 << 24, 0
        while step >= _BLOCK:
            try:
                os.posix_fallocate(file.fileno(), size, step)
                size += step
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise
                step //= 2
                file.truncate(size)  # a call that fails may have taken a part
                os.fsync(file.fileno())
    for number in range(os.statvfs(folder).f_bavail):  # a large file needs blocks of its own to grow by the last ones
        with (folder / f"{BALLAST}-{number}").open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, _BLOCK)
    assert os.statvfs(folder).f_bavail == 0
    return ballast


def release(folder: Path) -> None:
    """Give back what `fill` took."""
    for path in folder.glob(f"{BALLAST}*"):
        path.unlink()
