"""A small warehouse with the traps of real ones, and questions an analyst would ask of it."""

from coret_pg.demo.warehouse import DIRTY_RELATIONS, QUESTIONS_FILE, build_warehouse

__all__ = ["DIRTY_RELATIONS", "QUESTIONS_FILE", "build_warehouse"]
