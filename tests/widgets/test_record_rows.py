"""Records: filtered, ordered by value rather than by text, and found again by key."""

from __future__ import annotations

from hfbench.widgets.record_columns import Column
from hfbench.widgets.record_rows import Record, RecordRows

COLUMNS = (Column("name", "Name", flexible=True), Column("size", "Size", align="right"))


def rows(*records: tuple[str, str, float | None]) -> RecordRows:
    found = RecordRows(COLUMNS)
    found.replace(
        [
            Record(name, {"name": name, "size": size}, order={} if value is None else {"size": value})
            for name, size, value in records
        ]
    )
    return found


def keys(found: RecordRows) -> list[str]:
    return [found[index].key for index in range(len(found))]


def test_numbers_are_ordered_by_value_and_unknown_ones_come_last() -> None:
    found = rows(("a", "9.0 MiB", 9.0), ("b", "", None), ("c", "80 KiB", 0.08), ("d", "nan", float("nan")))
    found.set_order("size", False)
    assert keys(found) == ["c", "a", "b", "d"]
    found.set_order("size", True)
    assert keys(found) == ["a", "c", "b", "d"]


def test_text_is_ordered_without_case_and_none_is_the_order_given() -> None:
    found = rows(("b", "", None), ("A", "", None), ("c", "", None))
    found.set_order("name", False)
    assert keys(found) == ["A", "b", "c"]
    found.set_order(None, False)
    assert keys(found) == ["b", "A", "c"]


def test_words_may_stand_in_different_columns() -> None:
    found = rows(("smollm", "256 MiB", 256.0), ("qwen", "256 MiB", 256.0), ("smol2", "1 GiB", 1024.0))
    found.set_filter("smol 256")
    assert keys(found) == ["smollm"]
    assert found.find("qwen") is None
    found.set_filter("")
    assert found.find("qwen") == 1


def test_the_filter_holds_when_records_are_replaced() -> None:
    found = rows(("a", "", None))
    found.set_filter("b")
    found.replace([Record("x", {"name": "ab"}), Record("y", {"name": "c"})])
    assert keys(found) == ["x"]
    assert found.total == 2


def test_foreign_text_is_made_safe_and_measured_as_painted() -> None:
    found = rows(("a\x1b[0m", "宽", None))
    assert found[0].cells["name"] == "a\\x1b[0m"
    assert found.widths == (8, 2)


def test_orders_go_round() -> None:
    found = rows(("a", "", None))
    seen = []
    for _ in range(5):
        found.next_order()
        seen.append((found.sort, found.descending))
    assert seen == [("name", False), ("name", True), ("size", False), ("size", True), (None, False)]


def test_an_update_changes_some_records_and_the_filter_sees_it() -> None:
    rows = RecordRows([Column("name", "Name"), Column("state", "State")])
    rows.replace([Record(str(n), {"name": f"job-{n}", "state": "running"}) for n in range(5)])
    rows.set_filter("finished")
    assert len(rows) == 0
    rows.update([Record("3", {"name": "job-3", "state": "finished at last"}), Record("9", {"name": "unknown"})])
    assert [rows[at].key for at in range(len(rows))] == ["3"]
    assert rows.total == 5
    assert rows.widths[1] == len("finished at last")
