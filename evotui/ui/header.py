"""The run screen's first line: which run, what it does, how the display and the gate stand."""

from __future__ import annotations

from evotui.record.state import RunState
from evotui.ui import select, words
from evotui.ui.chrome import Part
from evotui.ui.select import Cursor, Eye
from evotui.ui.words import short

_STAGE_INK = {"●": "bold $text-success", "○": "$text-muted", "◇": "bold $text-accent", "✓": "bold $text-success",
              "✗": "bold $text-error", "‖": "bold $text-warning"}  # fmt: skip


def cursor_words(state: RunState, newest: RunState, cursor: Cursor, frozen: bool, live: bool) -> tuple[str, str]:
    """(words, style) about the display: following, a submission of so many, or frozen with what is new."""
    count = len(state.submissions)
    view = select.resolve(state, cursor)
    where = f"{short(view.submission)} of {count}" if view.submission is not None else "workspace"
    if frozen:
        new = newest.seq - state.seq
        return f"‖ display frozen · {where} · {new} new", "bold $text-warning"
    if cursor.follow and live:
        return "▸ following", "$text-success"
    if cursor.follow and count:
        return f"▸ {where}", "$text-muted"
    return (f"▪ {where}", "bold $text-accent") if count else ("", "")


def parts(
    state: RunState, newest: RunState, cursor: Cursor, frozen: bool, live: bool, controls: bool, now: float
) -> tuple[list[Part], list[Part]]:
    """Left and right parts. The gate and what the run does are the newest's: only the panes stand still."""
    left = [Part("evotui", "bold $primary", 10)]
    opened = newest.opened
    if opened is not None:
        left += [
            Part(opened.env_version or opened.env, "bold", 85),
            Part(newest.agent_name or opened.agent, "", 40),
            Part(opened.run, "$text-muted", 45),
        ]
    glyph, doing = select.stage_words(newest)
    if not live and newest.ended is None and newest.opened is not None:
        glyph, doing = "○", "stopped" if newest.agent_ended == "stopped" else "interrupted"
    gate = select.gate_words(newest)
    right = [] if newest.held and live else [Part(f"{glyph} {doing}", _STAGE_INK.get(glyph, "bold"), 95)]
    if gate and live:
        right.insert(0, Part(f"‖ {gate}", "bold $text-warning", 96))
    said, style = cursor_words(state, newest, cursor, frozen, live)
    right.append(Part(said, style, 94 if frozen else 60))
    if cursor.eye is Eye.AGENT:
        right.append(Part("◐ agent's eye", "bold $text-accent", 70))
    if newest.assisted:
        right.append(Part("✋ assisted"[2:], "bold $text-warning", 50))
    if newest.finalizing is not None and cursor.eye is Eye.OBSERVER:
        right.append(Part("◆ post-hoc", "$text-accent", 30))
    if live and not controls:
        right.append(Part("watching", "$text-muted", 35))
    if opened is not None:
        right.append(Part(f"isolation {opened.isolation_level}", "$text-muted", 25))
        end = now if live else newest.last_at
        right.append(Part(words.elapsed(end - newest.started_at), "$text-muted", 55))
    return left, right
