"""A video service: subscribers, titles, playlists, and a large table of what was watched."""

from coret_pg.demo import words
from coret_pg.demo.draw import Draw, email
from coret_pg.demo.table import Row, Table, table

MARKETS = [code for code, *_ in words.COUNTRIES[:9]]
WITHDRAWN_TITLES = 5


def tables(draw: Draw) -> list[Table]:
    """Return the tables of the video service."""
    plans = table(
        "plans",
        "plan_code text, plan_name text, monthly_price money, max_screens int",
        [(code, name, float(price), int(screens)) for code, name, price, screens in words.PLANS],
    )
    subscribers = _subscribers(draw)
    titles = _titles(draw)
    playlists = _playlists(draw, len(subscribers.rows))
    return [
        *(plans, subscribers, titles, playlists),
        _playlist_items(draw, len(playlists.rows), len(titles.rows)),
        *(_watch_events(draw, subscribers, len(titles.rows)), _payments(draw, subscribers)),
    ]


def _subscribers(draw: Draw) -> Table:
    # Nobody has taken the newest plan, the last one, yet.
    plans = [code for code, *_ in words.PLANS[:-1]]
    return table(
        "subscribers",
        "subscriber_id int, display_name text, email text, country_code text, plan_code text,"
        " joined_on date, is_active flag",
        [
            (
                *(at, first + last[0], draw.untidy(email(first, last, "example.net"), 0.03)),
                *(draw.skewed(MARKETS), draw.skewed(plans)),
                *(draw.day("2021-05-01", "2024-06-30"), draw.flag(0.85)),
            )
            for at, (first, last) in enumerate(draw.people(260), start=1)
        ],
    )


def _titles(draw: Draw) -> Table:
    names = [f"{start} {end}" for start in words.TITLE_STARTS for end in words.TITLE_ENDS]
    rows: list[Row] = [
        (
            *(at, name, draw.choice(["film", "film", "series"]), draw.choice(words.GENRES)),
            *(
                draw.randint(1972, 2024),
                draw.randint(22, 170),
                draw.optional(draw.tenths(3, 9), 0.05),
            ),
        )
        for at, name in enumerate(draw.sample(names, 140), start=1)
    ]
    return table(
        "titles",
        "title_id int, title_name text, kind text, genre text, release_year int, runtime_min int,"
        " critics_score real",
        rows,
    )


def _playlists(draw: Draw, subscribers: int) -> Table:
    owners = draw.regulars(range(1, subscribers + 1), 0.45)
    rows: list[Row] = [
        (at, draw.skewed(owners), draw.choice(words.PLAYLIST_NAMES), day, draw.flag(0.3))
        for at, day in enumerate(draw.days(170, "2022-01-01", "2024-12-01"), start=1)
    ]
    return table(
        "playlists",
        "playlist_id int, subscriber_id int, playlist_name text, created_on date, is_public flag",
        rows,
    )


def _playlist_items(draw: Draw, playlists: int, titles: int) -> Table:
    listed = draw.regulars(range(1, titles + 1), 0.9)
    rows: list[Row] = [
        (playlist, title, position)
        for playlist in sorted(draw.regulars(range(1, playlists + 1), 0.95))
        for position, title in enumerate(draw.several(listed, 2, 11), start=1)
    ]
    return table("playlist_items", "playlist_id int, title_id int, position int", rows)


def _watch_events(draw: Draw, subscribers: Table, titles: int) -> Table:
    """Return what was watched; title_id is one of the DIRTY_RELATIONS.

    A few events are of titles that were withdrawn and deleted from the catalogue.
    """
    joined = dict(
        zip(subscribers.values("subscriber_id"), subscribers.values("joined_on"), strict=True)
    )
    viewers = draw.regulars(list(joined), 0.9)
    watched = draw.regulars(range(1, titles + 1), 0.93)
    devices = ["television", "television", "phone", "tablet", "browser"]
    rows: list[Row] = []
    for event in range(100001, 101701):
        viewer, title = draw.skewed(viewers), draw.skewed(watched)
        if draw.chance(0.01):
            title = titles + draw.randint(1, WITHDRAWN_TITLES)
        day = draw.after(str(joined[viewer]), 0, 180)
        rows.append((event, viewer, title, day, draw.tenths(1, 160), draw.choice(devices)))
    return table(
        "watch_events",
        "event_id int, subscriber_id int, title_id int, watched_on date, minutes_watched real,"
        " device text",
        rows,
    )


def _payments(draw: Draw, subscribers: Table) -> Table:
    prices = {code: float(price) for code, _, price, _ in words.PLANS}
    paying = draw.regulars(subscribers.rows, 0.95)
    rows: list[Row] = []
    for at, day in enumerate(draw.days(750, "2024-07-01", "2024-12-31"), start=1):
        subscriber_id, *_, plan, _, _ = draw.choice(paying)
        method = draw.choice(["card", "card", "direct debit", "gift code"])
        status = draw.choice(["collected"] * 12 + ["failed"])
        rows.append((at, subscriber_id, day, prices[str(plan)], method, status))
    return table(
        "payments",
        "payment_id int, subscriber_id int, paid_on date, amount money, method text, status text",
        rows,
    )
