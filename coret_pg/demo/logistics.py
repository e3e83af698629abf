"""Warehouses and freight: tbl_ prefixes and abbreviations, with a purchasing part in German."""

from coret_pg.demo import words
from coret_pg.demo.draw import Draw
from coret_pg.demo.table import Row, Table, table

HAZARDOUS = {"LIB", "SLV", "PNT", "ADH", "DRM"}
SIZES = ("S", "M", "L")


def tables(draw: Draw) -> list[Table]:
    """Return the tables of the forwarder."""
    items = _items(draw)
    codes = [str(code) for code in items.values("prod_cd")]
    warehouses = table(
        "tbl_warehouse", "wh_cd text, wh_nm text, city text, cntry_cd text", words.WAREHOUSES
    )
    carriers = table(
        "tbl_carrier",
        "carr_id int, carr_nm text, scac_cd text",
        [
            (at, name, name.replace(" ", "")[:4].upper())
            for at, name in enumerate(words.CARRIERS, start=1)
        ],
    )
    shipments = _shipments(draw)
    suppliers = _suppliers(draw)
    return [
        *(items, warehouses, _stock(draw, codes), carriers, shipments),
        *(_shipped_items(draw, shipments, codes), suppliers, _contracts(draw, suppliers, codes)),
    ]


def _items(draw: Draw) -> Table:
    rows: list[Row] = []
    for stem, description, unit in words.ITEMS:
        for size in SIZES[: draw.randint(2, 3)]:
            at = len(rows) + 1
            code = f"{stem}-{100 + at}"
            text = f"{description} ({size})"
            rows.append((at, code, text, unit, draw.tenths(1, 90), int(stem in HAZARDOUS)))
    return table(
        "tbl_item",
        "item_id int, prod_cd text, descr text, uom text, wt_kg real, haz_flg flag",
        rows,
    )


def _stock(draw: Draw, codes: list[str]) -> Table:
    """Return stock counts; prod_cd is typed by hand, so it is one of the DIRTY_RELATIONS."""
    rows: list[Row] = []
    for warehouse, *_ in words.WAREHOUSES:
        for code in sorted(draw.regulars(codes, 0.7)):
            at = len(rows) + 1
            typed = code.lower() + " " if at % 67 == 0 else "XXX-999" if at % 101 == 0 else code
            counted = draw.day("2024-11-01", "2024-12-31")
            rows.append(
                (at, warehouse, typed, draw.randint(0, 400), draw.randint(1, 8) * 10, counted)
            )
    return table(
        "tbl_stock",
        "stk_id int, wh_cd text, prod_cd text, qty_oh int, reord_lvl int, cnt_dt date",
        rows,
    )


def _shipments(draw: Draw) -> Table:
    sites = draw.regulars([code for code, *_ in words.WAREHOUSES], 0.9)
    carriers = draw.regulars(range(1, len(words.CARRIERS) + 1), 0.9)
    rows: list[Row] = []
    for at, day in enumerate(draw.days(600, "2023-06-01", "2024-12-20"), start=1):
        # Without a carrier: the customer fetched the goods.
        carrier = draw.optional(draw.skewed(carriers), 0.08)
        delivered = draw.optional(draw.after(day, 1, 12), 0.06)
        rows.append(
            (
                *(at, f"SHP-{at:06d}", draw.skewed(sites), carrier, draw.skewed(words.PORTS)),
                *(day, delivered, draw.money(60, 2400)),
            )
        )
    return table(
        "tbl_shipment",
        "shp_id int, shp_no text, wh_cd text, carr_id int, dest_city text, shp_dt date,"
        " dlv_dt date, frt_cost money",
        rows,
    )


def _shipped_items(draw: Draw, shipments: Table, codes: list[str]) -> Table:
    shipped = draw.regulars(codes, 0.92)
    rows = [
        (shipment, code, draw.randint(1, 60))
        for shipment in shipments.values("shp_id")
        for code in draw.several(shipped, 1, 4)
    ]
    return table("tbl_shp_pos", "shp_id int, prod_cd text, qty int", rows)


def _suppliers(draw: Draw) -> Table:
    firms = [f"{stem} {form}" for stem in words.SUPPLIER_STEMS for form in words.SUPPLIER_FORMS]
    return table(
        "lieferanten",
        "lieferant_nr int, firma text, straße text, ort text, land_kz text",
        [
            (
                number,
                firm,
                draw.street(),
                draw.choice(words.CITIES),
                draw.choice(["DE", "AT", "CH"]),
            )
            for number, firm in enumerate(draw.sample(firms, 30), start=7001)
        ],
    )


def _contracts(draw: Draw, suppliers: Table, codes: list[str]) -> Table:
    rows: list[Row] = []
    for supplier in draw.regulars(suppliers.values("lieferant_nr"), 0.9):
        for code in draw.sample(codes, draw.randint(2, 8)):
            start = draw.day("2022-01-01", "2024-06-30")
            end = draw.optional(draw.after(start, 365, 900), 0.3)
            rows.append((len(rows) + 1, supplier, code, draw.money(2, 300), start, end))
    return table(
        "lieferverträge",
        "vertrag_id int, lieferant_nr int, prod_cd text, stückpreis money, gültig_ab date,"
        " gültig_bis date",
        rows,
    )
