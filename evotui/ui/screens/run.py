"""The run screen: what its keys do, one method for each command of ``commands.RUN``."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from textual.containers import Horizontal, Vertical
from textual.widgets import Static

from evotui.protocol.budget import Rejected
from evotui.protocol.words import counted
from evotui.ui import select
from evotui.ui.agentfields import Who, program_of, texts
from evotui.ui.bundles import read_folder
from evotui.ui.feed import Controls
from evotui.ui.figures import latest_returns
from evotui.ui.resuming import wanted
from evotui.ui.screens.confirm import Choice, Confirm
from evotui.ui.screens.runview import RunView
from evotui.ui.select import Base, Eye
from evotui.ui.steering import MessageLine, request_words, when
from evotui.ui.words import plain_model, short

STAY = Choice("stay", "n", "No, stay")
STOP = Choice("stop", "y", "Yes, stop it", grave=True)
_CODE_CELLS = 16
"""Cells that long lines move by."""
FINISH = Choice("finish", "f", "Score what there is")


class RunScreen(RunView):
    """``commands.RUN`` and this class are to be read side by side."""

    # ── the cursor ───────────────────────────────────────────────────────────────────────────────────────────────

    def do_older(self) -> None:
        self.choose(select.older(self.state, self.cursor))

    def do_newer(self) -> None:
        self.choose(select.newer(self.state, self.cursor))

    def entered(self, text: str) -> bool:
        """``:12`` and ``:s012`` select a submission."""
        digits = text.lower().removeprefix("s")
        if not digits.isdecimal():
            return False
        count = len(self.state.submissions)
        if int(digits) < count:
            self.choose(select.pick(self.cursor, int(digits)))
        else:
            self.say(f"there is no submission {int(digits)}: there are {count}", "warning")
        return True

    def do_follow(self) -> None:
        self._frozen = None
        self.choose(select.follow(self.cursor))
        self.agent.follow()
        self.changed()

    def do_display(self) -> None:
        self._frozen = None if self.frozen else self._newest
        self.redraw()
        self.changed()

    def do_eye(self) -> None:
        eye = Eye.AGENT if self.cursor.eye is Eye.OBSERVER else Eye.OBSERVER
        self.choose(replace(self.cursor, eye=eye))
        self.say("agent's eye: no hidden figure is shown" if eye is Eye.AGENT else "observer's eye")

    # ── the run ──────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def controls(self) -> Controls:
        controls = self.feed.controls
        assert controls is not None, "a command that needs controls is not offered without them"
        return controls

    async def do_pause(self) -> None:
        if self._newest.gate == "run":
            self.say("the run pauses before the next submission")
            await self.controls.pause()
        else:
            self.say("the run goes on")
            await self.controls.resume()

    async def do_step_iteration(self) -> None:
        self.say("one iteration: edit, submission, feedback")
        await self.controls.step_iteration()

    async def do_step_phase(self) -> None:
        self.say("one phase")
        await self.controls.step_phase()

    async def do_stop(self) -> None:
        if text := self.get_selected_text():  # ctrl+c with a selection means what it means everywhere
            self.copy(text, "the selection")
            return
        finalizing = self._newest.finalizing is not None
        choices = [STAY, STOP] if finalizing or not self._newest.submissions else [STAY, FINISH, STOP]
        detail = "The record stays whole. The episodes spent stay spent. ^c again stops it."
        await self._stop("Stop this run?", detail, choices, again="stop")

    async def _stop(self, question: str, detail: str, choices: list[Choice], again: str = "") -> str:
        answer = await self.ask_while_live(Confirm(question, detail, choices, again=again))
        if self.feed.controls is None or answer == "stay":
            return answer
        if answer == "finish":
            self.say("the agent ends; then what there is will be validated and scored")
            await self.controls.finalize()
        elif answer == "stop":
            self.say("stopping")
            await self.controls.stop()
        return answer

    async def do_leave(self) -> None:
        if self.feed.controls is not None and self.feed.live:
            answer = await self._stop(
                "Leave a run that is still going?",
                "This process drives it: leaving stops it. The record stays whole.",
                [STAY, Choice("stop", "y", "Stop and leave", grave=True)],
            )
            if answer != "stop":
                return
        await self.evotui.leave(self)

    async def do_resume(self) -> None:
        if await wanted(self, self.feed.run.root.name, self._newest):
            self.say("resuming …")
            await self.evotui.resume_run(self)

    async def do_branch(self) -> None:
        from evotui.ui.screens.newrun import Branch, Form, NewRunScreen

        at = self._branch_point()
        assert at is not None, "a command that needs a checkpoint is not offered without one"
        head, state = self.state.header, self.state
        left = state.budget.total - state.submissions[at].consumed_after
        options = self.limits.options
        form = Form(
            head.env, head.agent, str(left) if left > 0 else "", str(head.agent_seed), head.pools,
            head.policy_lifetime, "",
            texts(options), shlex.join(program_of(options)),
        )  # fmt: skip
        were = "episode was" if left == 1 else "episodes were"
        rest = f"{left} of {state.budget.total} {were} left after it"
        if left < 1:
            rest = f"none of {counted(state.budget.total, 'episode')} was left after it: give the branch a budget"
        words = (
            f"{head.env_version}\n\nstarts from the policy of {short(at)}\n{rest}\n"
            "cases and hidden pools as in that run"
        )
        branch = Branch(self.feed.run.root, at, form, words)
        started = await self.ask(NewRunScreen(self.evotui.launcher, branch))
        if started is not None:
            await self.evotui.show_run(*started)

    # ── the agent ────────────────────────────────────────────────────────────────────────────────────────────────

    def do_say(self) -> None:
        if self._message is None:
            self._message = MessageLine()
            row = Horizontal(Static("» ", id="message-mark"), self._message, id="saying-row")
            self.mount(Vertical(self._words, row, id="saying"), before=self.keybar)
        self._show_words()
        self._focused_before = self.focused
        self.add_class("-saying")
        self.type_into(self._message)

    def on_message_line_left(self) -> None:
        self._typing = None
        if self.has_class("-saying"):
            self.remove_class("-saying")
            if self._focused_before is not None and self.focused in (None, self._message):
                self._focused_before.focus()

    async def on_message_line_sent(self, message: MessageLine.Sent) -> None:
        if (why := self._unheard()) or self.feed.controls is None:
            message.line.value = message.text
            message.line.cursor_position = len(message.text)
            self.say(f"the message was not sent, it is kept: {why}", "warning")
            return
        try:
            await self.feed.controls.say(message.text)
        except Exception as error:  # told to the person who wrote
            self.say(f"the message was not sent: {error}", "error")
        else:
            self.say(f"sent: it reaches the agent {when(self._newest)}")

    async def do_approval(self) -> None:
        on = not self._newest.approval
        await self.controls.approve_each(on)
        self.say("each submission of the agent asks you first" if on else "submissions go on without asking")

    async def do_answer(self) -> None:
        from evotui.ui.screens.approve import ApproveScreen

        answer = await self.ask(ApproveScreen(*request_words(self._newest)))
        if answer is None or self.feed.controls is None:
            return
        approved, text = answer
        await self.controls.decide(approved, text)
        self.say("approved" if approved else "refused: the agent is told, nothing is charged")

    async def do_hand_over(self) -> None:
        await self._hand_over()

    async def _hand_over(self, start: Who | None = None) -> None:
        from evotui.ui.screens.handover import HandOverScreen

        async def give(agent: str, options: Mapping[str, str], program: tuple[str, ...]) -> None:
            await self.controls.hand_over(agent, options, program)
            self._given[agent] = Who(agent, options, shlex.join(program))

        state = self._newest
        now = state.agent_name if state.agent_live else ""
        agent = await self.ask(HandOverScreen(self.evotui.launcher, give, now, state.budget.remaining, start))
        if agent:
            self.say("it is yours: e edits, u submits" if agent == "human" else f"{agent} goes on")

    def _who(self, agent: str) -> Who:
        """An agent with the options that it had in this run."""
        if agent in self._given:
            return self._given[agent]
        if agent == self._newest.header.agent:
            return Who(agent, texts(self.limits.options), shlex.join(program_of(self.limits.options)))
        return Who(agent)

    async def do_onward(self) -> None:
        state = self._newest
        left = state.budget.remaining
        choices = [
            Choice("again", "c", f"Continue with {plain_model(state.agent_name)}"),
            Choice("other", "h", "Hand over to another agent"),
            Choice("mine", "t", "Take it yourself: edit and submit"),
            Choice("finish", "f", "Score what there is"),
            Choice("stop", "x", "Stop; the record stays open to be resumed", grave=True),
            Choice("stay", "n", "Not now"),
        ]
        detail = f"{state.agent_name} has ended ({state.agent_ended.replace('_', ' ')}) with {left} of "
        detail += f"{counted(state.budget.total, 'episode')} left."
        answer = await self.ask(Confirm("Who goes on?", detail, choices, safe="stay"))
        if self.feed.controls is None or answer in (None, "stay"):
            return
        who = self._who(state.agent)
        match answer:
            case "again":
                await self.controls.hand_over(who.agent, who.options, who.words)
                self.say(f"{state.agent_name} goes on")
            case "other":
                self.evotui.ahead = []
                await self._hand_over()
            case "mine":
                await self.controls.hand_over("human", {})
                self.say("it is yours: e edits, u submits")
            case "finish":
                self.say("what there is will be validated and scored")
                await self.controls.finalize()
            case "stop":
                self.say("stopping")
                await self.controls.stop()

    def do_folds(self) -> None:
        self.agent.fold()
        self.say("long entries unfolded" if self.agent.tail.unfolded else "long entries folded")

    # ── the policy ───────────────────────────────────────────────────────────────────────────────────────────────

    async def do_edit(self) -> None:
        await self._alone(self._edit)

    async def do_code(self) -> None:
        await self._alone(self._code)

    async def _alone(self, edit: Callable[[], Awaitable[None]]) -> None:
        """A key that was pressed twice is handled twice, the second time beside the first: only one editor opens."""
        if self._editing:
            self.say("the policy is being edited already")
            return
        self._editing = True
        try:
            await edit()
        finally:
            self._editing = False

    async def _edit(self) -> None:
        if self._edit_file is None:
            from evotui.ui.editor import NoEditor, find_editor

            try:
                find_editor()
            except NoEditor as error:
                self.say(f"{error}: the built-in editor takes its place")
                await self._code()
                return
        controls = self.controls
        before = await asyncio.to_thread(read_folder, controls.system)
        path = controls.system / "policy.py"
        player = self.environment.player
        if player is not None:
            player.hold(True)
        try:
            trouble = await self._open_editor(path)
        finally:
            if player is not None:
                player.hold(self.frozen)
        changed = await controls.edited(before)
        told = f"edited {', '.join(changed)}: u submits it" if changed else "nothing was changed"
        self.say(f"{trouble}; {told}" if trouble else told, "warning" if trouble else "")

    async def _open_editor(self, path: Path) -> str:
        """Returns what went wrong with the editor, "" where nothing did."""
        if self._edit_file is not None:
            await self._edit_file(path)
            return ""
        from evotui.ui.editor import edit

        return await edit(self.app, path)

    async def _code(self) -> None:
        from evotui.ui.screens.code import CodeScreen

        controls = self.controls
        before = await asyncio.to_thread(read_folder, controls.system)
        text = await self.ask(CodeScreen("policy.py", before.get("policy.py", "")))
        if text is None:
            self.say("nothing was changed")
            return
        # What the agent wrote meanwhile is its own edit, recorded as such; this one is laid over it.
        now = await asyncio.to_thread(read_folder, controls.system)
        await asyncio.to_thread((controls.system / "policy.py").write_text, text, "utf-8")
        await controls.edited(now)
        self.say("edited policy.py: u submits it")

    async def do_submit(self) -> None:
        from evotui.ui.screens.submit import SubmitScreen

        state = self._newest
        last = state.submissions[-1].cases if state.submissions else ()
        cases = await self.ask(SubmitScreen(state.header.n_train, state.budget, last, latest_returns(state)))
        if not cases:
            return
        self.say(f"submitting cases {cases}")
        try:
            answer: dict[str, Any] = await self.controls.submit(cases)
        except Rejected as refused:
            self.say(f"rejected, nothing was charged: {refused.message}", "error")
        else:
            self.say(f"{answer.get('submit_id', 'submission')}: {answer.get('status', 'done')}")

    def do_diff_mode(self) -> None:
        self.policy.next_mode()

    def do_diff_against(self) -> None:
        order = list(Base)
        base = order[(order.index(self.cursor.base) + 1) % len(order)]
        self.choose(replace(self.cursor, base=base))
        self.say(f"diff against the {'starting policy' if base is Base.START else base.value}")

    def do_evidence(self) -> None:
        shown = self.policy.toggle_evidence()
        self.say("evidence beside the diff" if shown else "evidence hidden")

    def do_next_hunk(self) -> None:
        self.policy.view.next_hunk()

    def do_previous_hunk(self) -> None:
        self.policy.view.previous_hunk()

    def do_code_left(self) -> None:
        self.policy.view.scroll_relative(x=-_CODE_CELLS, animate=False)

    def do_code_right(self) -> None:
        self.policy.view.scroll_relative(x=_CODE_CELLS, animate=False)

    # ── the environment ──────────────────────────────────────────────────────────────────────────────────────────

    def _spot(self) -> int:
        found = select.spotlit_view(self.state, self.cursor)
        assert found is not None, "a command that needs an episode is not offered without one"
        return found[0]

    def do_previous_episode(self) -> None:
        self.choose(select.next_episode(self.state, self.cursor, self._spot(), -1))

    def do_next_episode(self) -> None:
        self.choose(select.next_episode(self.state, self.cursor, self._spot(), 1))

    def do_spot(self) -> None:
        self.choose(select.next_spot(self.state, self.cursor, self._spot()))

    def do_replay(self) -> None:
        self.environment.replay()

    def do_drawing(self) -> None:
        self.environment.toggle_text()
        self.show_keys()

    def do_faster(self) -> None:
        self.environment.faster(1)

    def do_slower(self) -> None:
        self.environment.faster(-1)

    def do_frame_on(self) -> None:
        self.environment.frame_on()

    def do_frame_back(self) -> None:
        self.environment.frame_back()

    def do_case_map(self) -> None:
        self.score.toggle_map()

    # ── panes ────────────────────────────────────────────────────────────────────────────────────────────────────

    def do_next_pane(self) -> None:
        self.go(self._current + 1)

    def do_previous_pane(self) -> None:
        self.go(self._current - 1)

    def do_pane_1(self) -> None:
        self.go(0)

    def do_pane_2(self) -> None:
        self.go(1)

    def do_pane_3(self) -> None:
        self.go(2)

    def do_pane_4(self) -> None:
        self.go(3)

    def do_pane_5(self) -> None:
        self.go(4)

    def do_maximise(self) -> None:
        self._layout = replace(self._layout, maximised=not self._layout.maximised)
        self.lay_out()

    def do_reset(self) -> None:
        self._layout = replace(self._layout, maximised=False)
        self.lay_out()
        self.policy.set_mode(0)
        self.environment.normal_speed()
        if self.score.map:
            self.score.toggle_map()
        self.choose(replace(self.cursor, base=Base.PREVIOUS, spot=select.Spot.AUTO))

    def do_down(self) -> None:
        self._vertical(1)

    def do_up(self) -> None:
        self._vertical(-1)

    def _vertical(self, by: int) -> None:
        """Lines in a pane that scrolls; in the environment, the rule that chooses the episode."""
        if self.current is not self.environment:
            self.current.scroll_lines(by)
        elif self.situation().episode:
            self.choose(select.next_spot(self.state, self.cursor, self._spot(), by))

    def do_half_down(self) -> None:
        self.current.scroll_pages(0.5)

    def do_half_up(self) -> None:
        self.current.scroll_pages(-0.5)

    def do_top(self) -> None:
        self.current.scroll_edge(False)

    def do_bottom(self) -> None:
        self.current.scroll_edge(True)

    def do_copy(self) -> None:
        self.copy(self.current.plain(), f"the {self.current.label.lower()} pane")
