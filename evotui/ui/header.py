"""The run screen's first line: which run, what it does, how the display and the gate stand."""

from __future__ import annotations

from pathlib import Path

from evotui.record.state import RunState
from evotui.ui import select, words
from evotui.ui.chrome import Part
from evotui.ui.select import Cursor, Eye
from evotui.ui.widgets.paint import cut
from evotui.ui.words import short

_STAGE_INK = {"●": "bold $text-success", "○": "$text-muted", "◇": "bold $text-accent", "✓": "bold $text-success",
              "✗": "bold $text-error", "‖": "bold $text-warning"}  # fmt: skip


_LONGEST = 41
"""Cells of what the run does: an error's text must not push everything else out of the line."""


def cursor_parts(state: RunState, newest: RunState, cursor: Cursor, frozen: bool, live: bool) -> list[Part]:
    """About the display: following, a submission of so many, or frozen with what is new."""
    count = len(state.submissions)
    view = select.resolve(state, cursor)
    where = f"{short(view.submission)} of {count}" if view.submission is not None else "workspace"
    if frozen:
        ink, new = "bold $text-warning", newest.seq - state.seq
        return [Part("‖ display frozen", ink, 94), Part(where, ink, 65), Part(f"{new} new" if new else "", ink, 60)]
    if cursor.follow and live:
        return [Part("▸ following", "$text-success", 84)]
    if cursor.follow and count:
        return [Part(f"▸ {where}", "$text-muted", 84)]
    return [Part(f"▪ {where}", "bold $text-accent", 84)] if count else []


def parts(
    state: RunState,
    newest: RunState,
    cursor: Cursor,
    frozen: bool,
    live: bool,
    controls: bool,
    now: float,
    broken: bool = False,
) -> tuple[list[Part], list[Part]]:
    """Left and right parts. The gate and what the run does are the newest's: only the panes stand still.

    ``broken``: the run failed here. What the run and the display do and how isolated policies are outlive names and
    times where the line is short.
    """
    left = [Part("evotui", "bold $primary", 10)]
    opened = newest.opened
    if opened is not None:
        left += [
            Part(opened.env_version or opened.env, "bold", 85),
            Part(words.plain_model(newest.agent_name or opened.agent), "", 30),
            Part(opened.run, "$text-muted", 45),
        ]
        if opened.branched_from:
            at = f" {short(opened.branched_at)}" if opened.branched_at >= 0 else ""
            left.append(Part(f"branch of {Path(opened.branched_from).name}{at}", "$text-muted", 35))
    glyph, doing = select.stage_words(newest)
    if not live and newest.ended is None and newest.opened is not None:
        glyph, doing = "○", "stopped" if newest.agent_ended == "stopped" else "interrupted"
    if broken:
        glyph, doing = "✗", "broke off"
    gate = select.gate_words(newest)
    doing, _, rest = doing.partition(" · ")
    ink = _STAGE_INK.get(glyph, "bold")
    right = (
        []
        if (newest.held or newest.asked is not None) and live
        else [Part(cut(f"{glyph} {doing}", _LONGEST), ink, 95), Part(rest, ink, 66)]
    )
    if gate and live:
        right.insert(0, Part(f"‖ {gate}", "bold $text-warning", 96))
    right += cursor_parts(state, newest, cursor, frozen, live)
    if cursor.eye is Eye.AGENT:
        right.append(Part("◐ agent's eye", "bold $text-accent", 70))
    if newest.assisted:
        right.append(Part("assisted", "bold $text-warning", 86))
    if newest.approval and newest.asked is None and live:
        right.append(Part("asks before each", "$text-accent", 62))
    if newest.finalizing is not None and cursor.eye is Eye.OBSERVER:
        right.append(Part("◆ post-hoc", "$text-accent", 35))
    if live and not controls:
        right.append(Part("watching", "$text-muted", 40))
    if opened is not None:
        right.append(Part(f"isolation {opened.isolation_level}", "$text-muted", 83))
        end = now if live else newest.last_at
        right.append(Part(words.elapsed(end - newest.started_at), "$text-muted", 55))
    return left, right
