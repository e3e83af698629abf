"""The pool that the tests of rights look at, made once for each of their modules."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.conftest import Server
from tests.rights import Pool, rights_pool


@pytest.fixture(scope="module")
def pool(embedded_server: Server) -> Iterator[Pool]:
    """A pool of ten roles' tables, with a worker at work and with questions asked."""
    with rights_pool(embedded_server) as made:
        yield made
