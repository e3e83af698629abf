"""A personnel database: CamelCase names, department numbers in tens, a table name with a blank."""

from coret_pg.demo import words
from coret_pg.demo.draw import Draw, email
from coret_pg.demo.table import Row, Table, table

HEADCOUNT = 180


def tables(draw: Draw) -> list[Table]:
    """Return the tables of the personnel department."""
    employees = _employees(draw)
    departments = table(
        "Departments",
        "DepartmentID int, DepartmentName text, CostCentre text",
        [
            (10 * at, name, f"CC-{300 + 15 * at}")
            for at, name in enumerate(words.DEPARTMENTS, start=1)
        ],
    )
    skills = table("Skills", "SkillID int, SkillName text", enumerate(words.SKILLS, start=1))
    return [
        *(employees, departments, _addresses(draw), _salaries(draw, employees)),
        *(_leave(draw), skills, _employee_skills(draw)),
    ]


def _employees(draw: Draw) -> Table:
    # The last department, the works council, employs nobody of its own.
    departments = draw.regulars([10 * at for at in range(1, len(words.DEPARTMENTS))], 1)
    rows: list[Row] = []
    for at, (first, last) in enumerate(draw.people(HEADCOUNT), start=1):
        manager = None if at <= 3 else draw.randint(1, min(at - 1, 24))
        rows.append(
            (
                *(
                    at,
                    first,
                    last,
                    email(first, last, "example.org"),
                    draw.choice(words.JOB_TITLES),
                ),
                *(draw.skewed(departments), manager),
                *(draw.day("2008-01-07", "2023-12-01"), draw.flag(0.8)),
            )
        )
    return table(
        "Employees",
        "EmployeeID int, FirstName text, LastName text, Email text, JobTitle text,"
        " DepartmentID int, ManagerID int, HireDate date, IsFullTime flag",
        rows,
    )


def _addresses(draw: Draw) -> Table:
    residents = sorted(draw.regulars(range(1, HEADCOUNT + 1), 0.97))
    return table(
        "Addresses",
        "AddressID int, EmployeeID int, Street text, PostalCode text, City text",
        [
            (
                *(at, employee, draw.street(), f"{draw.randint(10000, 99999)}"),
                draw.untidy(draw.choice(words.CITIES), 0.02),
            )
            for at, employee in enumerate(residents, start=1)
        ],
    )


def _salaries(draw: Draw, employees: Table) -> Table:
    rows: list[Row] = []
    for employee, hired in zip(
        employees.values("EmployeeID"), employees.values("HireDate"), strict=True
    ):
        salary, day = draw.randint(320, 780) * 100, str(hired)
        for _ in range(draw.randint(1, 5)):
            rows.append((len(rows) + 1, employee, day, float(salary)))
            salary, day = salary + draw.randint(5, 60) * 100, draw.after(day, 300, 700)
            if day > "2024-12-31":
                break
    return table(
        "SalaryHistory",
        "SalaryID int, EmployeeID int, ValidFrom date, AnnualSalary money",
        rows,
    )


def _leave(draw: Draw) -> Table:
    absent = draw.regulars(range(1, HEADCOUNT + 1), 0.9)
    rows: list[Row] = []
    for at, first_day in enumerate(draw.days(600, "2022-01-03", "2024-12-13"), start=1):
        kind, days = draw.skewed(words.LEAVE_TYPES), draw.randint(1, 20)
        rows.append((at, draw.skewed(absent), kind, first_day, days, draw.flag(0.88)))
    return table(
        "Leave Requests",
        "RequestID int, EmployeeID int, Leave Type text, FirstDay date, Days int, IsApproved flag",
        rows,
    )


def _employee_skills(draw: Draw) -> Table:
    known = draw.regulars(range(1, len(words.SKILLS) + 1), 0.95)
    levels = ["basic", "basic", "advanced", "expert"]
    rows: list[Row] = [
        (employee, skill, draw.choice(levels))
        for employee in sorted(draw.regulars(range(1, HEADCOUNT + 1), 0.92))
        for skill in draw.several(known, 1, 5)
    ]
    return table("EmployeeSkills", "EmployeeID int, SkillID int, Level text", rows)
