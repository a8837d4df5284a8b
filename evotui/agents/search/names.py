"""Names: of fields and actions, found in a task text, and made into Python identifiers."""

from __future__ import annotations

import keyword
import re

_RESERVED = {
    "obs", "np", "math", "random", "self", "action", "score", "push", "field", "phase", "energy", "angle", "speed",
    "lean", "policy", "int", "float", "min", "max", "sum", "abs", "round", "list", "tuple", "range", "u", "t",
}  # fmt: skip


def identifier(name: str, taken: set[str]) -> str:
    """A lower-case Python name for ``name``, at most 28 characters, not in ``taken`` (to which it is added)."""
    text = re.sub(r"\(.*?\)", " ", name.replace("θ", " theta ").replace("ω", " omega ").replace("'", ""))
    base = re.sub(r"[^0-9a-zA-Z]+", "_", text).strip("_").lower()[:28].strip("_") or "field"
    if base[0].isdigit():
        base = f"f_{base}"
    if keyword.iskeyword(base) or base in _RESERVED:
        base += "_value"
    found, k = base, 2
    while found in taken:
        found, k = f"{base}_{k}", k + 1
    taken.add(found)
    return found


_ROW = re.compile(
    r"^\s*(?:[|*+-]\s*)?`?(?:obs(?:ervation)?|action|a)?\s*\[?\(?"
    r"(\d{1,3}(?:\s*(?:,|-|–|to)\s*\d{1,3})*)\]?\)?`?\s*[|:.)=—–-]\s*(.+)$"
)

_INLINE = re.compile(r"`(\d{1,2})`\s*[:=–—-]?\s*([A-Za-z][^,;.:`()]*)")


def _indices(text: str) -> list[int]:
    """``"3"``, ``"0, 1"`` or ``"4-6"`` as indices; what does not ascend by ones counts as its first."""
    given = [int(n) for n in re.findall(r"\d+", text)]
    if len(given) == 2 and "," not in text and 0 < given[1] - given[0] < 512:
        return list(range(given[0], given[1] + 1))
    return given if given == list(range(given[0], given[0] + len(given))) else given[:1]


def _share(name: str, n: int) -> list[str]:
    """Names for ``n`` fields that a text describes together: "cosine and sine of an angle" gives two."""
    if n == 1:
        return [name]
    head, joint, tail = name.partition(" of ")
    parts = re.split(r",\s*(?:and\s+)?|\s+and\s+", head)
    if len(parts) == n:
        return [f"{part}{joint}{tail}" for part in parts]
    return [f"{name} {i + 1}" for i in range(n)]


def names_in_text(text: str, n: int, topic: str) -> tuple[str, ...]:
    """Names of ``n`` numbered things in a Markdown text: rows or items that count from 0 to n-1, under a heading
    that mentions ``topic`` ("observation" or "action"). Empty where the text has no such list."""
    heading = ""
    found: list[str] = []
    prose: list[str] = []
    for line in text.splitlines():
        if line.lstrip().startswith("#"):
            heading, found = line.lower(), []
            continue
        if topic in heading:
            prose.append(line)
        match = _ROW.match(line)
        if match is None:
            continue
        indices = _indices(match[1])
        if indices[0] == 0:
            found = []
        if indices[0] != len(found):
            continue
        stop = r"[|:;(=]" if len(indices) > 1 else r"[|:;,(=]|\s[–—-]\s|\.\s"
        name = re.split(stop, match[2].replace("`", "").replace("*", "").strip(" |"))[0].strip()
        found += _share(name or topic, len(indices))
        if len(found) == n and topic in heading:
            return tuple(found)
    inline = _INLINE.findall(" ".join(prose))
    if 1 < n == len(inline) and [int(i) for i, _ in inline] == list(range(n)):
        return tuple(" ".join(words.split()) for _, words in inline)
    return ()
