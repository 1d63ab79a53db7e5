"""What SHOW GRANTS says of an account, as both vendors write it, and the GRANTs that it lacks."""

from __future__ import annotations

import pytest

from rplctl.source.rights import rights_of


@pytest.mark.parametrize(
    ("lines", "everything", "databases", "replicates"),
    [
        (["GRANT ALL PRIVILEGES ON *.* TO `r`@`%` IDENTIFIED BY PASSWORD '*AB' WITH GRANT OPTION"], True, "a b", True),
        (["GRANT SELECT, REPLICATION SLAVE, BINLOG MONITOR ON *.* TO `r`@`%`"], True, "a b", True),
        (["GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO `r`@`%`", "GRANT SELECT ON `a`.* TO `r`@`%`"], False,
         "a", True),
        (["GRANT USAGE ON *.* TO `r`@`%`", "GRANT SELECT ON `a`.`t` TO `r`@`%`"], False, "", False),
        (["GRANT SELECT (`x`, `y`), INSERT ON `a`.`t` TO `r`@`%`", "GRANT INSERT ON `b`.* TO `r`@`%`"],
         False, "", False),
        (["GRANT ALL PRIVILEGES ON `a`.* TO `r`@`%`"], False, "a", False),
        (["GRANT SELECT ON *.* TO `r`@`%`", "REVOKE SELECT ON `b`.* FROM `r`@`%`"], False, "a", False),
        (["GRANT SELECT ON *.* TO `r`@`%`", "REVOKE SELECT ON `mysql`.* FROM `r`@`%`"], True, "a b", False),
        (["GRANT EXECUTE ON PROCEDURE `a`.`p` TO `r`@`%`", "GRANT `role` TO `r`@`%`"], False, "", False),
    ],
)  # fmt: skip
def test_what_an_account_may_see(lines: list[str], everything: bool, databases: str, replicates: bool) -> None:
    rights = rights_of(lines, "'r'@'%'")
    assert rights.reads_all() == everything
    assert [name for name in ("a", "b") if rights.reads_all_of(name)] == databases.split()
    assert rights.may_replicate() == replicates


def test_the_database_of_a_grant_is_a_pattern_and_a_table_is_none() -> None:
    lines = [
        r"GRANT SELECT ON `sh\_op`.* TO `r`@`%`",
        "GRANT SELECT ON `x%`.* TO `r`@`%`",
        "GRANT SELECT ON `b``t`.* TO r@h",
    ]
    rights = rights_of(lines, "'o''r'@'%'")
    assert [name for name in ("sh_op", "shxop", "x", "xy", "yx", "b`t") if rights.reads_all_of(name)] == [
        "sh_op", "x", "xy", "b`t",
    ]  # fmt: skip
    assert rights.grant("SELECT", "sh_op") == r"GRANT SELECT ON `sh\_op`.* TO 'o''r'@'%';"
    assert rights.grant("SELECT", "sh_op", "t`") == "GRANT SELECT ON `sh_op`.`t``` TO 'o''r'@'%';"
    assert rights.grant("REPLICATION SLAVE") == "GRANT REPLICATION SLAVE ON *.* TO 'o''r'@'%';"
    literal = rights_of([r"GRANT SELECT ON `a%`.* TO `r`@`%`"], "'r'@'%'", has_patterns=False)
    assert literal.reads_all_of("a%") and not literal.reads_all_of("ab")
    assert literal.grant("SELECT", "a_b") == "GRANT SELECT ON `a_b`.* TO 'r'@'%';"
