"""The protocol's own logs, derived from the facts: ``harness.log``, ``agent.jsonl``, ``env.log`` (JSON lines)."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from evotui.kernel.documents import iso
from evotui.kernel.texts import PROTOCOL_VERSION
from evotui.protocol.verdict import Phase
from evotui.record import events as e
from evotui.record.rundir import RunDir
from evotui.record.state import RunState


class ProtocolLogs:
    """Collects the lines that facts give rise to; ``flush`` appends them. They follow the event log, never lead it."""

    def __init__(self, run: RunDir) -> None:
        self._run = run
        self._pending: dict[str, list[str]] = {}

    def take(self, record: e.Record, state: RunState) -> None:
        if isinstance(record.event, e.RunOpened):  # run.json names all three, also where one stays empty
            self._pending.update({"harness.log": [], "agent.jsonl": [], "env.log": []})
        for name, body in lines(record, state, self._run):
            body = {"timestamp": iso(record.time), **body}
            self._pending.setdefault(name, []).append(json.dumps(body, ensure_ascii=False, sort_keys=True))

    async def flush(self) -> None:
        if self._pending:
            pending, self._pending = self._pending, {}
            await asyncio.to_thread(self._write, pending)

    def _write(self, pending: dict[str, list[str]]) -> None:
        for name, rows in pending.items():
            path: Path = self._run.logs / name
            with path.open("a", encoding="utf-8", errors="replace") as file:
                file.writelines(row + "\n" for row in rows)


def lines(record: e.Record, state: RunState, run: RunDir) -> list[tuple[str, dict[str, Any]]]:
    """(file, line) pairs for one fact, in the published harness's event names where it has one."""
    harness, agent, env = "harness.log", "agent.jsonl", "env.log"
    match record.event:
        case e.RunOpened() as o:
            body = {"event": "run.open", "budget": o.budget, "env": o.env, "exp": o.run, "model": o.model,
                    "protocol": PROTOCOL_VERSION}  # fmt: skip
            return [(harness, body)]
        case e.SubmissionAccepted() as a:
            body = {"event": "submit.start", "submit_index": a.submission, "cases": list(a.cases), "by": a.by,
                    "remaining_budget": state.budget.remaining + len(a.cases)}  # fmt: skip
            return [(harness, body)]
        case e.SubmissionRejected() as r:
            body = {"event": "submit.reject", "verdict": str(r.verdict), "message": r.message, "request": r.request,
                    "remaining_budget": state.budget.remaining}  # fmt: skip
            return [(harness, body)]
        case e.SnapshotTaken() as s:
            figures = {key: s.metrics.get(key) for key in ("source_lines", "cyclomatic_total")}
            body = {"event": "submit.snapshot", "submit_index": s.submission, "tree_hash": s.tree_hash, **figures,
                    "cases": list(state.submission(s.submission).cases),
                    "checkpoint": f"checkpoints/{run.submit_name(s.submission)}"}  # fmt: skip
            return [(harness, body)]
        case e.SubmissionFinished() as f:
            return [(harness, body) for body in _finished(f, record, state, run)]
        case e.EpisodeFinished() as ep:
            body = {"event": "episode", "submit_index": ep.submission, "episode": ep.episode, "case": ep.case,
                    "return": ep.return_, "length": ep.length,
                    "fault": str(ep.fault.kind) if ep.fault is not None else None}  # fmt: skip
            return [(env, body)]
        case e.FinalizationStarted() as z:
            body = {"event": "run.auto_close.start", "n_snaps": len(z.checkpoints), "reason": z.reason,
                    "budget_used": state.budget.used}  # fmt: skip
            return [(harness, body)]
        case e.CheckpointValidated() as v:
            body = {"event": "eval.record", "kind": "valid", "snap": v.submission, "mean_return": v.mean,
                    "value": v.mean, "pool": f"{state.header.env}/validation"}  # fmt: skip
            return [(harness, body)]
        case e.HeldoutScored() as h:
            body = {"event": "eval.record", "kind": "final", "snap": h.submission, "mean_return": h.mean,
                    "value": h.final_score, "pool": f"{state.header.env}/heldout"}  # fmt: skip
            return [(harness, body)]
        case e.WorkspaceMirrored() as w:
            body = {"event": "workspace.mirror", "submit_index": w.submission, "workspace": "workspace/system",
                    "checkpoint": f"checkpoints/{run.submit_name(w.submission)}"}  # fmt: skip
            return [(harness, body)]
        case e.RunEnded() as end:
            scored = state.heldout.score if state.heldout is not None else None
            score = scored.final_score if scored is not None else 0.0 if end.status == "no_ok_submit" else None
            closed = {"event": "run.close", "outcome": end.status, "state": "failed" if end.error else "closed",
                      "budget_used": state.budget.used, "budget_left": state.budget.remaining,
                      "best_submit_index": state.selected}  # fmt: skip
            finished = {"event": "run.auto_close.finish", "status": end.status, "final_score": score,
                        "best_submit_index": state.selected,
                        "n_validation": sum(s.val_score is not None for s in state.submissions)}  # fmt: skip
            return [(harness, closed), (harness, finished)]
        case e.IncidentNoted(text=text):
            return [(harness, {"event": "incident", "text": text})]
        case e.AgentStarted(agent=kind, name=name):
            return [(agent, {"kind": "start", "agent": kind, "name": name})]
        case e.AgentThought(text=text):
            return [(agent, {"kind": "thought", "text": text})]
        case e.AgentMessage(text=text):
            return [(agent, {"kind": "reply", "text": text})]
        case e.ToolCalled(call=call, name=name, arguments=arguments):
            return [(agent, {"kind": "tool_call", "call": call, "name": name, "arguments": dict(arguments)})]
        case e.ToolReturned(call=call, ok=ok, text=text):
            return [(agent, {"kind": "tool_result", "call": call, "ok": ok, "text": text})]
        case e.AgentSession() as begun:
            body = {"kind": "session", "session": begun.session, "model": begun.model, "version": begun.version}
            return [(agent, body)]
        case e.AgentRetried() as again:
            body = {"kind": "retry", "reason": again.reason, "seconds": again.seconds, "attempt": again.attempt}
            return [(agent, body)]
        case e.AgentRaw(what=what, text=text):
            return [(agent, {"kind": "raw", "what": what, "text": text})]
        case e.WriteReverted(path=path, what=what):
            return [(agent, {"kind": "reverted", "path": path, "what": what}),
                    (harness, {"event": "write.reverted", "path": path, "what": what})]  # fmt: skip
        case e.Intervened(what=what, text=text):
            return [(harness, {"event": "intervention", "what": what, "text": text})]
        case e.MessageDelivered(texts=texts, how=how):
            return [(agent, {"kind": "message", "texts": list(texts), "how": how})]
        case e.UsageReported() as usage:
            body = {"kind": "usage", "model": usage.model, "input_tokens": usage.input_tokens,
                    "cached_tokens": usage.cached_tokens, "cache_write_tokens": usage.cache_write_tokens,
                    "output_tokens": usage.output_tokens, "cost_usd": usage.cost_usd,
                    "estimated": usage.estimated}  # fmt: skip
            return [(agent, body)]
        case e.FileEdited() as edit:
            body = {"kind": "edit", "path": edit.path, "sha256": edit.sha256, "added": edit.added,
                    "removed": edit.removed, "by": edit.by}  # fmt: skip
            return [(agent, body)]
        case e.AgentEnded(reason=reason, text=text):
            return [(agent, {"kind": "end", "reason": reason, "text": text})]
        case _:
            return []


def _finished(
    fact: e.SubmissionFinished, record: e.Record, state: RunState, run: RunDir
) -> tuple[dict[str, Any], dict[str, Any]]:
    """``submit.feedback`` and ``submit.finish``; the verdict stands at the step that failed, if one did."""
    was = state.submission(fact.submission)
    steps: list[dict[str, Any]] = [{"phase": str(Phase.REQUEST), "verdict": None}]
    steps += [{"phase": str(phase), "verdict": None} for phase, _ in was.phases]
    if not was.ok:
        failed = next((step for step in steps if step["phase"] == str(fact.phase)), steps[-1])
        failed["verdict"] = str(fact.verdict)
    shared = {"submit_index": fact.submission, "status": str(fact.verdict), "cost": was.cost, "mean_return": fact.mean,
              "wall_time_seconds": round(record.time - was.accepted_at, 3)}  # fmt: skip
    feedback = {"event": "submit.feedback", "n_episodes": was.cost, **shared,
                "path": f"workspace/feedback/{run.submit_name(fact.submission)}"}  # fmt: skip
    finish = {"event": "submit.finish", "code": 200, "snap": fact.submission if was.tree_hash else None,
              "remaining_budget": state.budget.remaining, "steps": steps, **shared}  # fmt: skip
    return feedback, finish
