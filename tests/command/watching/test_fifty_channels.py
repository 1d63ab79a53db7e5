"""Fifty channels, three stopped: `check`, `top`, the page and the metrics each show which and why at one look.

The alert rules and the expressions of dashboards that were made for mysqld_exporter work on what is served then.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote
from urllib.request import urlopen

import pytest
from prometheus_client.parser import text_string_to_metric_families as table_groups

from rplctl.command.metrics import alert_rules
from tests.command.test_serve import served
from tests.kit.browser import texts
from tests.kit.fifty_channels import FINE, STOPPED, fifty_channels
from tests.kit.private_server import free_port
from tests.kit.programs import required_program
from tests.kit.replica import run_here, wait_until

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

pytestmark = [pytest.mark.slow, pytest.mark.spark]
HERE = '{instance=~".+"}'
# What dashboards ask of mysqld_exporter about a replica: mysqld-mixin's records and alerts, Percona's panels
EXPRESSIONS = (
    f"min(min_over_time(mysql_slave_status_slave_io_running{HERE}[1m]))",
    f"min(min_over_time(mysql_slave_status_slave_sql_running{HERE}[1m]))",
    f"max(max_over_time(mysql_slave_status_last_errno{HERE}[1m]))",
    f"max_over_time(mysql_slave_status_seconds_behind_master{HERE}[1m])",
    f"max_over_time(mysql_slave_status_relay_log_space{HERE}[1m])",
    "mysql_slave_status_seconds_behind_master - mysql_slave_status_sql_delay",
    "mysql_slave_status_slave_io_running == 0 or mysql_slave_status_slave_sql_running == 0",
    "mysql_slave_status_read_master_log_pos - mysql_slave_status_exec_master_log_pos",
    "predict_linear(mysql_slave_status_seconds_behind_master[1m], 120)",
    "sum by (channel_name, master_host) (mysql_slave_status_slave_sql_running)",
    "mysql_slave_status_master_server_id",
    "mysql_heartbeat_now_timestamp_seconds - mysql_heartbeat_stored_timestamp_seconds",
    "rplctl_true_lag_seconds",
    "rplctl_clock_skew_seconds",
    "mysql_up",
    "rate(rplctl_row_changes_applied_total[1m])",
    "time() - rplctl_seen_timestamp_seconds",
)


@pytest.fixture(scope="module")
def datadir(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with fifty_channels(tmp_path_factory.mktemp("fifty")) as made:
        yield made


@pytest.mark.long("Fifty channels are rare; tests/command/watching/test_page.py has three.")
def test_check_names_the_three_first_and_counts_the_others(datadir: Path) -> None:
    done = run_here(["--datadir", str(datadir), "check"])
    first, *others = done.stdout.splitlines()
    text = first.partition(" | ")[0]
    assert done.returncode == 2 and text.startswith("RPLCTL CRITICAL - 'billing' ")
    assert all(f"'{name}' " in text for name in STOPPED) and not any(name in text for name in FINE)
    assert "47 of 50 channels OK, at most 0 s behind" in text and len(text) < 1000
    assert {re.split(r"['\s]+", line)[1] for line in others} == set(STOPPED)
    assert all(any(line.startswith(f"channel '{name}' CRITICAL") for line in others) for name in STOPPED)


@pytest.mark.long("tests/cli/test_top.py shows the page of three channels.")
def test_top_has_the_three_on_top_of_eighty_columns(datadir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    shown = run_here(["--datadir", str(datadir), "top"]).stdout.splitlines()
    assert "50 channels: 47 OK, 3 CRITICAL" in shown[0] and max(map(len, shown)) <= 80
    assert [shown[line].split()[0] for line in (2, 4, 6)] == sorted(STOPPED)
    assert "already exists" in shown[3] and "was killed" in shown[5] and "--master-binlog-dir" in shown[7]
    assert shown[8].startswith("shard")


@pytest.mark.long("tests/command/watching/test_page.py opens the page in make test.")
def test_the_page_begins_with_the_three_and_their_reasons(datadir: Path, page: Chrome) -> None:
    with served(datadir, *STOPPED, *FINE) as server:
        page.get(server.url)
        wait_until(lambda: len(texts(page, ".channel")) == 50 and texts(page, "polyline"), 30)
    assert texts(page, "#sum") == ["50 channels: 3 CRITICAL, 47 OK"]
    billing, orders, west, first = texts(page, ".channel")[:4]
    assert billing.startswith("billing") and "applier_error" in billing
    assert orders.startswith("orders") and "applier_killed" in orders
    assert west.startswith("west") and "No such file" in west and first.startswith("shard00")


@pytest.mark.long("Fifty channels are rare; tests/command/watching/test_page.py has three.")
def test_the_alert_rules_fire_for_the_three_and_no_other(datadir: Path, tmp_path: Path) -> None:
    promtool = required_program("promtool", "prometheus")
    (tmp_path / "rplctl.yml").write_text(alert_rules())
    text = run_here(["--datadir", str(datadir), "metrics"]).stdout
    series = [
        {
            "series": f"{s.name}{{{','.join(f'{k}={json.dumps(v)}' for k, v in labels.items())}}}",
            "values": f"{s.value}x30",
        }
        for family in table_groups(text)
        for s in family.samples
        for labels in [{**s.labels, "instance": "here", "job": "rplctl"}]
        if not s.name.endswith("timestamp_seconds")
    ]
    others = {  # what the three do not show: each of one channel that is fine otherwise
        "RplctlLagUnknown": ('mysql_slave_status_slave_sql_running{channel_name="x"}', "1x30"),
        "MySQLReplicationLag": ('mysql_slave_status_seconds_behind_master{channel_name="x"}', "40+60x30"),
        "MySQLHeartbeatLag": ('mysql_heartbeat_now_timestamp_seconds{server_id="1"}', "100+60x30"),
        "RplctlVerifyDiffers": ('rplctl_verify_differences{channel_name="x"}', "3x30"),
        "RplctlPurgeSoon": ('rplctl_source_purge_in_seconds{channel_name="x"}', "7200x30"),
        "RplctlRelayDiskFull": ('rplctl_relay_disk_full_in_seconds{channel_name="x"}', "600x30"),
        "RplctlClockSkew": ('rplctl_clock_skew_seconds{channel_name="x"}', "-4x30"),
        "RplctlNotSeen": ("rplctl_seen_timestamp_seconds", "0x30"),
        "RplctlAbsent": ("other", "1x30"),
    }
    beside = {
        "MySQLReplicationLag": ('mysql_slave_status_sql_delay{channel_name="x"}', "0x30"),
        "MySQLHeartbeatLag": ('mysql_heartbeat_stored_timestamp_seconds{server_id="1"}', "1x30"),
    }
    here = ('rplctl_info{version="1"}', "1x30")
    tests = [_case("of the fifty", series, {"MySQLReplicationNotRunning": 3, "RplctlThreadFailed": 2})]
    for alert, (name, values) in others.items():
        given = [(name, values), *filter(None, [beside.get(alert), here if alert != "RplctlAbsent" else None])]
        tests.append(_case(alert, [{"series": n, "values": v} for n, v in given], {alert: 1}))
    (tmp_path / "test.yml").write_text(json.dumps({"rule_files": ["rplctl.yml"], "tests": tests}))  # JSON is YAML
    for words in (["check", "rules", "rplctl.yml"], ["test", "rules", "test.yml"]):
        done = subprocess.run([promtool, *words], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


def _case(name: str, series: list[dict[str, str]], firing: dict[str, int]) -> dict[str, object]:
    expected = [{"labels": f'{{alertname="{alert}"}}', "value": count} for alert, count in firing.items()]
    expression = 'count by (alertname) (ALERTS{alertstate="firing"})'
    asked = {"expr": expression, "eval_time": "20m", "exp_samples": expected}
    return {"name": name, "interval": "1m", "input_series": series, "promql_expr_test": [asked]}


@pytest.mark.long("A Prometheus that watches fifty channels takes a minute to fire.")
def test_prometheus_has_the_dashboards_values_and_fires_the_alerts(datadir: Path, tmp_path: Path) -> None:
    """The rules as they are printed, but each `for` lasts a second: promtool has tested how long they wait."""
    rules = re.sub(r"(?m)^( +for: ).*$", r"\g<1>1s", alert_rules())
    with served(datadir, *STOPPED, *FINE) as server, prometheus(server.url, tmp_path, rules) as asked:
        wait_until(lambda: asked("sum_over_time(up[1m]) > 1"), 60, 0.1)  # a rate needs two scrapes
        wait_until(lambda: all(map(asked, EXPRESSIONS)), 60, 0.1)
        down = asked("mysql_slave_status_slave_io_running == 0 or mysql_slave_status_slave_sql_running == 0")
        assert {row["metric"]["channel_name"] for row in down} == set(STOPPED)
        expected = {("MySQLReplicationNotRunning", name) for name in STOPPED}
        expected |= {("RplctlThreadFailed", "billing"), ("RplctlThreadFailed", "orders")}
        wait_until(lambda: _firing(asked) == expected, 60, 0.1)


def _firing(asked: Callable[[str], list[dict[str, Any]]]) -> set[tuple[str, str]]:
    """(alert, channel)."""
    rows = [row["metric"] for row in asked('ALERTS{alertstate="firing"}')]
    return {(row["alertname"], row.get("channel_name", "")) for row in rows}


@contextmanager
def prometheus(url: str, folder: Path, rules: str) -> Iterator[Callable[[str], list[dict[str, Any]]]]:
    """Start a server that scrapes the URL and evaluates the rules; yields a function that queries it."""
    program = required_program("prometheus")
    (folder / "rplctl.yml").write_text(rules)
    target = url.removeprefix("http://").rstrip("/")
    config = {  # JSON is YAML
        "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "500ms"},
        "scrape_configs": [{"job_name": "rplctl", "static_configs": [{"targets": [target]}]}],
        "rule_files": ["rplctl.yml"],
    }
    (folder / "prometheus.yml").write_text(json.dumps(config))
    address = f"127.0.0.1:{free_port()}"
    command = [program, f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data",
               f"--web.listen-address={address}"]  # fmt: skip

    def asked(expression: str) -> list[dict[str, Any]]:
        try:
            with urlopen(f"http://{address}/api/v1/query?query={quote(expression)}", timeout=10) as answer:
                found: list[dict[str, Any]] = json.load(answer)["data"]["result"]
                return found
        except OSError:  # it is not up yet
            return []

    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            yield asked
        finally:
            process.kill()
