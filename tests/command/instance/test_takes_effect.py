"""`init` on an instance that runs says when each option that it changes takes effect."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

from rplctl.channel import Channel, hold_lock
from rplctl.command.change_master import change_master
from rplctl.command.channel.change_options import MasterChanges
from rplctl.command.init import init
from rplctl.command.instance.takes_effect import AT_ONCE, OF_BOTH, OF_RECEIVER
from rplctl.config import OPTIONS, Value, load_config

AGAIN = "rplctl stop --channel East --{0} && rplctl start --channel East --{0}"


def test_each_changed_option_is_named_with_the_threads_that_must_start_again(tmp_path: Path) -> None:
    init(tmp_path, {"max_batch_bytes": 1 << 20})
    change_master(load_config(tmp_path), "East", MasterChanges(master_host="h"))
    with ExitStack() as held:
        held.enter_context(hold_lock(Channel("east", tmp_path), "receiver"))
        held.enter_context(hold_lock(Channel("east", tmp_path), "applier"))
        given: dict[str, Value] = {
            "max_batch_bytes": 1 << 20,
            "server_id": 7,
            "source_poll": 9,
            "run_mode": "cron",
            "replicate_do_db": "d",
        }
        notes = [note.text for note in init(tmp_path, given).notes if "effect" in note.text]
        assert notes == [
            f"server_id takes effect when the receiver of channel 'East' starts again: {AGAIN.format('receiver')}",
            f"server_id takes effect when the applier of channel 'East' starts again: {AGAIN.format('applier')}",
            f"source_poll takes effect when the receiver of channel 'East' starts again: {AGAIN.format('receiver')}",
            "run_mode takes effect at once",
            f"replicate_do_db takes effect when the applier of channel 'East' starts again: {AGAIN.format('applier')}",
        ]
    assert not [note for note in init(tmp_path, {"server_id": 8}).notes if "effect" in note.text]


def test_the_table_names_options_that_exist_and_each_once() -> None:
    named = [*AT_ONCE, *OF_RECEIVER, *OF_BOTH]
    assert len({*named}) == len(named) and {*named} < {*OPTIONS}
