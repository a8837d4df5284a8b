"""What the home and the run screen share: keys from the command list, the key bar, the least size."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from textual import events
from textual.binding import Binding, BindingType
from textual.command import Provider
from textual.containers import Horizontal
from textual.content import Content
from textual.screen import Screen
from textual.widgets import Static

from evotui.ui.chrome import KeyBar
from evotui.ui.commands import PLACES, Command, Situation, bar, find

if TYPE_CHECKING:
    from textual.widget import Widget
    from textual.widgets import Input

    from evotui.ui.app import EvotuiApp
    from evotui.ui.commandline import CommandLine

T = TypeVar("T")

LEAST = (40, 12)
"""Columns and rows below which a screen says so instead of drawing."""


def bindings(commands: Sequence[Command]) -> list[BindingType]:
    """Textual's bindings of a command list; the ids are what a keymap rebinds."""
    return [Binding(",".join(c.keys), f"command('{c.id}')", c.label, show=False, id=c.id) for c in commands]


def palette_provider() -> type[Provider]:
    from evotui.ui.palette import Commands

    return Commands


class CommandScreen(Screen[None]):
    """A screen whose actions are the commands of its ``place``."""

    place: ClassVar[str] = ""
    AUTO_FOCUS = ""
    COMMANDS: ClassVar[set[type[Provider] | Callable[[], type[Provider]]]] = {palette_provider}
    BINDINGS: ClassVar[list[BindingType]] = []

    def __init__(self) -> None:
        super().__init__()
        self.keybar = KeyBar(id="keys")
        self.small = Static(id="too-small")
        """The sentence for a terminal that is too small; compose yields it last."""
        self._line: CommandLine | None = None
        """The command line, once somebody asked for it."""
        self._about_live: Screen[str] | None = None
        self._focused_before: Widget | None = None
        self._typing: Input | None = None
        """The field that the keys go to, from the moment somebody asked for it until it has lost the focus."""

    @property
    def evotui(self) -> EvotuiApp:
        from evotui.ui.app import EvotuiApp

        assert isinstance(self.app, EvotuiApp)
        return self.app

    @property
    def commands(self) -> tuple[Command, ...]:
        return PLACES[self.place]

    def situation(self) -> Situation:
        """What decides which commands can do something now."""
        return Situation()

    def say(self, text: str, tone: str = "") -> None:
        """One sentence in place of the key bar, for a few seconds."""
        self.keybar.say(text, tone)

    def show_keys(self) -> None:
        self.keybar.commands(bar(self.commands, self.situation()))

    # ── commands ─────────────────────────────────────────────────────────────────────────────────────────────────

    def action_command(self, id: str) -> None:
        """Do a command, or say why it can do nothing now."""
        command = find(self.commands, id)
        why = command.why_not(self.situation())
        if why and not command.typed:
            self.say(f"{command.label}: {why}", "warning")
            return
        done = getattr(self, command.method)()
        if inspect.isawaitable(done):
            if command.asks:
                self.evotui.ahead = []
            # In the background: a command may wait for the run, and keys must not wait with it.
            self.run_worker(self._guarded(command, done), group=f"command-{id}", exit_on_error=False)

    async def _guarded(self, command: Command, done: Awaitable[Any]) -> None:
        try:
            await done
        except Exception as error:  # told to the person who pressed the key
            self.say(f"{command.label}: {error}", "error")
        finally:
            if command.asks:
                self.evotui.ahead = None

    async def ask(self, dialog: Screen[T]) -> T | None:
        """Show a dialog and wait for its answer. What was typed since it was asked for is typed into it."""
        answer: asyncio.Future[T | None] = asyncio.get_running_loop().create_future()

        def answered(result: T | None) -> None:
            if not answer.done():
                answer.set_result(result)

        await self.app.push_screen(dialog, answered)
        dialog.call_after_refresh(self.evotui.type_again)
        return await answer

    async def ask_while_live(self, dialog: Screen[str]) -> str:
        """The answer to a question about something that goes on, ``stay`` where that :meth:`has_ended` meanwhile."""
        self._about_live = dialog
        try:
            return await self.ask(dialog) or "stay"
        finally:
            self._about_live = None

    def has_ended(self, what: str) -> None:
        """What is shown here has ended: a question whether to stop it has no answer any more."""
        if self._about_live is not None and self.app.screen is self._about_live:
            self._about_live.dismiss("stay")
            self.say(f"{what} has ended by itself")

    async def on_key_bar_picked(self, message: KeyBar.Picked) -> None:
        self.action_command(message.command)

    def do_help(self) -> None:
        from evotui.ui.screens.help import HelpScreen

        now = self.situation()
        known = [command for command in self.commands if not (command.seldom and command.why_not(now))]
        self.app.push_screen(HelpScreen(known, now))

    def do_palette(self) -> None:
        self.app.action_command_palette()

    # ── the command line ─────────────────────────────────────────────────────────────────────────────────────────

    def do_line(self) -> None:
        if self._line is None:
            from evotui.ui.commandline import CommandLine

            self._line = CommandLine(self.commands)
            self.mount(Horizontal(Static(":", id="colon"), self._line, id="line"), before=self.keybar)
        self._focused_before = self.focused
        self.add_class("-line")
        self.type_into(self._line)

    def on_command_line_left(self) -> None:
        self._typing = None
        if self.has_class("-line"):
            self.remove_class("-line")
            if self._focused_before is not None and self.focused in (None, self._line):
                self._focused_before.focus()

    def on_command_line_entered(self, message: CommandLine.Entered) -> None:
        from evotui.ui.commandline import match

        if self.entered(message.text.strip()):
            return
        command, why = match(self.commands, message.text)
        if command is None:
            self.say(why, "warning")
        else:
            self.action_command(command.id)

    # ── typing ───────────────────────────────────────────────────────────────────────────────────────────────────

    def type_into(self, field: Input) -> None:
        """Give the keys to a field from now on, also those that were pressed before it is on the screen."""
        self._typing = field
        self.call_later(field.focus)

    def on_descendant_blur(self, event: events.DescendantBlur) -> None:
        if event.widget is self._typing:
            self._typing = None

    def on_key(self, event: events.Key) -> None:
        # The field keeps its letters to itself: one that comes here was typed ahead of its focus.
        if self._typing is not None and event.is_printable and event.character:
            event.stop()
            event.prevent_default()
            self._typing.insert_text_at_cursor(event.character)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """A letter never fires while a field is typed into."""
        if action == "command" and self._typing is not None and parameters != ("palette",):
            return False
        return super().check_action(action, parameters)

    def entered(self, text: str) -> bool:
        """Do what a line means on this screen beside the commands; False where it means nothing more."""
        return False

    # ── commands of every screen ─────────────────────────────────────────────────────────────────────────────────

    def do_theme(self) -> None:
        from evotui.ui.theme import next_theme

        if self.app.no_color:
            self.say("NO_COLOR is set: themes would differ in nothing")
            return
        self.app.theme = next_theme(self.app.theme)
        self.say(f"theme {self.app.theme}")

    def do_suspend(self) -> None:
        with self.app.batch_update():
            self.app.action_suspend_process()

    def copy(self, text: str, what: str) -> None:
        """Put text into the terminal's clipboard and say so."""
        if not text:
            self.say("nothing to copy there")
            return
        self.app.copy_to_clipboard(text)
        self.say(f"copied {what}: {len(text.splitlines())} line{'s' * (len(text.splitlines()) != 1)}")

    # ── the least size ───────────────────────────────────────────────────────────────────────────────────────────

    def on_resize(self, event: events.Resize) -> None:
        width, height = event.size
        small = width < LEAST[0] or height < LEAST[1]
        self.set_class(small, "-too-small")
        if small:
            words = f"evotui needs {LEAST[0]} × {LEAST[1]}\nthis terminal has {width} × {height}"
            self.small.update(Content(words))
        self.resized(width, height)

    def resized(self, width: int, height: int) -> None:
        """The terminal's size changed (or is known for the first time)."""
