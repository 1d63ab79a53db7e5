"""What is installed is whole: a wheel holds code, migrations, man pages, demo data and types, and starts by itself."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

import rplctl

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from the working copy by the build backend itself: no network, no isolated environment."""
    folder = tmp_path_factory.mktemp("wheel")
    build = "import sys; from hatchling.build import build_wheel; print(build_wheel(sys.argv[1]))"
    subprocess.run([sys.executable, "-c", build, str(folder)], cwd=ROOT, check=True, capture_output=True)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def names(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def installed(folder: str, pattern: str, prefix: str) -> set[str]:
    return {f"{prefix}{path.relative_to(ROOT / folder)}" for path in (ROOT / folder).rglob(pattern)}


def test_the_wheel_holds_every_module_and_is_typed(names: set[str]) -> None:
    beside = "pyspark_binlog.py"  # where Spark looks for it
    assert {
        name.replace(f"rplctl/data_source/{beside}", beside) for name in installed("rplctl", "*.py", "rplctl/")
    } <= names
    assert "rplctl/py.typed" in names


def test_the_wheel_holds_the_migrations(names: set[str]) -> None:
    migrations = installed("migrations", "*.py", "rplctl/_migrations/")
    assert migrations, "no migrations"
    assert migrations <= names


def test_the_wheel_holds_every_man_page_in_its_section(names: set[str]) -> None:
    pages = [path.name for path in (ROOT / "man").glob("*.[0-9]")]
    assert "rplctl.1" in pages
    data = f"rplctl-{rplctl.__version__}.data/data/share/man"
    assert {f"{data}/man{page[-1]}/{page}" for page in pages} <= names


def test_the_wheel_holds_the_demo(names: set[str]) -> None:
    assert installed("rplctl/demo/data", "*", "rplctl/demo/data/") <= names


def test_the_wheel_holds_nothing_else_of_the_working_copy(names: set[str]) -> None:
    assert {name.split("/")[0] for name in names} == {
        "rplctl",
        "pyspark_binlog.py",
        f"rplctl-{rplctl.__version__}.data",
        f"rplctl-{rplctl.__version__}.dist-info",
    }
    assert not [name for name in names if "__pycache__" in name or name.endswith((".nbi", ".nbc"))]


def test_the_installed_wheel_runs_from_anywhere(wheel: Path, tmp_path: Path) -> None:
    """In an environment of its own that borrows our libraries: their download is not what is tested."""
    home = tmp_path / "venv"
    venv.create(home, with_pip=False, symlinks=True)
    libraries = next(Path(path) for path in sys.path if path.endswith("site-packages"))
    pip = [
        sys.executable,
        "-m",
        "pip",
        f"--python={home / 'bin/python'}",
        "install",
        "--quiet",
        "--no-deps",
        str(wheel),
    ]
    subprocess.run(pip, check=True, cwd=tmp_path)
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(libraries), "HOME": str(tmp_path)}
    where = "import rplctl; print(rplctl.__file__)"
    found = subprocess.run(
        [home / "bin/python", "-c", where], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    assert found.stdout.startswith(str(home))
    version = subprocess.run(
        [home / "bin/rplctl", "--version"], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    assert rplctl.__version__ in version.stdout
    assert (home / "share/man/man1/rplctl.1").exists()
