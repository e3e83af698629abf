"""A secondary school: terse abbreviations, and a canteen whose table is called "order"."""

from coret_pg.demo import words
from coret_pg.demo.draw import Draw
from coret_pg.demo.table import Row, Table, table

FIRST_STUDENT = 20001


def tables(draw: Draw) -> list[Table]:
    """Return the tables of the school."""
    students = _students(draw)
    pupils = [int(str(number)) for number in students.values("stu_no")]
    teachers = table(
        "teachers",
        "teacher_id int, first_nm text, last_nm text, hired_dt date, full_time flag",
        [
            (at, first, last, draw.day("1998-08-01", "2024-08-01"), draw.flag(0.7))
            for at, (first, last) in enumerate(draw.people(34), start=1)
        ],
    )
    subjects = table("subjects", "subj_cd text, subj_nm text", words.SUBJECTS)
    courses = _courses(draw, len(teachers.rows))
    meals = table(
        "meals",
        "meal_id int, meal_nm text, veg flag, price money",
        [
            (at, name, int(vegetarian), draw.randint(28, 52) / 10)
            for at, (name, vegetarian) in enumerate(words.MEALS, start=1)
        ],
    )
    return [
        *(students, teachers, subjects, courses, _enrolments(draw, pupils, len(courses.rows))),
        *(meals, _canteen_orders(draw, pupils)),
    ]


def _students(draw: Draw) -> Table:
    rows: list[Row] = []
    for number, (first, last) in enumerate(draw.people(300), start=FIRST_STUDENT):
        year = draw.randint(5, 12)
        born = draw.day(f"{2018 - year}-07-01", f"{2019 - year}-06-30")
        room = f"{year}{draw.choice('ABC')}"
        phone = draw.optional(draw.phone(), 0.1)
        rows.append((number, draw.untidy(first, 0.02), last, born, year, room, phone))
    return table(
        "students",
        "stu_no int, first_nm text, last_nm text, dob date, yr int, class_cd text,"
        " guardian_tel text",
        rows,
    )


def _courses(draw: Draw, teachers: int) -> Table:
    teaching = draw.regulars(range(1, teachers + 1), 0.85)
    # Latin is on the list of subjects but is not taught.
    taught = [(code, year) for code, _ in words.SUBJECTS[:-1] for year in (5, 7, 9, 11)]
    rows: list[Row] = [
        (
            *(at, code, draw.optional(draw.choice(teaching), 0.06), year),
            *(draw.choice(["2024-1", "2024-2"]), f"R{draw.randint(1, 3)}{draw.randint(1, 20):02d}"),
        )
        for at, (code, year) in enumerate(taught, start=1)
    ]
    return table(
        "courses",
        "crs_id int, subj_cd text, teacher_id int, yr int, term text, room_no text",
        rows,
    )


def _enrolments(draw: Draw, pupils: list[int], courses: int) -> Table:
    offered = draw.regulars(range(1, courses + 1), 0.96)
    rows: list[Row] = []
    for pupil in sorted(draw.regulars(pupils, 0.97)):
        for course in draw.sample(offered, draw.randint(4, 8)):
            points = draw.optional(draw.tenths(20, 100), 0.08)
            rows.append(
                (len(rows) + 1, pupil, course, draw.day("2024-02-01", "2024-09-15"), points)
            )
    return table("enrolments", "enr_id int, stu_no int, crs_id int, enr_dt date, pts real", rows)


def _canteen_orders(draw: Draw, pupils: list[int]) -> Table:
    hungry = draw.regulars(pupils, 0.7)
    cooked = draw.regulars(range(1, len(words.MEALS) + 1), 0.95)
    rows: list[Row] = [
        (number, draw.skewed(hungry), draw.skewed(cooked), day, draw.choice([1, 1, 1, 2]))
        for number, day in enumerate(draw.days(650, "2024-09-02", "2024-12-18"), start=501)
    ]
    return table("order", "ord_no int, stu_no int, meal_id int, ord_dt date, qty int", rows)
