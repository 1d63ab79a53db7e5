"""A channel that applies to a target of its own is met by every verb, wherever its records are.

The family: (FILE | TABLE) × (both targets there | the channel's own away | the default one away) × every verb that
goes over all channels. Each tells of both channels, and of a target that cannot be asked; none leaves a channel out.
"""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from rplctl.channel import Channel
from rplctl.command.channel.context import engine_of
from rplctl.config import load_config
from rplctl.repository import list_channels, open_master_info
from tests.cli.program import Program

pytestmark = pytest.mark.slow

AWAY = "mysql+pymysql://app@127.0.0.1:1/"
ROOT = Path(__file__).resolve().parents[2]
RELAY = b"\xfebin of which nobody asks here"


def write_options(program: Program, kind: str, *, default: str = "", own: str = "") -> None:
    program.datadir.mkdir(mode=0o700, exist_ok=True)
    path = program.datadir / "rplctl.toml"
    path.write_text(
        f'target = "{default}"\nmaster_info_repository = "{kind}"\nrelay_log_info_repository = "{kind}"\n'
        f'[channel.archive]\ntarget = "{own or f"sqlite:///{program.datadir.parent}/archive.db"}"\n'
    )
    path.chmod(0o600)


def make(program: Program, *channels: str) -> None:
    for name in channels:
        done = program(
            "change-master", "--channel", name, "--master-host", "127.0.0.1", "--master-port", "1",
            "--master-log-file", "bin.000007", "--master-log-pos", "120",
        )  # fmt: skip
        assert done.code == 0, done.err


@pytest.fixture(params=["FILE", "TABLE"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def two(program: Program, kind: str) -> Program:
    """The default channel in the default target, `archive` in its own."""
    write_options(program, kind)
    make(program, "", "archive")
    return program


def listed(program: Program, *line: str) -> list[str]:
    return [row["Channel_Name"] for row in json.loads(program(*line, "--json").out)]


@pytest.mark.long("Positions in files stay.", keeps=r"FILE")
def test_every_verb_over_all_channels_meets_the_one_with_its_own_target(two: Program) -> None:
    assert listed(two, "show-channels") == ["", "archive"]
    assert listed(two, "show-status") == ["", "archive"]
    assert [v["channel"] for v in json.loads(two("check", "--json").out)] == ["", "archive"]
    assert {"channel ''", "channel 'archive'"} <= {f["Check"] for f in json.loads(two("doctor", "--json").out)}
    row = json.loads(two("log-status", "--json").out)[0]
    assert [c["channel_name"] for c in row["CHANNELS"]["channels"]] == ["", "archive"]
    for line in ("stop", "recover", "switch-repo --to table", "switch-repo --to file", "reset --yes"):
        done = two(*line.split())
        assert done.code == 0 and "archive" in done.out, (line, done)
    for line in ("wait --state stopped", "skip 0", "show-relaylog-events", "change-master --master-port 2"):
        assert "ERROR 3079" in two(*line.split()).err, line


def test_a_new_channel_gets_a_master_id_that_no_channel_of_any_target_has(two: Program) -> None:
    make(two, "third")
    ids = {}
    for name in ("", "archive", "third"):
        config = load_config(two.datadir, name)
        ids[name] = open_master_info(config, Channel(name, two.datadir), engine_of(config)).read().master_id
    assert len(set(ids.values())) == 3, ids


@pytest.mark.long("Positions in files stay.", keeps=r"FILE")
@pytest.mark.parametrize("absent", ["own", "default"])
def test_a_target_that_is_away_is_told_and_hides_no_channel(two: Program, kind: str, absent: str) -> None:
    write_options(two, kind, **{absent: AWAY})
    gone, there = ("archive", "") if absent == "own" else ("", "archive")
    for name in (there, gone):
        (two.datadir / "run" / (name or "@") / "receiver.status.json").write_text("{}")
    assert sorted(listed(two, "show-channels")) == ["", "archive"]
    done = two("show-status", "--json")
    wanted = ["", "archive"] if kind == "FILE" else [there]
    assert [row["Channel_Name"] for row in json.loads(done.out)] == wanted
    assert ("127.0.0.1" in done.err and f'"Channel_Name": "{gone}"' in done.err and done.code == 7) is (kind == "TABLE")
    done = two("check")
    assert done.code == 2 and f"'{gone}'" in done.out and "target_away" in done.out
    done = two("stop")
    assert f"channel '{there}': nothing stopped" in done.out
    failing = [f["Check"] for f in json.loads(two("doctor", "--json").out) if f["Result"] == "FAIL"]
    assert "target" in failing
    for line in ("log-status", f"backup {two.datadir.parent / 'copy'}"):
        done = two(*line.split())
        assert done.code != 0 and "ERROR 3722" in done.err and "127.0.0.1" in done.err, (line, done)
    assert not (two.datadir.parent / "copy/backup.json").exists()


def test_a_row_that_lies_in_another_target_than_the_channels_own_is_no_channel(program: Program) -> None:
    """Of an instance that used the target before, or of the channel before it moved."""
    write_options(program, "TABLE", own=f"sqlite:///{program.datadir}/target.db")
    make(program, "archive")
    write_options(program, "TABLE")
    make(program, "")
    assert list_channels(load_config(program.datadir), engine_of) == [""]


@pytest.mark.long("Positions in files stay.", keeps=r"FILE")
def test_a_backup_holds_both_targets_and_the_copy_keeps_them_apart(two: Program, kind: str) -> None:
    for path in (two.datadir / "target.db", two.datadir.parent / "archive.db"):
        with closing(sqlite3.connect(path)) as target:
            target.execute("CREATE TABLE of (name TEXT)")
            target.execute("INSERT INTO of VALUES (?)", (path.name,))
            target.commit()
    folder, again = two.datadir.parent / "copy", two.datadir.parent / "again"
    done = two("backup", str(folder))
    assert done.code == 0 and {"target.db", "target-archive.db"} <= {path.name for path in folder.iterdir()}, done
    assert "Note" not in done.err
    restored = Program(again, two.capture)
    assert restored("restore", str(folder)).code == 0
    assert listed(restored, "show-channels") == ["", "archive"]
    places = {name: load_config(again, name).target_url for name in ("", "archive")}
    assert places == {"": f"sqlite:///{again}/target.db", "archive": f"sqlite:///{again}/target-archive.db"}
    for name, origin in (("", "target.db"), ("archive", "archive.db")):
        with closing(sqlite3.connect(places[name].removeprefix("sqlite:///"))) as target:
            assert target.execute("SELECT name FROM of").fetchall() == [(origin,)]
    assert load_config(two.datadir, "archive").target_url.endswith("/archive.db"), "the original is as it was"


def test_the_password_of_one_target_is_not_sent_to_another(tmp_path: Path) -> None:
    head = 'target = "mysql://app@db2:3306/"\ntarget_password = "env:ONE"\n[channel.a]\n'
    for own, wanted in (
        ("mysql://app@db3:3306/", ""),
        ("mysql://root@db2:3306/", ""),
        ("sqlite:////srv/a.db", ""),
        ("mysql://app@db2:3306/other", "env:ONE"),
    ):
        (tmp_path / "rplctl.toml").write_text(f'{head}target = "{own}"\n')
        assert load_config(tmp_path, "a").target_password == wanted, own
        (tmp_path / "rplctl.toml").write_text(f'{head}target = "{own}"\ntarget_password = "env:TWO"\n')
        assert load_config(tmp_path, "a").target_password == "env:TWO"
        assert load_config(tmp_path, "b").target_password == "env:ONE"


def test_the_example_of_the_man_page_is_an_instance_with_two_channels(program: Program, tmp_path: Path) -> None:
    page = (ROOT / "man/rplctl.toml.5").read_text()
    example = page.split(".SH EXAMPLES\n.EX\n")[1].split(".EE")[0].replace("\\-", "-").replace("\\(dq", '"')
    assert "[channel.archive]" in example and "sqlite:////srv/archive.db" in example
    text = (
        example.replace("/srv/", f"{tmp_path}/").replace("/etc/rplctl", str(tmp_path)).replace("@db2", "@127.0.0.1:1")
    )
    (tmp_path / "target.password").write_text("C4nary\n")
    (tmp_path / "target.password").chmod(0o600)
    program.datadir.mkdir(mode=0o700)
    (program.datadir / "rplctl.toml").write_text(text)
    make(program, "", "archive")
    assert program("switch-repo", "--to", "table", "--channel", "archive").code == 0
    assert listed(program, "show-channels") == ["", "archive"]
    assert listed(program, "show-status") == ["", "archive"]
    assert json.loads(program("show-status", "--channel", "archive", "--json").out)[0]["Master_Info_File"] == (
        "main.slave_master_info"
    )
    done = program("stop", "--all")
    assert done.code == 0 and "channel '': nothing stopped" in done.out and "'archive': nothing stopped" in done.out
