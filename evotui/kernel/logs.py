"""The protocol's own logs, derived from the facts: ``harness.log``, ``agent.jsonl``, ``env.log`` (JSON lines)."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from evotui.kernel.documents import iso
from evotui.record import events as e
from evotui.record.rundir import RunDir
from evotui.record.state import RunState


class ProtocolLogs:
    """Collects the lines that facts give rise to; ``flush`` appends them. They follow the event log, never lead it."""

    def __init__(self, run: RunDir) -> None:
        self._run = run
        self._pending: dict[str, list[str]] = {}

    def take(self, record: e.Record, state: RunState) -> None:
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
                file.write("\n".join(rows) + "\n")


def lines(record: e.Record, state: RunState, run: RunDir) -> list[tuple[str, dict[str, Any]]]:
    """(file, line) pairs for one fact, in the published harness's event names where it has one."""
    harness, agent, env = "harness.log", "agent.jsonl", "env.log"
    match record.event:
        case e.RunOpened() as o:
            body = {"event": "run.open", "budget": o.budget, "env": o.env, "exp": o.run, "model": o.model}
            return [(harness, body)]
        case e.SubmissionAccepted() as a:
            body = {"event": "submit.start", "submit_index": a.submission, "cases": list(a.cases), "by": a.by,
                    "remaining_budget": state.budget.remaining}  # fmt: skip
            return [(harness, body)]
        case e.SubmissionRejected() as r:
            body = {"event": "submit.reject", "verdict": str(r.verdict), "message": r.message, "request": r.request,
                    "remaining_budget": state.budget.remaining}  # fmt: skip
            return [(harness, body)]
        case e.SnapshotTaken() as s:
            body = {"event": "submit.snapshot", "submit_index": s.submission, "tree_hash": s.tree_hash,
                    "checkpoint": f"checkpoints/{run.submit_name(s.submission)}"}  # fmt: skip
            return [(harness, body)]
        case e.SubmissionFinished() as f:
            was = state.submission(f.submission)
            seconds = round(record.time - was.accepted_at, 3)
            steps = [{"phase": str(phase), "verdict": None} for phase, _ in was.phases]
            if steps and steps[-1]["phase"] == str(f.phase):
                steps[-1]["verdict"] = str(f.verdict)
            body = {"event": "submit.finish", "submit_index": f.submission, "status": str(f.verdict), "cost": was.cost,
                    "mean_return": f.mean, "remaining_budget": state.budget.remaining, "wall_time_seconds": seconds,
                    "steps": steps}  # fmt: skip
            return [(harness, body)]
        case e.EpisodeFinished() as ep:
            body = {"event": "episode", "submit_index": ep.submission, "episode": ep.episode, "case": ep.case,
                    "return": ep.return_, "length": ep.length,
                    "fault": str(ep.fault.kind) if ep.fault is not None else None}  # fmt: skip
            return [(env, body)]
        case e.FinalizationStarted() as z:
            return [(harness, {"event": "run.auto_close.start", "n_snaps": len(z.checkpoints), "reason": z.reason})]
        case e.CheckpointValidated() as v:
            return [(harness, {"event": "eval.record", "kind": "valid", "snap": v.submission, "mean_return": v.mean})]
        case e.HeldoutScored() as h:
            body = {"event": "eval.record", "kind": "final", "snap": h.submission, "mean_return": h.mean,
                    "value": h.final_score}  # fmt: skip
            return [(harness, body)]
        case e.WorkspaceMirrored() as w:
            return [(harness, {"event": "workspace.mirror", "submit_index": w.submission})]
        case e.RunEnded() as end:
            body = {"event": "run.close", "outcome": end.status, "budget_used": state.budget.used,
                    "best_submit_index": state.selected}  # fmt: skip
            return [(harness, body)]
        case e.IncidentNoted(text=text):
            return [(harness, {"event": "incident", "text": text})]
        case e.AgentStarted(agent=kind, name=name):
            return [(agent, {"kind": "start", "agent": kind, "name": name})]
        case e.AgentThought(text=text) | e.AgentMessage(text=text):
            return [(agent, {"kind": type(record.event).__name__, "text": text})]
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
