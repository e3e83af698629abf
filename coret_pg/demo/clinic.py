"""An outpatient clinic: codes as keys for patients and diagnoses, visits as the hub."""

from coret_pg.demo import words
from coret_pg.demo.draw import Draw
from coret_pg.demo.table import Row, Table, table


def tables(draw: Draw) -> list[Table]:
    """Return the tables of the clinic."""
    patients = _patients(draw)
    staff = _staff(draw)
    visits = _visits(draw, patients, staff)
    diagnoses = table("diagnoses", "icd_code text, title text, chapter text", words.DIAGNOSES)
    medications = table(
        "medications",
        "medication_id int, drug_name text, atc_code text, dosage_form text",
        [(at, *drug[:3]) for at, drug in enumerate(words.MEDICATIONS, start=1)],
    )
    return [
        *(patients, staff, visits, diagnoses, _visit_diagnoses(draw, visits)),
        *(medications, _prescriptions(draw, visits), _invoices(draw, visits)),
    ]


def _patients(draw: Draw) -> Table:
    # Registration numbers have gaps: some files were merged.
    numbers = sorted(draw.sample(range(1, 420), 330))
    people = draw.people(len(numbers))
    return table(
        "patients",
        "patient_no text, given_name text, family_name text, birth_date date, sex text, city text,"
        " phone text",
        [
            (
                *(f"P-{number:05d}", first, draw.untidy(last, 0.01)),
                *(draw.day("1935-01-01", "2022-06-30"), draw.choice(["f", "m", "f", "m", "x"])),
                *(draw.choice(words.CITIES), draw.optional(draw.phone(), 0.15)),
            )
            for number, (first, last) in zip(numbers, people, strict=True)
        ],
    )


def _staff(draw: Draw) -> Table:
    rows: list[Row] = []
    for at, (first, last) in enumerate(draw.people(45), start=1):
        role = draw.choice(["doctor", "doctor", "nurse", "receptionist"])
        specialty = draw.choice(words.SPECIALTIES) if role == "doctor" else None
        rows.append((at, f"{first} {last}", role, specialty, draw.day("2005-01-10", "2023-09-01")))
    return table(
        "staff",
        "staff_id int, full_name text, role text, specialty text, employed_since date",
        rows,
    )


def _visits(draw: Draw, patients: Table, staff: Table) -> Table:
    seen = draw.regulars(patients.values("patient_no"), 0.9)
    doctors = draw.regulars([row[0] for row in staff.rows if row[2] == "doctor"], 0.9)
    reasons = ["check-up", "acute complaint", "follow-up", "vaccination", "referral"]
    rows: list[Row] = [
        (at, draw.skewed(seen), draw.skewed(doctors), day, draw.choice(reasons), draw.flag(0.07))
        for at, day in enumerate(draw.days(900, "2023-01-09", "2024-12-19"), start=1)
    ]
    return table(
        "visits",
        "visit_id int, patient_no text, staff_id int, visited_on date, reason text, no_show flag",
        rows,
    )


def _visit_diagnoses(draw: Draw, visits: Table) -> Table:
    found = draw.regulars([code for code, *_ in words.DIAGNOSES], 0.93)
    rows: list[Row] = [
        (visit, code, rank)
        for visit, *_, no_show in visits.rows
        if not no_show
        for rank, code in enumerate(draw.several(found, 1, 2), start=1)
    ]
    return table("visit_diagnoses", "visit_id int, icd_code text, rank int", rows)


def _prescriptions(draw: Draw, visits: Table) -> Table:
    given = draw.regulars(range(1, len(words.MEDICATIONS) + 1), 0.93)
    treated = sorted(draw.regulars(range(1, len(visits.rows) + 1), 0.5))
    rows: list[Row] = []
    for visit in treated:
        for drug in draw.several(given, 1, 2):
            dose = float(words.MEDICATIONS[drug - 1][3]) * draw.choice([1, 1, 2])
            days = draw.optional(draw.choice([5, 7, 14, 30, 90]), 0.1)
            rows.append((len(rows) + 1, visit, drug, dose, days))
    return table(
        "prescriptions",
        "prescription_id int, visit_id int, medication_id int, dose_mg real, days int",
        rows,
    )


def _invoices(draw: Draw, visits: Table) -> Table:
    billed = sorted(draw.regulars(range(1, len(visits.rows) + 1), 0.8))
    days = dict(zip(visits.values("visit_id"), visits.values("visited_on"), strict=True))
    rows: list[Row] = [
        (at, visit, draw.after(str(days[visit]), 3, 20), draw.money(25, 480), draw.flag(0.85))
        for at, visit in enumerate(billed, start=1)
    ]
    return table(
        "invoices",
        "invoice_id int, visit_id int, billed_on date, amount money, is_settled flag",
        rows,
    )
