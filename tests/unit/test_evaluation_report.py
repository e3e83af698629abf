"""The report of a measure: every file, the Markdown, the screen."""

import io
import json
from datetime import UTC, datetime

import pytest
from rich.console import Console

from coret_pg.errors import EvaluationError
from coret_pg.evaluation import Case, Evaluation, render, write_report
from coret_pg.evaluation.metrics import score
from coret_pg.evaluation.pool import Configuration
from coret_pg.evaluation.run import CaseResult

METHODS = ("DR@10", "selection by LLM")


def result(case_id, gold, answers, fallbacks=None):
    case = Case(case_id, f"Wo ist [{case_id}]? ä", frozenset(gold))
    return CaseResult(
        case=case,
        answers=dict(zip(METHODS, answers, strict=True)),
        scores={
            name: score([table.lower() for table in answer], case.gold_tables)
            for name, answer in zip(METHODS, answers, strict=True)
        },
        fallbacks=fallbacks or {},
    )


def measure(results=None, **changed):
    configuration = {
        "pool": "demo", "tables": 1_234, "declared_keys": 0, "embedding_provider": "onnx",
        "embedding_model": "all-MiniLM-L6-v2", "embedding_revision": "ab", "dimension": 384,
        "embedded_text": "names", "chat_model": "small", "k": 10, "tau": 0.5,
        "versions": {"coret_pg": "0", "postgres": "18.6", "pgvector extension": "0.8.6"},
    }  # fmt: skip
    return Evaluation(
        configuration=Configuration(**configuration | changed),
        started_at=datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
        methods=METHODS,
        results=results
        or [
            result("one", ["a.t"], [["a.T", "a.u"], ["a.T"]]),
            result("two", ["a.t", "b.t"], [["a.T", "c.x"], []], {METHODS[1]: "it [failed]"}),
        ],
        cases_given=9,
        seconds={"total": 1.23456},
        warnings=["something [odd] was met"],
    )


def shown(evaluation, width=80):
    console = Console(file=io.StringIO(), width=width)
    render(evaluation, console)
    return console.file.getvalue()


def test_the_folder_is_named_by_pool_and_time(tmp_path):
    folder = write_report(measure(), tmp_path / "deep" / "results")
    assert folder == tmp_path / "deep" / "results" / "demo-20260102T030405Z"
    assert sorted(file.name for file in folder.iterdir()) == [
        "configuration.json", "questions.jsonl", "summary.json", "table.md",
    ]  # fmt: skip


def test_the_configuration(tmp_path):
    written = json.loads((write_report(measure(), tmp_path) / "configuration.json").read_text())
    assert written["started_at"] == "2026-01-02T03:04:05+00:00"
    assert (written["pool"], written["tables"], written["k"], written["tau"]) == (
        "demo", 1_234, 10, 0.5,
    )  # fmt: skip
    assert written["embedded_text"] == "names"
    assert written["versions"]["postgres"] == "18.6"
    assert written["methods"] == list(METHODS)


def test_the_summary(tmp_path):
    written = json.loads((write_report(measure(), tmp_path) / "summary.json").read_text())
    assert (written["questions"], written["questions_of_dataset"]) == (2, 9)
    assert written["dense_recall_at_10"] == 0.75
    assert written["dense_perfect_recall_at_10"] == 0.5
    assert written["all"]["DR@10"] == {
        "questions": 2, "precision": 0.5, "recall": 0.75, "f1": 0.583, "perfect_recall": 0.5,
        "exact_match": 0, "tables": 2,
    }  # fmt: skip
    assert written["multi_table"]["DR@10"]["recall"] == 0.5
    assert written["multi_table"]["DR@10"]["questions"] == 1
    assert written["fallbacks"] == {"selection by LLM": 1}
    assert written["seconds"] == {"total": 1.235}
    assert written["warnings"] == ["something [odd] was met"]


def test_a_line_a_question(tmp_path):
    text = (write_report(measure(), tmp_path) / "questions.jsonl").read_text(encoding="utf-8")
    one, two = [json.loads(line) for line in text.splitlines()]
    assert "ä" in text
    assert (one["id"], one["gold"]) == ("one", ["a.t"])
    assert one["methods"]["DR@10"] == {
        "answer": ["a.T", "a.u"], "precision": 0.5, "recall": 1, "f1": 0.667,
        "perfect_recall": 1, "exact_match": 0, "tables": 2,
    }  # fmt: skip
    assert two["gold"] == ["a.t", "b.t"]
    assert two["methods"]["selection by LLM"]["answer"] == []
    assert two["methods"]["selection by LLM"]["fallback"] == "it [failed]"


def test_the_markdown(tmp_path):
    text = (write_report(measure(), tmp_path) / "table.md").read_text()
    head = "| method | precision | recall | F1 | perfect recall | exact match | mean tables |\n"
    assert text.count(head + "|---|---:|---:|---:|---:|---:|---:|\n") == 2
    assert "**demo: 2 questions**" in text
    assert "**demo: 1 multi-table questions**" in text
    assert "| DR@10 | 0.500 | 0.750 | 0.583 | 0.500 | 0.000 | 2.000 |" in text
    assert "| DR@10 | 0.500 | 0.500 | 0.500 | 0.000 | 0.000 | 2.000 |" in text


def test_the_remarks_tell_what_a_figure_depends_on():
    text = shown(measure(), width=200)
    assert "1,234 tables, no declared keys" in text
    assert "K = 10, tau = 0.5; chat model: small" in text
    assert "a sample: 2 of the dataset's 9 questions" in text
    assert "selection by LLM: the chat model failed at 1 of 2 questions" in text
    assert "warning: something [odd] was met" in text
    assert "7 declared foreign keys (not used)" in shown(measure(declared_keys=7), width=200)


def test_every_figure_shows_on_a_narrow_screen():
    text = shown(measure(), width=60)
    assert "…" not in text
    assert "0.583" in text
    assert max(map(len, text.splitlines())) <= 60


def test_no_multi_table_question_shows_as_dashes(tmp_path):
    evaluation = measure([result("one", ["a.t"], [["a.t"], ["a.t"]])])
    folder = write_report(evaluation, tmp_path)
    assert json.loads((folder / "summary.json").read_text())["multi_table"]["DR@10"] is None
    assert "| DR@10 | - | - | - | - | - | - |" in (folder / "table.md").read_text()
    assert "demo: 0 multi-table questions" in shown(evaluation)


def test_a_report_is_never_written_over_another(tmp_path):
    folder = write_report(measure(), tmp_path)
    with pytest.raises(EvaluationError, match=r"can't be written to .*: File exists"):
        write_report(measure(), tmp_path)
    assert len(list(folder.iterdir())) == 4


def test_a_place_that_is_no_folder_is_told(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(EvaluationError, match="can't be written to"):
        write_report(measure(), tmp_path / "file")
