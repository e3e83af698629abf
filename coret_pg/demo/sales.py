"""A home-goods shop: snake_case names, a text key for countries, an archive beside the orders."""

from coret_pg.demo import words
from coret_pg.demo.draw import Draw, email
from coret_pg.demo.table import Row, Table, Value, table

ORDER_COLUMNS = (
    "order_id int, customer_id int, ordered_on date, status text, channel text,"
    " delivery_address_id int"
)
# An address, its customer, and the day since when the customer may order.
Place = tuple[Value, Value, str]
MARKETS = [code for code, *_ in words.COUNTRIES[:14]]


def tables(draw: Draw) -> list[Table]:
    """Return the tables of the shop."""
    countries = table(
        "countries",
        "country_code text, country_name text, continent text, currency_code text",
        words.COUNTRIES,
    )
    categories, products = _range(draw)
    customers = _customers(draw)
    addresses = _addresses(draw, len(customers.rows))
    places = _places(draw, customers, addresses)
    archive = table(
        "orders_archive",
        ORDER_COLUMNS + ", archived_on date",
        [
            (*row, "2023-01-15")
            for row in _orders(draw, 1, draw.days(340, "2020-01-02", "2022-12-31"), places)
        ],
    )
    orders = table(
        "orders",
        ORDER_COLUMNS,
        _orders(draw, 1001, draw.days(800, "2023-01-02", "2024-12-20"), places),
    )
    lines = _order_lines(draw, orders, products)
    invoices = _invoices(draw, orders, lines)
    return [
        *(countries, categories, products, customers, addresses),
        *(orders, archive, lines, invoices),
    ]


def _range(draw: Draw) -> tuple[Table, Table]:
    names = [name for name, *_ in words.CATEGORIES]
    categories: list[Row] = []
    products: list[Row] = []
    for category_id, category in enumerate(words.CATEGORIES, start=1):
        name, parent, prices, heaviest, goods = category
        low, high = (int(price) for price in prices.split("-"))
        categories.append((category_id, name, names.index(parent) + 1 if parent else None))
        for good in goods.split(", "):
            for variant in draw.sample(words.VARIANTS, draw.randint(1, 2)):
                at = len(products) + 1
                price, weight = draw.money(low, high), draw.tenths(0, int(heaviest)) + 0.1
                sku = f"{name[:2].upper()}-{4000 + 7 * at}"
                product = f"{good} {variant}"
                products.append(
                    (at, sku, product, category_id, price, round(weight, 1), draw.flag(0.1))
                )
    return (
        table(
            "categories",
            "category_id int, category_name text, parent_category_id int",
            categories,
        ),
        table(
            "products",
            "product_id int, sku text, product_name text, category_id int, list_price money,"
            " weight_kg real, is_discontinued flag",
            products,
        ),
    )


def _customers(draw: Draw) -> Table:
    rows: list[Row] = []
    days = draw.days(300, "2018-03-01", "2024-10-31")
    for at, ((first, last), day) in enumerate(zip(draw.people(300), days, strict=True), start=1):
        mail = draw.untidy(email(first, last, "example.com"), 0.02)
        # An early customer may have brought a later one.
        referrer = draw.optional(draw.randint(1, at - 1), 0.8) if at > 1 else None
        rows.append(
            (
                *(at, f"C-{at:04d}", first, draw.untidy(last, 0.01), mail),
                *(draw.skewed(MARKETS), draw.flag(0.25)),
                *(day, referrer),
            )
        )
    return table(
        "customers",
        "customer_id int, customer_no text, first_name text, last_name text, email text,"
        " country_code text, is_business flag, registered_on date, referred_by int",
        rows,
    )


def _addresses(draw: Draw, customers: int) -> Table:
    owners = draw.regulars(range(1, customers + 1), 0.94)
    owners = sorted(owners + draw.regulars(owners, 0.25))
    return table(
        "addresses",
        "address_id int, customer_id int, street text, postcode text, city text",
        [
            (
                *(at, owner, draw.street(), f"{draw.randint(10000, 99999)}"),
                draw.untidy(draw.choice(words.CITIES), 0.02),
            )
            for at, owner in enumerate(owners, start=1)
        ],
    )


def _places(draw: Draw, customers: Table, addresses: Table) -> list[Place]:
    registered = dict(
        zip(customers.values("customer_id"), customers.values("registered_on"), strict=True)
    )
    return [
        (address, customer, str(registered[customer]))
        for address, customer, *_ in draw.regulars(addresses.rows, 0.85)
    ]


def _orders(draw: Draw, first_id: int, days: list[str], places: list[Place]) -> list[Row]:
    """Return orders of customers registered by then, delivered to an address or picked up."""
    rows: list[Row] = []
    for order_id, day in enumerate(days, start=first_id):
        address_id, customer_id, _ = draw.skewed([place for place in places if place[2] <= day])
        status = draw.choice(["shipped", "shipped", "shipped", "open", "cancelled", "returned"])
        channel = draw.choice(["web", "web", "phone", "store"])
        target = None if channel == "store" else address_id
        rows.append((order_id, customer_id, day, status, channel, target))
    return rows


def _order_lines(draw: Draw, orders: Table, products: Table) -> Table:
    prices = {row[0]: row[4] for row in products.rows}
    sold = draw.regulars(list(prices), 0.9)
    rows: list[Row] = []
    for order_id in orders.values("order_id"):
        for product_id in draw.several(sold, 1, 4):
            amount, discount = draw.randint(1, 5), draw.choice([0.0, 0.0, 0.0, 0.05, 0.1])
            line = len(rows) + 1
            rows.append((line, order_id, product_id, amount, prices[product_id], discount))
    return table(
        "order_lines",
        "line_id int, order_id int, product_id int, quantity int, unit_price money, discount real",
        rows,
    )


def _invoices(draw: Draw, orders: Table, lines: Table) -> Table:
    cents: dict[object, int] = {}
    for _, order_id, _, quantity, price, discount in lines.rows:
        full = int(quantity or 0) * float(price or 0)
        cents[order_id] = cents.get(order_id, 0) + round(full * (1 - float(discount or 0)) * 100)
    rows: list[Row] = []
    for order_id, _, ordered_on, status, *_ in orders.rows:
        if status in ("shipped", "returned"):
            number = f"INV-{str(ordered_on)[:4]}-{len(rows) + 1:05d}"
            issued = draw.after(str(ordered_on), 1, 5)
            paid = draw.optional(draw.after(issued, 2, 45), 0.12)
            due = draw.after(issued, 30, 30)
            rows.append((number, order_id, issued, due, cents[order_id] / 100, paid))
    return table(
        "invoices",
        "invoice_no text, order_id int, issued_on date, due_on date, amount money, paid_on date",
        rows,
    )
