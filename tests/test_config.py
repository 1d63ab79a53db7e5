"""Options: types, ranges, precedence, what a wrong file or variable says (man rplctl.toml)."""

from __future__ import annotations

import tomllib
from dataclasses import asdict
from pathlib import Path

import pytest

from rplctl import config
from rplctl.config import OPTIONS, Config, default_datadir, load_config
from rplctl.errors import ConfigError
from rplctl.option_file import forget_options, read_document, section_of, store_options, to_bytes
from rplctl.secret import protect
from rplctl.target_url import has_password, url_with_password, url_without_password


@pytest.fixture(autouse=True)
def no_other_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(config, "SYSTEM_FILE", tmp_path / "etc.toml")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    for o in OPTIONS.values():
        monkeypatch.delenv(o.environment, raising=False)
    for name in ("RPLCTL_CONFIG", "RPLCTL_DATADIR"):
        monkeypatch.delenv(name, raising=False)


def write(path: Path, text: str, mode: int = 0o600) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)
    return path


def test_without_any_source_the_defaults_hold(tmp_path: Path) -> None:
    assert load_config(tmp_path) == Config(tmp_path)
    assert load_config(tmp_path).target_url == f"sqlite:///{tmp_path}/target.db"


def test_each_source_wins_over_the_ones_behind_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    write(tmp_path / "etc.toml", "server_id = 1")
    seen.append(load_config(tmp_path).server_id)
    write(tmp_path / "home/rplctl/rplctl.toml", "server_id = 2")
    seen.append(load_config(tmp_path).server_id)
    write(tmp_path / "rplctl.toml", "server_id = 3")
    seen.append(load_config(tmp_path).server_id)
    named = write(tmp_path / "named.toml", "server_id = 4")
    seen.append(load_config(tmp_path, config_file=named).server_id)
    monkeypatch.setenv("RPLCTL_SERVER_ID", "5")
    seen.append(load_config(tmp_path, config_file=named).server_id)
    seen.append(load_config(tmp_path, overrides={"server_id": 6}, config_file=named).server_id)
    assert seen == [1, 2, 3, 4, 5, 6]


def test_the_config_variable_names_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RPLCTL_CONFIG", str(write(tmp_path / "named.toml", "server_id = 4")))
    assert load_config(tmp_path).server_id == 4


def test_a_channels_section_wins_over_the_top_for_that_channel_only(tmp_path: Path) -> None:
    write(tmp_path / "rplctl.toml", 'server_id = 1\n[channel.East]\nserver_id = 2\n[channel.""]\nserver_id = 3\n')
    assert load_config(tmp_path, "east").server_id == 2
    assert load_config(tmp_path, "west").server_id == 1
    assert load_config(tmp_path, "").server_id == 3


WRONG = [
    ("server_idd = 1", "server_idd", "did you mean 'server_id'"),
    ("sync-relay-log = 1", "sync-relay-log", "did you mean 'sync_relay_log'"),
    ("server_id = -1", "server_id", "0..4294967295"),
    ("server_id = 4294967296", "server_id", "0..4294967295"),
    ('server_id = "seven"', "server_id", "0..4294967295"),
    ("server_id = 1.5", "server_id", "0..4294967295"),
    ("server_id = true", "server_id", "0..4294967295"),
    ("max_relay_log_size = 100", "max_relay_log_size", "4096.."),
    ("replica_net_timeout = 0", "replica_net_timeout", "1.."),
    ("max_batch_bytes = 1", "max_batch_bytes", "65536.."),
    ("relay_log_purge = 2", "relay_log_purge", "true|false"),
    ('relay_log_purge = "maybe"', "relay_log_purge", "true|false"),
    ('master_info_repository = "DISK"', "master_info_repository", "FILE|TABLE"),
    ("master_info_repository = 1", "master_info_repository", "FILE|TABLE"),
    ('on_unsupported_ddl = "ignore"', "on_unsupported_ddl", "skip_objects|skip|stop|stop_all"),
    ('spark_master = "a\\nb"', "spark_master", "text"),
    ("spark_master = []", "spark_master", "text"),
    ("channel = 1", "channel", "sections"),
    ("[channel]\neast = 1", "channel", "sections"),
    ("[channel.east]\nserver_idd = 1", "channel.east", "did you mean"),
    ("server_id = ", "Invalid value", ""),
    ("password = 'x'", "unknown option 'password'", ""),
    ("replica_parallel_workers = 17", "replica_parallel_workers", "16"),
    ("[channel.east]\nslave_parallel_threads = 4", "slave_parallel_threads", "'replica_parallel_workers'"),
]


@pytest.mark.parametrize(("text", "key", "why"), WRONG, ids=[w[0][:30] for w in WRONG])
def test_a_wrong_file_is_named_with_its_key(tmp_path: Path, text: str, key: str, why: str) -> None:
    path = write(tmp_path / "rplctl.toml", text)
    with pytest.raises(ConfigError) as caught:
        load_config(tmp_path, "west")
    assert caught.value.exit_code == 78
    assert str(path) in caught.value.message
    assert key in caught.value.message
    assert why in caught.value.message


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("max_relay_log_size", "64M", 64 << 20),
        ("max_relay_log_size", "1g", 1 << 30),
        ("relay_log_purge", "OFF", False),
        ("relay_log_purge", "1", True),
        ("master_info_repository", "table", "TABLE"),
        ("spark_master", "local[2]", "local[2]"),
        ("spark_master", "$HOME/${X}", "$HOME/${X}"),
    ],
)
def test_texts_are_read_as_mysqld_reads_them_and_never_expanded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str, value: object
) -> None:
    monkeypatch.setenv(OPTIONS[name].environment, text)
    assert getattr(load_config(tmp_path), name) == value


@pytest.mark.parametrize("text", ["", "M", "-1", "1e3", "0x10", "٣", "99999999999999999999"])
def test_a_wrong_number_in_the_environment_names_the_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setenv("RPLCTL_SERVER_ID", text)
    with pytest.raises(ConfigError, match="RPLCTL_SERVER_ID"):
        load_config(tmp_path)


@pytest.mark.parametrize(
    ("name", "value", "kept"),
    [
        ("replicate_do_db", '"a, b,a"', "a,b"),
        ("replicate_do_db", '["a", "b"]', "a,b"),
        ("replicate_do_db", "[]", ""),
        ("replicate_do_table", '"a.t"', "a.t"),
        ("replicate_wild_do_table", r"""'a\_.t\%,%.%'""", r"a\_.t\%,%.%"),
        ("replicate_rewrite_db", '["a->b", "c->d"]', "a->b,c->d"),
    ],
)
def test_a_list_is_a_text_with_commas_or_an_array(tmp_path: Path, name: str, value: str, kept: str) -> None:
    write(tmp_path / "rplctl.toml", f"{name} = {value}")
    assert getattr(load_config(tmp_path), name) == kept


@pytest.mark.parametrize(
    ("name", "value", "errno", "words"),
    [
        ("replicate_wild_do_table", "a.t,nodot", 3067, "required format 'db_pattern.table_pattern'"),
        ("replicate_wild_ignore_table", "%", 3067, "Supplied filter list"),
        ("replicate_do_table", "nodot", 0, "expected db.table,..."),
        ("replicate_ignore_table", "a.", 0, "expected db.table,..."),
        ("replicate_rewrite_db", "a", 0, "expected from->to,..."),
        ("replicate_rewrite_db", "->b", 0, "expected from->to,..."),
        ("replicate_rewrite_db", "a->b,c->", 0, "expected from->to,..."),
        ("replicate_do_db", "a\nb", 0, "expected db,..."),
    ],
)
def test_a_wrong_rule_names_the_option(tmp_path: Path, name: str, value: str, errno: int, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_config(tmp_path, overrides={name: value})
    assert words in caught.value.message and name in caught.value.message
    assert (caught.value.errno, caught.value.exit_code) == (errno, 78)


def test_variables_of_other_programs_are_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RPLCTL_PORT_3306_TCP", "tcp://10.0.0.1:3306")  # as Kubernetes sets for a service of that name
    load_config(tmp_path)


def test_stored_options_come_back_and_others_stay(tmp_path: Path) -> None:
    store_options(tmp_path, "", {"server_id": 7, "relay_log_purge": False})
    path = store_options(tmp_path, "ch A", {"spark_master": 'local["x\\y"]'})
    assert path.stat().st_mode & 0o777 == 0o600
    assert load_config(tmp_path).server_id == 7
    assert load_config(tmp_path, "CH a").spark_master == 'local["x\\y"]'
    assert not load_config(tmp_path, "ch A").relay_log_purge


def test_nothing_is_stored_when_one_value_is_wrong(tmp_path: Path) -> None:
    with pytest.raises(ConfigError):
        store_options(tmp_path, "", {"server_id": 7, "sync_relay_log": -1})
    assert not (tmp_path / "rplctl.toml").exists()


@pytest.mark.parametrize("text", ["", "plain", 'q"uote', "back\\slash", "ünïcode", "tab\tnewline\n", "\x7f\x00"])
def test_toml_texts_round_trip(tmp_path: Path, text: str) -> None:
    document = read_document(tmp_path / "none")
    section_of(document, text)["b"] = text
    document["a"] = text
    assert tomllib.loads(to_bytes(document).decode()) == {"a": text, "channel": {text: {"b": text}}}


def test_comments_and_order_of_a_file_stay(tmp_path: Path) -> None:
    text = '# ours\nserver_id = 7 # of the rack\n\n# the shop\n[channel.shop]\nreplicate_do_db = "shop" # only\n'
    write(tmp_path / "rplctl.toml", text)
    store_options(tmp_path, "shop", {"replicate_do_db": "web"}, only_this_channel=True)
    store_options(tmp_path, "", {"sync_relay_log": 5})
    forget_options(tmp_path, "shop", ["replicate_ignore_db"])
    kept = (tmp_path / "rplctl.toml").read_text()
    assert all(comment in kept for comment in ("# ours", "# of the rack", "# the shop", "# only"))
    assert load_config(tmp_path).sync_relay_log == 5 and load_config(tmp_path, "shop").replicate_do_db == "web"
    forget_options(tmp_path, "shop", ["replicate_do_db"])
    assert load_config(tmp_path, "shop").replicate_do_db == ""


def test_a_password_in_the_environments_target_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RPLCTL_TARGET", "mysql://u:CANARY@h/d")
    with pytest.raises(ConfigError) as caught:
        load_config(tmp_path)
    assert "CANARY" not in f"{caught.value.message}{caught.value.hint}"


def test_a_file_with_a_password_must_be_private(tmp_path: Path) -> None:
    path = write(tmp_path / "rplctl.toml", 'target = "mysql://u:CANARY@h/d"', 0o644)
    with pytest.raises(ConfigError) as caught:
        load_config(tmp_path)
    assert "CANARY" not in f"{caught.value.message}{caught.value.hint}"
    path.chmod(0o600)
    assert "CANARY" not in repr(load_config(tmp_path))


def test_the_target_url_gets_the_protected_password(tmp_path: Path) -> None:
    stored = protect("p@ss:/w%rd", tmp_path)
    store_options(tmp_path, "", {"target": "mysql+pymysql://app@db/shop", "target_password": stored})
    loaded = load_config(tmp_path)
    assert loaded.target_url == "mysql+pymysql://app:p%40ss%3A%2Fw%25rd@db/shop"
    assert "p@ss" not in (tmp_path / "rplctl.toml").read_text() + repr(loaded)


@pytest.mark.parametrize(
    ("url", "has", "shown"),
    [
        ("sqlite:////srv/a:b@c.db", False, "sqlite:////srv/a:b@c.db"),
        ("mysql://u@h:3306/d", False, "mysql://u@h:3306/d"),
        ("mysql://u:p@h/d", True, "mysql://u:***@h/d"),
        ("mysql://u:p@ss@h/d", True, "mysql://u:***@h/d"),
        ("postgresql://h/d?user=u&password=p", True, "postgresql://h/d?user=u&password=***"),
    ],
)
def test_passwords_in_urls_are_seen_and_hidden(url: str, has: bool, shown: str) -> None:
    assert (has_password(url), url_without_password(url)) == (has, shown)


def test_a_password_needs_a_user() -> None:
    with pytest.raises(ConfigError, match="names no user"):
        url_with_password("mysql://h/d", "x")


def test_the_instance_folder_comes_from_variable_file_or_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    assert default_datadir() == tmp_path / "state/rplctl"
    write(tmp_path / "home/rplctl/rplctl.toml", f'datadir = "{tmp_path}/mine"')
    assert default_datadir() == tmp_path / "mine"
    assert load_config(tmp_path).server_id == 0  # `datadir` is no unknown option
    monkeypatch.setenv("RPLCTL_DATADIR", "/elsewhere")
    assert default_datadir() == Path("/elsewhere")


def test_root_keeps_its_instance_in_var_lib(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0)
    assert default_datadir() == Path("/var/lib/rplctl")


def test_a_relative_instance_folder_in_a_file_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "home/rplctl/rplctl.toml", 'datadir = "here"')
    with pytest.raises(ConfigError, match="absolute"):
        default_datadir()


def test_every_option_is_described_and_its_default_is_legal() -> None:
    for o in OPTIONS.values():
        assert o.help and not o.help.endswith(".")
        assert config.check_value(o.name, o.default, "test") == o.default
    assert set(OPTIONS) | {"datadir", "config_file"} == set(asdict(Config(Path("/x"))))
