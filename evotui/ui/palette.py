"""The command palette's entries: every command of the screen below it."""

from __future__ import annotations

from functools import partial

from textual.command import DiscoveryHit, Hit, Hits, Provider

from evotui.ui.commands import Command
from evotui.ui.screens.base import CommandScreen


class Commands(Provider):
    """Reads the screen's command list; a command that can do nothing now says why."""

    def _lines(self) -> list[tuple[Command, str, str]]:
        screen = self.screen
        if not isinstance(screen, CommandScreen):
            return []
        situation = screen.situation()
        lines = []
        for command in screen.commands:
            if command.id == "palette":
                continue
            why = command.why_not(situation)
            lines.append(
                (
                    command,
                    f"{command.label}: {command.help}",
                    f"{command.key_text} · not now: {why}" if why else command.key_text,
                )
            )
        return lines

    async def discover(self) -> Hits:
        for command, words, help in self._lines():
            yield DiscoveryHit(words, partial(self._run, command.id), text=words, help=help)

    async def search(self, query: str) -> Hits:
        matcher = self.matcher(query)
        for command, words, help in self._lines():
            text = f"{words} ({command.group})"
            score = matcher.match(text)
            if score > 0:
                yield Hit(score, matcher.highlight(text), partial(self._run, command.id), text=text, help=help)

    def _run(self, id: str) -> None:
        if isinstance(self.screen, CommandScreen):
            self.screen.action_command(id)
