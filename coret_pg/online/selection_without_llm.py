"""Selection without a chat model: relevance and compatibility, by a fixed rule.

The nearest table is taken. Another candidate joins the set if its relevance, raised by how well
it joins the set so far, comes within a fixed gap of the nearest table's.
"""

from collections.abc import Sequence

from coret_pg.online.result import Candidate, Pair

# Both set on Spider's training questions (docs/results.md); in units of cosine similarity.
GAP = 0.12
JOIN_BONUS = 0.15


def select_without_llm(
    candidates: Sequence[Candidate],
    pairs: Sequence[Pair],
    *,
    gap: float = GAP,
    join_bonus: float = JOIN_BONUS,
) -> list[int]:
    """Return the ids of the chosen tables, nearest first; deterministic.

    `gap`: how far below the nearest table's cosine a table may lie; `join_bonus`: how much of a
    gap a join of score 1 makes up for.
    """
    if not candidates:
        return []
    scores: dict[tuple[int, int], float] = {}
    for pair in pairs:
        scores[pair.table_a, pair.table_b] = scores[pair.table_b, pair.table_a] = pair.score
    nearest, *rest = sorted(candidates, key=lambda c: (-c.relevance, c.table_id))
    chosen = [nearest]

    def reach(candidate: Candidate) -> float:
        strongest = max(scores.get((candidate.table_id, member.table_id), 0.0) for member in chosen)
        return candidate.relevance + join_bonus * strongest

    while rest:
        # The best one first: what it joins may bring the next within reach.
        best = max(rest, key=lambda c: (reach(c), -c.table_id))
        if reach(best) < nearest.relevance - gap:
            break
        chosen.append(best)
        rest.remove(best)
    chosen_ids = {candidate.table_id for candidate in chosen}
    return [candidate.table_id for candidate in candidates if candidate.table_id in chosen_ids]
