"""Which panes fit: two columns, a smaller two columns, or one pane at a time; focus and maximising among them."""

from __future__ import annotations

from dataclasses import dataclass

WIDE, COMPACT, SINGLE = "wide", "compact", "single"


@dataclass(frozen=True, slots=True)
class Layout:
    """``form`` is wide, compact or single. Single comes from a narrow terminal or from a maximised pane."""

    form: str
    maximised: bool = False

    @property
    def single(self) -> bool:
        return self.form == SINGLE or self.maximised


def form_for(width: int, height: int) -> str:
    """The form for a terminal of that size."""
    if width < 80 or height < 20:
        return SINGLE
    return COMPACT if width < 100 or height < 32 else WIDE
