"""What every embedding provider needs: unit rows, text that can be encoded, hashes of weights."""

import hashlib
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coret_pg.errors import ModelError


def unit_rows(rows: NDArray[Any], *, model: str) -> NDArray[np.float32]:
    """Return the rows scaled to length 1.

    (n, d) in any float type to (n, d) float32. Raises ModelError for a row that is not finite or
    is all zero: it has no direction, and its cosine to anything is NaN.
    """
    # float64: the squares of large float32 values overflow.
    wide = rows.astype(np.float64)
    norms = np.linalg.norm(wide, axis=1, keepdims=True)
    # The inverted comparison is also true for NaN.
    bad = int(np.count_nonzero(~((norms > 0) & np.isfinite(norms))))
    if bad:
        raise ModelError(
            f"The embedding model {model} gave {bad} of {len(rows)} vectors that are zero or not "
            "finite",
            remedy="Choose another embedding model (CORET_EMBEDDING_MODEL)",
        )
    unit: NDArray[np.float32] = (wide / norms).astype(np.float32)
    return unit


def encodable(text: str) -> str:
    """Return the text with lone surrogates replaced, since they have no UTF-8 form.

    They come from a command line or file name that is not UTF-8; other text is unchanged.
    """
    return text.encode("utf-8", "replace").decode("utf-8")


@cache
def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file in hex, read once a process."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def verify(path: Path, expected: str, *, what: str, remedy: str) -> None:
    """Check a file that the package relies on against its known SHA-256.

    Raises ModelError where it is missing, unreadable or another file.
    """
    try:
        actual = sha256_of(path)
    except OSError as error:
        raise ModelError(f"{what} can't be read: {error.strerror}", remedy=remedy) from error
    if actual != expected:
        raise ModelError(
            f"{what} is not the known file: its SHA-256 is {actual}, not {expected}", remedy=remedy
        )
