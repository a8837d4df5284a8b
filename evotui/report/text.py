"""Plain text about runs: aligned tables, progress lines, the result of a check. No color, no control characters."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evotui.analysis.scores import auxiliary_scores, mean_interval, since_improvement
from evotui.protocol.budget import format_cases
from evotui.protocol.words import counted
from evotui.record import events as e
from evotui.record.breach import Breach
from evotui.record.lock import is_held
from evotui.record.rundir import RunDir
from evotui.record.state import RunState, Submission
from evotui.record.summary import RunSummary
from evotui.report.jsondoc import status_of

if TYPE_CHECKING:  # a listing needs no check
    from evotui.record.check import Findings


HURT = "†"
"""Marks a held-out mean that episodes count in which a fault ended."""
HURT_NOTE = f"{HURT} with held-out episodes that a fault ended: these count with what they had earned"


def plain(text: str, most: int = 200) -> str:
    """Foreign text on one line: whatever does not print is shown escaped, and what is too long is cut."""
    line = "".join(c if c.isprintable() else ("⏎" if c == "\n" else f"\\x{ord(c):02x}") for c in text[: most + 1])
    return line if len(line) <= most else line[: most - 1] + "…"


def number(value: float | None, digits: int = 1) -> str:
    """A figure for a table; "–" for none, more digits for small ones."""
    if value is None:
        return "–"
    if value == 0 or not math.isfinite(value):
        return f"{value:.0f}" if value == 0 else str(value)
    return f"{value:.{digits if abs(value) >= 10 else digits + 1}f}"


def duration(seconds: float) -> str:
    """``7s``, ``4m05s``, ``3h07m``."""
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02d}s"
    return f"{whole // 3600}h{whole % 3600 // 60:02d}m"


def heldout_cell(mean: float | None, faults: int) -> str:
    """A held-out mean for a table, marked where a fault ended some of its episodes; "–" for none."""
    return number(mean) + (HURT if mean is not None and faults else "")


def table(head: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> str:
    """Columns aligned by their widest cell; those in ``right`` (places) to the right."""
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]
    lines = [
        "  ".join(cell.rjust(width) if i in right else cell.ljust(width) for i, (cell, width) in enumerate(cells))
        for cells in (list(zip(row, widths, strict=True)) for row in [head, *rows])
    ]
    return "\n".join(line.rstrip() for line in lines)


def list_text(found: Sequence[RunSummary]) -> str:
    """The runs of a folder, newest last, then why some cannot be read. ``best`` is the validation score of the selected
    submission."""
    rows, wrong = [], []
    for s in sorted(found, key=lambda s: (s.started_at, s.name)):
        if s.problem:
            when = _minute(s.started_at) if s.started_at else ""
            rows.append([s.name, s.env_version or s.env, s.model, s.word, "", "", "", "", "", when])
            wrong.append(f"{s.name}: {plain(s.problem)}")
            continue
        rows.append([
            s.name,
            s.env_version or s.env,
            s.model,
            s.word,
            f"{s.used}/{s.total}",
            str(s.submissions),
            number(s.best_in_loop),
            number(s.best[1]) if s.best is not None else "–",
            heldout_cell(s.heldout[0] if s.heldout is not None else None, s.faults),
            _minute(s.started_at),
        ])  # fmt: skip
    head = ["run", "environment", "agent", "state", "budget", "submissions", "train", "best", "held-out", "started"]
    hurt = [f"{s.name} {s.faults} of {s.heldout[2]}" for s in found if s.faults and s.heldout is not None]
    notes = [f"{HURT_NOTE} ({', '.join(hurt[:_NAMED])}{', …' if len(hurt) > _NAMED else ''})"] if hurt else []
    more = [*notes, *wrong]
    return "\n".join([table(head, rows, right=(4, 5, 6, 7, 8)), *([""] if more else []), *more])


_NAMED = 6
"""Runs that a footnote names."""


def _minute(moment: float) -> str:
    return datetime.fromtimestamp(moment).strftime("%Y-%m-%d %H:%M")


def show_text(state: RunState, run: RunDir) -> str:
    """A run for a person: what it was, how it went, submission by submission, and what was measured after it."""
    head = state.header
    live = state.ended is None and is_held(run)
    facts = [
        ("run", f"{head.run}  {run.root}"),
        ("environment", f"{head.env_version} ({head.env})"),
        ("agent", f"{head.agent} ({head.model}), seed {head.agent_seed}" if head.model != head.agent
         else f"{head.agent}, seed {head.agent_seed}"),
        ("state", _state_line(state, live)),
        *([("ended", early)] if (early := ended_line(state)) else []),
        ("budget", f"{state.budget.used} of {counted(state.budget.total, 'episode')} used, "
                   f"{since_improvement(state)} since the last improvement"),
        ("rules", f"{head.pools} pools, policy lifetime {head.policy_lifetime}, isolation {head.isolation_level}"
                  + (", assisted" if state.assisted else "")),
        ("time", duration(state.last_at - state.started_at)),
    ]  # fmt: skip
    if state.usage.calls:
        cost = f", ${state.usage.cost_usd:.4f}" if state.usage.cost_usd is not None else ""
        tokens = f"{state.usage.input_tokens} in, {state.usage.output_tokens} out"
        facts.append(("model use", f"{counted(state.usage.calls, 'call')}, {tokens} tokens{cost}"))
    width = max(len(name) for name, _ in facts)
    blocks = ["\n".join(f"{name.ljust(width)}  {text}" for name, text in facts)]
    if state.submissions:
        head_row = ["", "verdict", "episodes", "cases", "mean return", "95 % interval", "validation"]
        blocks.append(table(head_row, [_row(state, s) for s in state.submissions], right=(2, 4)))
    after = _after(state)
    if after:
        blocks.append(after)
    return "\n\n".join(blocks)


def _state_line(state: RunState, live: bool) -> str:
    status = status_of(state, live)
    words = {
        "completed": "finished",
        "no_ok_submit": "failed: no submission ended ok",
        "error": "failed",
        "running": f"running: {state.stage}",
        "interrupted": f"interrupted while {state.stage}",
    }
    error = state.ended.error if state.ended is not None else None
    return words.get(status, status) + (f": {plain(error)}" if error else "")


def result_line(state: RunState, run: RunDir) -> str:
    """How a run ended, in a line: selected submission, held-out mean and final score, or how to go on with it."""
    used = f"{state.budget.used} of {counted(state.budget.total, 'episode')} used"
    if state.ended is None:
        return f"{run.root}: stopped, {used}; `evotui run --resume {run.root}` goes on with it"
    held = state.heldout.score if state.heldout is not None else None
    line = f"{run.root}: {_state_line(state, False)}, {used}"
    if held is None:
        return line
    which = f"s{held.submission:0{state.width()}d}"
    figures = f"held-out mean {number(held.mean)} over {counted(held.n, 'case')}"
    figures += f", final score {number(held.final_score)}"
    faults = faults_told(state.heldout.episodes, "held-out episode") if state.heldout is not None else ""
    among = f"{which} of {counted(len(state.submissions), 'submission')}"
    return ", ".join(part for part in (line, among, figures, faults) if part)


def faults_told(
    episodes: Sequence[e.EpisodeFinished] | Sequence[e.HiddenEpisodeFinished], what: str = "episode"
) -> str:
    """How many episodes a fault ended, and of which kinds: such an episode counts with what it had earned by then,
    which is more than others get where every step costs. "" where there is none."""
    kinds = Counter(str(ep.fault.kind) for ep in episodes if ep.fault is not None)
    if not kinds:
        return ""
    return f"{kinds.total()} of {counted(len(episodes), what)} ended by a fault ({', '.join(sorted(kinds))})"


def ended_because(state: RunState) -> str:
    """What the agent's end said, the latest one's."""
    for record in reversed(state.transcript):
        if isinstance(record.event, e.AgentEnded):
            return record.event.text
    return ""


def ended_line(state: RunState) -> str:
    """Why the run ended before its budget was spent, such as ``limit: 3 turns``; "" where it did not."""
    reason = state.finalize_reason
    if not reason and state.agent_ended in ("limit", "failed"):
        reason = state.agent_ended
    if reason in ("", "spent"):
        return ""
    text = plain(ended_because(state))
    return reason.replace("_", " ") + (f": {text}" if text else "")


def _row(state: RunState, s: Submission) -> list[str]:
    interval = mean_interval([ep.return_ for ep in s.in_order]) if s.ok else None
    verdict = str(s.verdict) if s.verdict is not None else f"unfinished ({s.phase})"
    hurt = sum(ep.fault is not None for ep in s.episodes) if s.ok else 0
    why = f": {plain(s.message, 60)}" if s.message and not s.ok else f", {hurt} by a fault" if hurt else ""
    cases = format_cases(s.cases)
    return [
        f"s{s.index:0{state.width()}d}" + ("*" if s.index == state.selected else ""),
        verdict + why,
        str(s.cost),
        cases if len(cases) <= 24 else cases[:23] + "…",
        number(s.mean),
        f"{number(interval[0])} … {number(interval[1])}" if interval is not None else "",
        number(s.val_score) if s.val_score is not None else "",
    ]


def _after(state: RunState) -> str:
    """What was measured after the agent was gone."""
    if state.selected is None:
        return ""
    lines = [
        f"selected by validation: s{state.selected:0{state.width()}d}, "
        f"mean {number(state.submission(state.selected).val_score)} over {counted(state.header.n_validation, 'case')}"
    ]
    held = state.heldout.score if state.heldout is not None else None
    if held is not None:
        faults = faults_told(state.heldout.episodes) if state.heldout is not None else ""
        spread = f"mean {number(held.mean)}, std {number(held.std)} over {counted(held.n, 'case')}"
        lines.append(f"held-out: {spread}{'; ' + faults if faults else ''}")
        scores = auxiliary_scores(state)
        lines.append(
            f"validation − held-out: {number(scores['val_heldout_gap'])}, "
            f"best train − held-out: {number(scores['held_out_gap'])}"
        )
        if scores["auc_in_loop"] is not None:
            half, most = (scores[f"episodes_to_{share}pct"] for share in (50, 80))
            lines.append(
                f"learning: area {number(scores['auc_in_loop'])} of 100, half of the way to the reference "
                f"{_after_episodes(half)}, 80 % {_after_episodes(most)}"
            )
        kind = "0 random … 100 reference" if held.final_score_kind == "normalized" else "raw: no anchors measured"
        lines.append(f"final score: {number(held.final_score)} ({kind})")
    return "\n".join(lines)


def _after_episodes(count: float | None) -> str:
    return f"after {counted(count, 'episode')}" if count is not None else "never"


def progress_line(state: RunState, now: float) -> str:
    """One line about a run under way: stage, episodes, rate and time left of the stage, best mean train return.

    ``now`` in seconds since the epoch. The rate counts episodes since the stage began.
    """
    if state.opened is None:
        return "opening"
    head = state.header
    if state.stage == "ended":
        return f"{head.env_version}  {_state_line(state, False)}  {_figures(state)}".rstrip()
    done, total, began = _stage(state)
    elapsed = now - began
    rate = done / elapsed if elapsed > 0 else 0.0
    parts = [f"{head.env_version}  {state.stage}", f"{done}/{total} episodes"]
    if done and rate > 0:
        parts.append(f"{rate:.1f}/s" if rate >= 1 else f"{rate * 60:.1f}/min")
        parts.append(f"about {duration((total - done) / rate)} left" if done < total else "done")
    if state.held:
        parts.append(f"held at the gate before {plain(state.held, 60)}")
    parts.append(_figures(state))
    return "  ".join(part for part in parts if part)


def _figures(state: RunState) -> str:
    parts = []
    best = state.best_in_loop
    if best is not None:
        parts.append(f"best train mean {number(best.mean)} (s{best.index:0{state.width()}d})")
    held = state.heldout.score if state.heldout is not None else None
    if held is not None:
        parts.append(f"held-out {number(held.mean)}")
    return "  ".join(parts)


def _stage(state: RunState) -> tuple[int, int, float]:
    """Episodes done and to do in this stage, and when it began (seconds since the epoch)."""
    if state.stage == "evolving":
        # What a submission left unrun was charged all the same: it will not be done any more.
        done = sum(s.cost if s.verdict is not None else len(s.episodes) for s in state.submissions)
        return done, state.budget.total, state.started_at
    if state.stage == "held-out":
        done = len(state.heldout.episodes) if state.heldout is not None else 0
        return done, state.header.n_heldout, _when(state, e.CheckpointSelected)
    checkpoints = state.finalizing or ()
    done = sum(len(state.submission(i).validation) for i in checkpoints)
    return done, len(checkpoints) * state.header.n_validation, _when(state, e.FinalizationStarted)


def _when(state: RunState, kind: type[e.Event]) -> float:
    return next((r.time for r in reversed(state.transcript) if isinstance(r.event, kind)), state.started_at)


def check_text(run: Path, findings: Findings) -> str:
    """What the check of a record found: a line for each breach, and for each thing to know that is none."""
    breaches = findings.breaches
    notes = [f"note: {plain(note)}" for note in findings.notes]
    if not breaches:
        return "\n".join([f"{run.name}: {_HOLDS}", *notes])
    rows = [[b.code, plain(b.where, 80), plain(b.sentence, 300)] for b in breaches]
    return "\n".join([f"{run.name}: {_breaches(breaches)}", table(["what", "where", "why"], rows), *notes])


_HOLDS = "the record holds"


def _breaches(breaches: Sequence[Breach]) -> str:
    return f"{len(breaches)} breach{'es' if len(breaches) > 1 else ''}"


def check_line(name: str, findings: Findings, problem: str = "") -> str:
    """What the check of a record found, in a line, with the first breach."""
    if problem:
        return f"{name}: not checked: {plain(problem)}"
    if not findings.breaches:
        return "; ".join([f"{name}: {_HOLDS}", *map(plain, findings.notes)])
    first = findings.breaches[0]
    return f"{name}: {_breaches(findings.breaches)}: {plain(first.where, 80)}: {plain(first.sentence)}"


def checks_text(runs: Sequence[Mapping[str, Any]]) -> str:
    """How many of the runs that were checked hold, from their documents."""
    wrong, unread = sum(bool(run["breaches"]) for run in runs), sum(run["problem"] is not None for run in runs)
    parts = [f"{n} {word}" for n, word in ((len(runs) - wrong - unread, "in order"), (wrong, "with breaches")) if n]
    parts += [f"{unread} not checked"] if unread else []
    return f"{len(runs)} run{'s' * (len(runs) != 1)}: {', '.join(parts)}"
