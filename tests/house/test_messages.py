"""docs/messages.md is what its generator makes of the source."""

from __future__ import annotations

from tests.tools.write_messages import PAGE, page


def test_the_page_of_messages_is_as_the_source_has_them() -> None:
    assert PAGE.read_text() == page(), "run: .venv/bin/python -m tests.tools.write_messages"


def test_it_has_the_text_the_remedy_and_the_exit_code_of_an_error() -> None:
    assert "## 1062 ER_DUP_ENTRY" in page() and "## 2003 CR_CONN_HOST_ERROR" in page()
    (row,) = [line for line in page().splitlines() if line.startswith("| Can't find record in '…' |")]
    assert "rplctl verify; rplctl repair" in row and row.endswith("| 7 |")
