"""How well names fit a join, without a database."""

import pytest

from coret_pg.join_names import JoinColumn, fit, hints


def key(table, column):
    return JoinColumn(table, column, leads=True)


def other(table, column):
    return JoinColumn(table, column, leads=False)


@pytest.mark.parametrize(
    ("child", "parent", "whole_numbers", "expected"),
    [
        # The same special name, the parent's own key.
        (other("orders", "customer_id"), key("customers", "customer_id"), True, 1.0),
        (other("exams", "StuID"), key("student", "stu_id"), True, 1.0),
        (other("flights", "iata"), key("airports", "iata"), False, 1.0),
        # <table>_id against id.
        (other("orders", "customer_id"), key("customers", "id"), True, 1.0),
        (other("trip", "end_station_id"), key("station", "id"), True, 1.0),
        # Shortened, or by chance: `part` is the beginning of `party`.
        (other("orders", "cust_id"), key("customers", "id"), True, 0.9),
        (other("party_events", "Party_ID"), key("parts", "part_id"), True, 0.9),
        # The end of a compound word.
        (other("hero_power", "hero_id"), key("superhero", "id"), True, 0.9),
        # Another key word, an abbreviation, a role before the name.
        (other("enrolments", "stu_no"), key("people", "student_id"), True, 0.9),
        (other("flights", "home_airport_code"), key("fields", "airport_code"), True, 0.9),
        # The table's name alone, also where it stands first in a junction table.
        (other("appointment", "patient"), key("patient", "ssn"), True, 0.8),
        (key("affiliated_with", "Physician"), key("Physician", "EmployeeID"), True, 0.8),
        # Both point to a third table.
        (other("invoices", "visit_id"), other("bills", "visit_id"), True, 0.6),
    ],
)
def test_names_that_fit(child, parent, whole_numbers, expected):
    assert fit(child, parent, whole_numbers=whole_numbers) == expected
    (own_a, all_a), (own_b, all_b) = (hints(c.table_name, c.column_name) for c in (child, parent))
    assert own_a & all_b or own_b & all_a


@pytest.mark.parametrize(
    ("child", "parent", "whole_numbers"),
    [
        (key("singer", "id"), key("concert", "id"), True),
        (key("singer", "singer_id"), key("concert", "concert_id"), True),
        (key("Singer", "Singer_ID"), other("singer_in_concert", "concert_ID"), True),
        (other("people", "age"), other("wine", "age"), True),
        (other("a", "name"), other("b", "name"), False),
        (other("orders", "quantity"), key("customers", "customer_id"), True),
        # A table's own name for itself is no pointer to another of that name.
        (key("patient", "patient"), key("patient_archive", "ssn"), True),
    ],
)
def test_names_that_say_nothing(child, parent, whole_numbers):
    assert fit(child, parent, whole_numbers=whole_numbers) == 0.0


def test_no_fit_without_a_shared_hint():
    """The cheap test never rules out what the full one would accept."""
    words = ["id", "name", "customer", "cust", "order_line", "StuID", "student", "type", "code"]
    columns = [
        JoinColumn(table, column, leads)
        for table in ("customers", "tbl_order_lines", "students", "types", "x")
        for column in [*words, *(f"{word}_id" for word in words)]
        for leads in (True, False)
    ]
    for child in columns:
        for parent in columns:
            if child.table_name == parent.table_name:
                continue
            best = max(fit(child, parent, whole_numbers=w) for w in (True, False))
            own_a, all_a = hints(child.table_name, child.column_name)
            own_b, all_b = hints(parent.table_name, parent.column_name)
            assert best == 0 or own_a & all_b or own_b & all_a, (child, parent, best)
