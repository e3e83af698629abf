"""Measures of retrieval: questions with known tables over one pool, methods and metrics."""

from coret_pg.evaluation.dataset import POOLS, Case, load_cases
from coret_pg.evaluation.report import render, write_report
from coret_pg.evaluation.run import Evaluation, evaluate

__all__ = ["POOLS", "Case", "Evaluation", "evaluate", "load_cases", "render", "write_report"]
