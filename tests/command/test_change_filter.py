"""CHANGE REPLICATION FILTER: lists replaced as a whole, per channel, with the applier stopped; shown as by MySQL."""

from __future__ import annotations

from pathlib import Path

import pytest

from rplctl.channel import Channel, hold_lock
from rplctl.command.change_filter import FILTERS, change_filter
from rplctl.command.change_master import change_master
from rplctl.command.channel.change_options import MasterChanges
from rplctl.command.show_status import show_status
from rplctl.config import Config, load_config
from rplctl.errors import ConfigError, UsageError


@pytest.fixture
def datadir(tmp_path: Path) -> Path:
    for name in ("", "east"):
        change_master(Config(tmp_path), name, MasterChanges(master_host="db1"))
    return tmp_path


def test_a_list_replaces_the_one_before_and_the_others_stay(datadir: Path) -> None:
    change_filter(load_config(datadir), "", {"replicate_do_db": ["a", "b"], "replicate_ignore_table": "a.t"})
    change_filter(load_config(datadir), "", {"replicate_do_db": "c,c , d"})
    found = load_config(datadir)
    assert (found.replicate_do_db, found.replicate_ignore_table) == ("c,d", "a.t")
    result = change_filter(load_config(datadir), "", {"replicate_do_db": [""]})
    assert load_config(datadir).replicate_do_db == ""
    assert result.filters == {name: "a.t" if name == "replicate_ignore_table" else "" for name in FILTERS}


def test_a_channel_has_filters_of_its_own(datadir: Path) -> None:
    change_filter(load_config(datadir), "", {"replicate_do_db": "a"})
    change_filter(load_config(datadir, "east"), "east", {"replicate_do_db": "b"})
    assert [load_config(datadir, name).replicate_do_db for name in ("", "east", "west")] == ["a", "b", ""]


def test_status_shows_them_in_the_servers_notation(datadir: Path) -> None:
    given = {
        "replicate_do_db": "a,b",
        "replicate_ignore_db": "c",
        "replicate_do_table": "a.t,b.t",
        "replicate_ignore_table": "a.u",
        "replicate_wild_do_table": r"a.x\_%",
        "replicate_wild_ignore_table": "%.tmp%",
        "replicate_rewrite_db": "from->to, x -> y",
    }
    change_filter(load_config(datadir), "", given)
    shown = show_status(load_config(datadir), "")
    assert (shown.Replicate_Do_DB, shown.Replicate_Ignore_DB) == ("a,b", "c")
    assert (shown.Replicate_Do_Table, shown.Replicate_Ignore_Table) == ("a.t,b.t", "a.u")
    assert (shown.Replicate_Wild_Do_Table, shown.Replicate_Wild_Ignore_Table) == (r"a.x\_%", "%.tmp%")
    assert shown.Replicate_Rewrite_DB == "(from,to),(x,y)"
    assert not show_status(load_config(datadir, "east"), "east").Replicate_Do_DB


def test_with_dry_run_or_a_wrong_rule_nothing_is_stored(datadir: Path) -> None:
    result = change_filter(load_config(datadir), "", {"replicate_do_db": "a"}, dry_run=True)
    assert result.filters["replicate_do_db"] == "a" and result.dry_run
    with pytest.raises(ConfigError) as caught:
        change_filter(load_config(datadir), "", {"replicate_do_db": "a", "replicate_wild_do_table": "nodot"})
    assert (caught.value.errno, caught.value.exit_code) == (3067, 78)
    with pytest.raises(UsageError):
        change_filter(load_config(datadir), "", {})
    assert load_config(datadir).replicate_do_db == ""


def test_while_the_applier_runs_they_stay(datadir: Path) -> None:
    with hold_lock(Channel("east", datadir), "applier"), pytest.raises(UsageError, match="CHANNEL 'east'") as caught:
        change_filter(load_config(datadir, "east"), "east", {"replicate_do_db": "a"})
    assert caught.value.errno == 3085 and caught.value.hint == "to stop it, run: rplctl stop --channel east --applier"
