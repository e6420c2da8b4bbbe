"""The runner reads the format, renders as it says, and notices what is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.slt import records, runner
from tests.slt.records import Answer, Record

FILE = """\
hash-threshold 8

statement ok
CREATE TABLE t (a INTEGER)

# a comment
statement error
SELECT zzz

statement error 22012
SELECT 1 / 0

query IT rowsort label-1
SELECT a,
  b FROM t
----
1
one
2
(empty)

onlyif mysql # a reason
query I nosort
SELECT 1 DIV 2
----
0

skipif mysql
query I
SELECT 7
----
7

skipif postgresql
halt

query R valuesort
SELECT 1.5
----
3 values hashing to 0123456789abcdef0123456789abcdef

onlyif postgresql
halt

query I nosort
SELECT never
----
1
"""


class Scripted:
    """An engine that knows its answers."""

    def __init__(self, **answers: Answer) -> None:
        self.answers = answers

    def run(self, sql: str) -> Answer:
        return self.answers[sql]


def test_records_that_apply_to_postgresql_are_read() -> None:
    found = list(records.parse(FILE.split("\n")))
    assert found == [
        Record(3, "CREATE TABLE t (a INTEGER)"),
        Record(7, "SELECT zzz", error=""),
        Record(10, "SELECT 1 / 0", error="22012"),
        Record(13, "SELECT a,\n  b FROM t", "IT", "rowsort", ("1", "one", "2", "(empty)")),
        Record(29, "SELECT 7", "I", "nosort", ("7",)),
        Record(37, "SELECT 1.5", "R", "valuesort", (found[5].expected[0],)),
    ]


@pytest.mark.parametrize(
    ("letter", "value", "shown"),
    [
        ("I", "12", "12"),
        ("I", "12.9", "12"),
        ("I", "-0.5", "0"),
        ("I", "9223372036854775807", "9223372036854775807"),
        ("I", "abc", "0"),
        ("I", "t", "1"),
        ("I", None, "NULL"),
        ("R", "1.23456", "1.235"),
        ("R", "7", "7.000"),
        ("R", None, "NULL"),
        ("T", "", "(empty)"),
        ("T", "a\nb\x7f", "a@b@"),
        ("T", "1.50", "1.50"),
    ],
)
def test_values_are_rendered_as_the_files_write_them(
    letter: str, value: str | None, shown: str
) -> None:
    assert records.render(letter, value) == shown


def answer(*rows: tuple[str | None, ...]) -> Answer:
    return Answer(rows, ("text",) * len(rows[0]))


def test_sort_modes() -> None:
    rows = answer(("2", "b"), ("10", "a"))
    assert records.shown(Record(1, "", "IT", "nosort"), rows) == ["2", "b", "10", "a"]
    assert records.shown(Record(1, "", "IT", "rowsort"), rows) == ["10", "a", "2", "b"]
    assert records.shown(Record(1, "", "IT", "valuesort"), rows) == ["10", "2", "a", "b"]


def test_hash_is_that_of_the_values_each_with_a_newline() -> None:
    # md5 of "1\n2\n"
    line = "2 values hashing to 6ddb4095eb719e2a9f0a3f95677d24e0"
    record = Record(1, "", "I", "nosort", (line,))
    assert records.fits(record, answer(("1",), ("2",)))
    assert not records.fits(record, answer(("1",), ("3",)))


def test_an_answer_of_another_width_or_an_error_does_not_fit() -> None:
    record = Record(1, "", "I", "nosort", ("1",))
    assert records.fits(record, answer(("1",)))
    assert not records.fits(record, Answer((("1", "1"),), ("text", "text")))
    assert not records.fits(record, Answer(sqlstate="22012"))
    assert not records.fits(Record(1, "", "I"), Answer((), ("text", "text")))


def test_expected_errors_compare_by_sqlstate() -> None:
    assert records.fits(Record(1, "", error=""), Answer(sqlstate="42703"))
    assert records.fits(Record(1, "", error="42703"), Answer(sqlstate="42703"))
    assert not records.fits(Record(1, "", error="42703"), Answer(sqlstate="42P01"))
    assert not records.fits(Record(1, "", error=""), Answer())


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "made.slt"
    path.write_text("query I\na\n----\n1\n\nquery I\nb\n----\n2\n\nstatement ok\nc\n")
    return path


GOOD = {"a": answer(("1",)), "b": answer(("2",)), "c": Answer()}


def test_a_difference_is_reported(file: Path) -> None:
    report = runner.run_file(file, Scripted(**GOOD), "direct")
    assert (report.run, report.equal, report.ok) == (3, 3, True)
    report = runner.run_file(file, Scripted(**GOOD | {"b": answer(("9",))}), "direct")
    assert (report.run, report.equal, report.ok) == (3, 2, False)
    assert "made:6 direct: expected ('2',), got (('9',),)" in str(report.differences[0])


def test_an_excluded_record_is_held_to_postgresql(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "exclusions", lambda: {("made", 6): "error 22012"})
    report = runner.run_file(file, Scripted(**GOOD), "direct")
    assert (report.excluded, report.ok) == (1, False)
    other = GOOD | {"b": Answer(sqlstate="22012")}
    report = runner.run_file(file, Scripted(**other), "direct")
    assert (report.excluded, report.ok) == (1, True)


def test_a_known_difference_passes_until_it_is_none(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = frozenset([("made", 6, "direct")])
    monkeypatch.setattr(runner, "known_differences", lambda: known)
    bad = Scripted(**GOOD | {"b": answer(("9",))})
    report = runner.run_file(file, bad, "direct")
    assert (report.known, report.ok) == (1, True)
    assert not runner.run_file(file, bad, "auto").ok
    report = runner.run_file(file, Scripted(**GOOD), "direct")
    assert not report.ok
    assert "made:6 direct: no longer different" in report.stale[0]


def test_a_sample_has_all_statements_and_the_queries_of_its_seed(tmp_path: Path) -> None:
    path = tmp_path / "made.slt"
    queries = "\n\n".join(f"query I\nq{i}\n----\n1" for i in range(50))
    path.write_text(f"statement ok\nfirst\n\n{queries}\n\nstatement ok\nlast\n")
    once = [record.sql for record in runner.chosen(path, 10, 1)]
    assert len(once) == 12
    assert once[0] == "first"
    assert once[-1] == "last"
    assert once == [record.sql for record in runner.chosen(path, 10, 1)]
    assert once != [record.sql for record in runner.chosen(path, 10, 2)]


def test_written_records_are_read_back() -> None:
    record = Record(1, "SELECT 1", "T", "rowsort")
    lines = records.written(record, answer(("b", None), ("a", "")))
    assert lines == ["query TT rowsort", "SELECT 1", "----", "a\t(empty)", "b\tNULL"]
    (again,) = records.parse(lines)
    assert records.fits(again, answer(("b", None), ("a", "")))
    assert records.written(record, Answer(sqlstate="22012")) == [
        "statement error 22012",
        "SELECT 1",
    ]
