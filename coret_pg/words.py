"""Words of questions, names and values, in the one form in which they are compared."""

import re
from functools import lru_cache

_WORD = re.compile(r"\w+")
_NAME_BORDER = re.compile(r"[\W_]+")
_CAMEL_BORDER = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
# stuid, customercode: a key word grown onto a name; a few words only look so.
_GROWN_KEY = re.compile(r"(.{2,})(id|code)")
_NO_GROWN_KEY = {"paid", "void", "avoid", "valid", "grid", "fluid", "solid", "android", "decode"}

_ENDINGS = ("ment", "ing", "ed", "er", "or", "ion")
_SHORTEST_ROOT = 4


def plain_text(text: str) -> str:
    """Return a text as lower-case words with one blank between: `Anti-Virus  (new)` likewise."""
    return " ".join(text_words(text))


def text_words(text: str) -> list[str]:
    """Return the lower-case words of a text, in order."""
    return _WORD.findall(text.lower())


def stem(word: str) -> str:
    """Return the singular of an English plural, crudely; other words as they are."""
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    if len(word) > 4 and word.endswith(("sses", "shes", "ches", "xes")):
        return word[:-2]
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word


@lru_cache(maxsize=100_000)
def root(word: str) -> str:
    """Return what is left of a word without its ending: `shipment` and `shipped` are `ship`."""
    word = stem(word)
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _SHORTEST_ROOT:
            word = word[: -len(ending)]
            break
    if len(word) > _SHORTEST_ROOT and word[-1] == word[-2] and word[-1] not in "se":
        word = word[:-1]
    return word[:-1] if len(word) > _SHORTEST_ROOT and word[-1] == "e" else word


@lru_cache(maxsize=100_000)
def name_words(name: str) -> tuple[str, ...]:
    """Return the stems of a name's words: `StuIDs`, `stu_id` and `stuid` are (stu, id)."""
    words: list[str] = []
    for word in _NAME_BORDER.split(_CAMEL_BORDER.sub(" ", name).lower()):
        grown = _GROWN_KEY.fullmatch(word)
        if grown and word not in _NO_GROWN_KEY:
            words += [stem(grown[1]), grown[2]]
        elif word:
            words.append(stem(word))
    return tuple(words)
