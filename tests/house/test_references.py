"""Each file, link, module, decision and fault that a text names exists."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("tests/**/*.md")]
MANUAL = sorted(ROOT.glob("man/*.[0-9]"))
CODE = sorted({*ROOT.glob("rplctl/**/*.py"), *ROOT.glob("tests/**/*.py"), *ROOT.glob("migrations/**/*.py")})
TREES = [ROOT, ROOT / "rplctl", ROOT / "rplctl/target", ROOT / "rplctl/repository", ROOT / "tests"]
LINK = re.compile(r"\]\((?!https?:)([^)#\s]+)(#[^)\s]+)?\)")
PATH = re.compile(r"(?<![\w./-])((?:[a-z_]+/)+[\w-]+\.(?:py|md|svg|png))\b")
MODULE = re.compile(r"(?<![\w/.*-])([a-z_0-9]+\.py)\b")
DOTTED = re.compile(r"(?<![\w./\"'-])(rplctl(?:\.[a-z_0-9]+)+)(?!\w|[./]\w|\()")
DECISION = re.compile(r"(?<![\w-])D([1-9][0-9]?)(?!\w)")
FAULT = re.compile(r"(?<![\w#'\"\\.-])[ABCFGH][0-9]{2}(?![\w'\".-])")
EXAMPLES = re.compile(r"KIND|NAME|\ba/b\.py|\ba/test_b\.py|my_command")  # of any file


def plain(path: Path) -> str:
    return re.sub(r"\\f[BIR]", "", path.read_text()).replace("\\-", "-")


@cache
def prose(path: Path) -> str:
    """A document's text; of code the docstrings and comments."""
    if path.suffix != ".py":
        return plain(path)
    text = path.read_text()
    docstrings = re.findall(r'^ *"""(.*?)"""', text, re.MULTILINE | re.DOTALL)
    return "\n".join([*docstrings, *re.findall(r"(?:^ *|  )# (.+)$", text, re.MULTILINE)])


def texts() -> Iterator[tuple[Path, str]]:
    for path in [*PAGES, *MANUAL, *CODE]:
        if path != Path(__file__):
            yield path, prose(path)


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_link_leads_to_a_file_and_its_heading(page: Path) -> None:
    broken = []
    for target, anchor in LINK.findall(page.read_text()):
        path = page.parent / target
        if not path.exists() or (anchor and anchor[1:] not in headings(path)):
            broken.append(target + anchor)
    assert broken == []


def headings(page: Path) -> set[str]:
    found = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", text.lower()).replace(" ", "-") for text in found}


def test_every_page_of_docs_can_be_reached_from_the_readme() -> None:
    reached, left = set[Path](), [ROOT / "README.md"]
    while left:
        page = left.pop()
        reached.add(page)
        linked = {(page.parent / target).resolve() for target, _ in LINK.findall(page.read_text())}
        left += [path for path in linked if path.suffix == ".md" and path not in reached]
    assert {path.resolve() for path in (ROOT / "docs").rglob("*.md")} <= reached


def test_a_file_that_a_text_names_exists() -> None:
    missing = [
        f"{path.relative_to(ROOT)}: {name}"
        for path, text in texts()
        for name in PATH.findall(text)
        if not EXAMPLES.search(name) and not any((tree / name).exists() for tree in [*TREES, path.parent])
    ]
    assert missing == []


def test_a_module_that_a_text_names_exists() -> None:
    names = {path.name for path in CODE}
    missing = [
        f"{path.relative_to(ROOT)}: {name}"
        for path, text in texts()
        for name in MODULE.findall(text)
        if name not in names and not EXAMPLES.search(name)
    ]
    assert missing == []


def test_a_dotted_module_that_a_text_names_exists() -> None:
    missing = {f"{path.relative_to(ROOT)}: {name}" for path, text in texts() for name in DOTTED.findall(text)}
    assert sorted(entry for entry in missing if is_gone(entry.rpartition(" ")[2])) == []


def is_gone(name: str) -> bool:
    """True if the name begins with a package of rplctl and ends with nothing that it has. `rplctl.T` is a table."""
    parts, place = name.split(".")[1:], ROOT / "rplctl"
    if len(parts) == 1 or not (place / parts[0]).is_dir():
        return False
    while parts and (place / parts[0]).is_dir():
        place = place / parts.pop(0)
    if parts and (place / f"{parts[0]}.py").is_file():
        place = place / f"{parts.pop(0)}.py"
    source = place / "__init__.py" if place.is_dir() else place
    return bool(parts) and not EXAMPLES.search(name) and not re.search(rf"\b{parts[0]}\b", source.read_text())


def test_a_decision_that_a_text_names_is_on_the_design_page() -> None:
    """Of documents each number; of code that behind the word design (tests number faults in the same way)."""
    design = plain(ROOT / "man/rplctl-design.7")
    decisions = set(re.findall(r"^\.SS D([0-9]+) ", design, re.MULTILINE))
    decisions |= set(DECISION.findall("".join(re.findall(r"^The numbers .+ are not used\.$", design, re.MULTILINE))))
    of_code = r"design (?:D[0-9]+(?:, | and )?)+"
    unknown = [
        f"{path.relative_to(ROOT)}: D{number}"
        for path, text in texts()
        for number in DECISION.findall("\n".join(re.findall(of_code, text)) if path.suffix == ".py" else text)
        if number not in decisions
    ]
    assert unknown == []
    assert decisions == {str(number) for number in range(1, len(decisions) + 1)}, "a number without a word"


def test_a_fault_that_a_text_names_is_in_the_map() -> None:
    """All but the faults of networks and sources, whose D is also that of decisions."""
    known = re.findall(FAULT, prose(ROOT / "tests/house/test_fault_map.py"))
    unknown = [
        f"{path.relative_to(ROOT)}: {number}"
        for path, text in texts()
        for number in re.findall(FAULT, text)
        if path.suffix == ".py" and path.is_relative_to(ROOT / "tests") and number not in known
    ]
    assert unknown == []


def test_every_list_of_commit_modes_has_the_same_modes() -> None:
    design = plain(ROOT / "man/rplctl-design.7").partition(".SS D3 ")[2].partition(".SS ")[0]
    modes = set(re.findall(r"^\.TP\n\.B ([\w-]+)$", design, re.MULTILINE))
    assert {"transaction", "marker", "xa"} < modes
    for page, heading in (("README.md", "Why it is crash-safe"), ("docs/architecture.md", "Commit modes")):
        table = (ROOT / page).read_text().partition(f"## {heading}\n")[2].partition("\n## ")[0]
        assert set(re.findall(r"^\| `([\w-]+)` \|", table, re.MULTILINE)) == modes, page
