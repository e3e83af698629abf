"""The measure on real pools: the demo warehouse, a pool of odd names, Spider."""

import json
from pathlib import Path

import psycopg
import pytest

from coret_pg.api import Coret
from coret_pg.errors import EvaluationError, PoolError
from coret_pg.evaluation import Case, evaluate, load_cases, write_report
from tests.fake_endpoint import Behaviour, FakeEndpoint

NO_LLM = "selection without LLM"
LLM = "selection by LLM"


def case(case_id, *tables, question="Which customers ordered the most?"):
    return Case(case_id, question, frozenset(tables))


def fetch(dsn, query):
    with psycopg.connect(dsn) as connection:
        return connection.execute(query).fetchone()[0]


class Watcher:
    """Counts what a progress bar would show."""

    def __init__(self):
        self.totals, self.done, self.finished = {}, {}, []

    def start(self, step, total):
        self.totals[step] = total

    def advance(self, step, count=1):
        self.done[step] = self.done.get(step, 0) + count

    def finish(self, step):
        self.finished.append(step)


def test_the_demo(demo_dsn, tmp_path):
    cases = load_cases(None, "demo")
    watcher = Watcher()
    with Coret(demo_dsn) as coret:
        found = evaluate(coret, cases, pool="demo", progress=watcher)
        # What is measured is what users get.
        for result in found.results:
            answer = coret.retrieve(result.case.question)
            assert answer.table_names == result.answers[NO_LLM]
    assert watcher.totals == watcher.done == {"embedding": len(cases), "questions": len(cases)}
    assert watcher.finished == ["embedding", "questions"]
    assert found.warnings == []
    assert found.configuration.tables == fetch(
        demo_dsn, "SELECT count(*) FROM coret.table_embedding"
    )
    assert found.configuration.versions["postgres"]
    assert found.dense_recall_at_10 > 0.8
    recalls = [found.mean_score(f"DR@{depth}").recall for depth in (3, 5, 10)]
    assert recalls == sorted(recalls)
    assert found.mean_score("DR@10").tables == 10
    assert found.mean_score(NO_LLM).tables <= found.mean_score(f"{NO_LLM} + adjustment").tables
    assert sum(found.seconds[name] for name in found.methods) < found.seconds["total"]
    written = (write_report(found, tmp_path) / "questions.jsonl").read_text().splitlines()
    assert [json.loads(line)["id"] for line in written] == [one.id for one in cases]


def test_nothing_is_written_into_the_pool(demo_dsn):
    with Coret(demo_dsn) as coret:
        evaluate(coret, load_cases(None, "demo"), pool="demo", limit=2)
    assert fetch(demo_dsn, "SELECT count(*) FROM coret.retrieval") == 0


def test_a_chat_model_is_asked_once_a_question_and_its_failures_count(demo_dsn):
    wanted = "sales.customers"
    cases = [case(str(number), wanted, question=f"Number {number}?") for number in range(4)]

    def rule(request):
        prompt = request.body["messages"][-1]["content"]
        if "Number 2?" in prompt:
            return Behaviour(status=400, error="no")
        if "Number 3?" in prompt:
            return Behaviour(text="I can't say.")
        return Behaviour(text='{"tables": []}')

    with FakeEndpoint() as endpoint:
        endpoint.rule = rule
        arguments = {"llm_model": "fake", "llm_base_url": endpoint.base_url, "llm_max_retries": 0}
        with Coret(demo_dsn, **arguments) as coret:
            found = evaluate(coret, cases, pool="demo")
        asked = [request.body["messages"][-1]["content"] for request in endpoint.requests]
    assert sum("Number 0?" in prompt for prompt in asked) == 1
    assert found.configuration.chat_model == "fake"
    assert found.fallbacks == {LLM: 2}
    for result in found.results[:2]:
        assert result.answers[LLM] == result.answers[f"{LLM} + adjustment"] == []
        assert result.scores[LLM].f1 == 0
    assert "HTTP 400" in found.results[2].fallbacks[LLM]
    assert "can't be used" in found.results[3].fallbacks[LLM]
    for result in found.results[2:]:
        assert result.answers[LLM] == result.answers[NO_LLM]
        assert result.answers[f"{LLM} + adjustment"] == result.answers[f"{NO_LLM} + adjustment"]


def test_k_and_tau_are_those_of_the_settings(demo_dsn):
    cases = load_cases(None, "demo")
    with Coret(demo_dsn, k=4, tau=0.9) as coret:
        found = evaluate(coret, cases, pool="demo", limit=5)
        for result in found.results:
            answer = coret.retrieve(result.case.question)
            assert answer.table_names == result.answers[f"{NO_LLM} + adjustment"]
    assert (found.configuration.k, found.configuration.tau) == (4, 0.9)
    assert found.mean_score("DR@10").tables == 10


def test_a_limit_spreads_over_the_questions(demo_dsn):
    cases = load_cases(None, "demo")
    with Coret(demo_dsn) as coret:
        found = evaluate(coret, cases, pool="demo", limit=5)
        assert len(evaluate(coret, cases, pool="demo", limit=10_000).results) == len(cases)
        for limit in (0, -1):
            with pytest.raises(EvaluationError, match="limit"):
                evaluate(coret, cases, limit=limit)
        with pytest.raises(EvaluationError, match="no question"):
            evaluate(coret, [])
    schemas = {name.split(".")[0] for one in found.results for name in one.case.gold_tables}
    assert len(found.results) == 5
    assert found.cases_given == len(cases)
    assert len(schemas) > 2


def test_gold_tables_that_are_missing_are_named(demo_dsn):
    missing = [case(f"q{number:02}", f"absent.t{number:02}") for number in range(12)]
    with Coret(demo_dsn) as coret, pytest.raises(EvaluationError) as caught:
        evaluate(coret, [*missing, case("there", "sales.customers")])
    assert caught.value.what.startswith("12 tables that the questions need are not in the pool")
    assert "absent.t00" in caught.value.what
    assert "absent.t09 and 2 more" in caught.value.what
    assert "sales" not in caught.value.what
    assert "coret load <databases> --no-keys" in caught.value.remedy


def test_what_makes_figures_incomparable_is_told(demo_dsn):
    cases = [case("q", "sales.customers")]
    with Coret(demo_dsn, embedded_text="paper") as coret:
        size, text = evaluate(coret, cases, pool="spider-dev").warnings
    assert "spider-dev has 80" in size
    assert "'paper': run `coret refresh`" in text


def test_names_compare_without_case_and_keys_are_counted(dsn):
    with psycopg.connect(dsn) as connection:
        connection.execute('CREATE SCHEMA "Shop.Ä"')
        connection.execute('CREATE TABLE "Shop.Ä"."Orders" ("Id" int PRIMARY KEY, placed date)')
        connection.execute(
            'CREATE TABLE "Shop.Ä"."Lines" (order_id int REFERENCES "Shop.Ä"."Orders", item text)'
        )
    cases = [Case("q", "When were the orders placed?", frozenset({"shop.ä.orders"}))]
    with Coret(dsn) as coret:
        coret.init()
        with pytest.raises(PoolError, match="never refreshed"):
            evaluate(coret, cases)
        coret.refresh()
        found = evaluate(coret, cases)
    assert found.results[0].answers["DR@3"][0] == "Shop.Ä.Orders"
    assert found.dense_perfect_recall_at_10 == 1
    assert found.configuration.declared_keys == 1
    assert found.warnings == ["the pool holds only 2 tables: all of them are candidates"]


@pytest.mark.bench_data
def test_dense_retrieval_on_spider_dev(dsn, bench_data):
    cases = load_cases(bench_data, "spider-dev")
    with Coret(dsn) as coret:
        coret.init()
        coret.load(Path(bench_data) / "spider" / "databases" / "dev", keys=False)
        coret.refresh()
        found = evaluate(coret, cases, pool="spider-dev")
    assert found.warnings == []
    assert (found.configuration.tables, found.configuration.declared_keys) == (80, 0)
    assert sum(one.case.is_multi_table for one in found.results) == 459
    assert found.dense_recall_at_10 > 0.985
    assert found.dense_perfect_recall_at_10 > 0.975
