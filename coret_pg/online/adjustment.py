"""Adjustment: add what the selection lacks to hang together (sql/functions/050_adjustment.sql)."""

from collections.abc import Sequence

import psycopg

from coret_pg.online.result import Candidate, ChosenTable, Role

_REASONS = {
    "added by compatibility": "the strongest partner of {0} (score {1:.2f})",
    "added by expansion": "fits the set best, by scores and relevance (gain {1:.2f}; next to {0})",
}


def adjust(
    connection: psycopg.Connection,
    candidates: Sequence[Candidate],
    selected: Sequence[int],
    tau: float,
    *,
    expand_single: bool = False,
) -> list[ChosenTable]:
    """Return the selected tables and those the two steps add, in order of relevance.

    `selected`: table ids, each among the candidates.
    """
    by_id = {candidate.table_id: candidate for candidate in candidates}
    rows = connection.execute(
        "SELECT table_id, role, partner_id, gain "
        "FROM coret.adjust(%s::bigint[], %s::real[], %s::bigint[], %s::real, %s)",
        [list(by_id), [c.relevance for c in candidates], list(selected), tau, expand_single],
    ).fetchall()
    roles: dict[int, tuple[Role, str | None, str]] = dict.fromkeys(
        selected, ("selected", None, "chosen by the chat model")
    )
    roles |= {
        table_id: (role, by_id[partner].name, _REASONS[role].format(by_id[partner].name, gain))
        for table_id, role, partner, gain in rows
    }
    return [
        chosen_table(candidate, *roles[candidate.table_id])
        for candidate in candidates
        if candidate.table_id in roles
    ]


def chosen_table(
    candidate: Candidate, role: Role, partner: str | None = None, reason: str | None = None
) -> ChosenTable:
    """Return a candidate as a table of the answer."""
    return ChosenTable(
        name=candidate.name,
        schema_name=candidate.schema_name,
        table_name=candidate.table_name,
        rank=candidate.rank,
        relevance=candidate.relevance,
        role=role,
        partner=partner,
        reason=reason,
    )
