"""The worker: answers questions that come from SQL, each with the rights of who asked it.

requests (the queue in the database) -> answer (one question) -> run (the loop and its threads).
"""

from coret_pg.worker.run import Worker, count_workers

__all__ = ["Worker", "count_workers"]
