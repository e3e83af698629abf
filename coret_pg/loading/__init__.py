"""Load files into the pool: every source database becomes one schema of its own."""

from coret_pg.loading.report import LoadedTable, LoadFailed, LoadReport, Progress, RejectedRow
from coret_pg.loading.run import load_path

__all__ = ["LoadFailed", "LoadReport", "LoadedTable", "Progress", "RejectedRow", "load_path"]
