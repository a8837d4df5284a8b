"""Keys: read from the environment or from the one file that was named, and kept out of every word that is said."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

_SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL", re.IGNORECASE)
_LINE = re.compile(r"^\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(.*?)\s*$")
_LOOKS_LIKE_ONE = re.compile(r"\b(?:sk|pk|rk|key|xai|gsk|AIza)[-_A-Za-z0-9]{16,}|(?i:\bbearer)\s+[-_.A-Za-z0-9]{8,}")
SHOWN = "[key]"


def read_env_file(path: Path) -> dict[str, str]:
    """``KEY=value`` lines; ``#`` begins a comment, quotes around a value are taken off. Raises OSError."""
    values: dict[str, str] = {}
    for line in path.read_text("utf-8", errors="replace").splitlines():
        found = _LINE.match(line)
        if found is None or line.lstrip().startswith("#"):
            continue
        value = found.group(2)
        if value[:1] in ("'", '"') and value[-1:] == value[:1] and len(value) > 1:
            value = value[1:-1]
        else:
            value = re.split(r"\s#", value, maxsplit=1)[0].rstrip()
        values[found.group(1)] = value
    return values


def secrets_of(environment: Mapping[str, str]) -> list[str]:
    """Values that must not be shown: those of variables that are named like a secret, the longest first."""
    values = {value for name, value in environment.items() if len(value) >= 6 and _SECRET_NAME.search(name)}
    return sorted(values, key=len, reverse=True)


def redact(text: str, secrets: Iterable[str]) -> str:
    """``text`` without the secrets, and without what looks like a key."""
    for secret in secrets:
        text = text.replace(secret, SHOWN)
    return _LOOKS_LIKE_ONE.sub(SHOWN, text)
