"""The looks: five themes of our own, registered with the app; every colour of a widget comes from one of them.

Colours never speak alone: whatever they say is also said by a glyph or a word.
"""

from __future__ import annotations

from textual.theme import Theme

DARK = Theme(
    name="observatory",
    dark=True,
    primary="#5cc4c4",
    secondary="#86a8e0",
    accent="#f0b664",
    foreground="#d3dae0",
    background="#0e1317",
    surface="#12181d",
    panel="#1b242b",
    boost="#202b33",
    success="#8ccf7e",
    warning="#e8a25c",
    error="#ef7b72",
    variables={
        "text-muted": "#8b989f",
        "text-disabled": "#5f6c74",
        "border": "#5cc4c4",
        "rule": "#2b3840",
        "footer-key-foreground": "#f0b664",
        "input-selection-background": "#5cc4c4 30%",
        "block-cursor-background": "#24444a",
        "block-cursor-foreground": "#eef4f6",
        "block-cursor-text-style": "none",
        "block-cursor-blurred-background": "#1d2a30",
        "scrollbar": "#2b3840",
        "scrollbar-background": "#12181d",
        "scrollbar-corner-color": "#12181d",
    },
)

LIGHT = Theme(
    name="daylight",
    dark=False,
    primary="#0b6e75",
    secondary="#3559a8",
    accent="#9a5a00",
    foreground="#1d2730",
    background="#eceae4",
    surface="#f6f4ef",
    panel="#e2ded4",
    boost="#d9d4c8",
    success="#2f7a2a",
    warning="#9c5600",
    error="#b3261e",
    variables={
        "text-muted": "#5d6469",
        "text-disabled": "#8d9092",
        "border": "#0b6e75",
        "rule": "#c3bdae",
        "footer-key-foreground": "#9a5a00",
        "block-cursor-background": "#bfdedd",
        "block-cursor-foreground": "#10201f",
        "block-cursor-text-style": "none",
        "block-cursor-blurred-background": "#dbe4e0",
        "scrollbar": "#c3bdae",
        "scrollbar-background": "#f6f4ef",
        "scrollbar-corner-color": "#f6f4ef",
    },
)

CONTRAST = Theme(
    name="contrast",
    dark=True,
    primary="#00ffff",
    secondary="#9ecbff",
    accent="#ffd700",
    foreground="#ffffff",
    background="#000000",
    surface="#000000",
    panel="#1a1a1a",
    boost="#262626",
    success="#5fff5f",
    warning="#ffb347",
    error="#ff6b6b",
    variables={
        "border": "#ffffff",
        "rule": "#8a8a8a",
        "text-muted": "#d0d0d0",
        "text-disabled": "#a8a8a8",
        "footer-key-foreground": "#ffd700",
        "block-cursor-background": "#ffffff",
        "block-cursor-foreground": "#000000",
        "block-cursor-text-style": "bold",
        "block-cursor-blurred-background": "#4d4d4d",
        "scrollbar": "#8a8a8a",
        "scrollbar-background": "#000000",
        "scrollbar-corner-color": "#000000",
    },
)

BLIND_DARK = Theme(
    name="safe-dark",
    dark=True,
    # Okabe and Ito's set: told apart with every common colour blindness. Blue is gain, vermilion is loss.
    primary="#56b4e9",
    secondary="#cc79a7",
    accent="#f0e442",
    foreground="#dde2e6",
    background="#101214",
    surface="#15181b",
    panel="#1f2428",
    boost="#262c31",
    success="#56b4e9",
    warning="#e69f00",
    error="#d55e00",
    variables={
        "text-muted": "#929ba1",
        "text-disabled": "#656d73",
        "border": "#56b4e9",
        "rule": "#323a40",
        "footer-key-foreground": "#f0e442",
        "block-cursor-background": "#24465a",
        "block-cursor-foreground": "#f2f6f8",
        "block-cursor-text-style": "none",
        "block-cursor-blurred-background": "#1f2d36",
        "scrollbar": "#323a40",
        "scrollbar-background": "#15181b",
        "scrollbar-corner-color": "#15181b",
    },
)

BLIND_LIGHT = Theme(
    name="safe-light",
    dark=False,
    primary="#005f94",
    secondary="#8a3d6b",
    accent="#7a4f00",
    foreground="#1d2328",
    background="#eeeeec",
    surface="#f8f8f6",
    panel="#e2e3e1",
    boost="#d8dad8",
    success="#005f94",
    warning="#8a5a00",
    error="#a64400",
    variables={
        "text-muted": "#5b6266",
        "text-disabled": "#8b8f91",
        "border": "#005f94",
        "rule": "#bfc3c4",
        "footer-key-foreground": "#7a4f00",
        "block-cursor-background": "#c3dcec",
        "block-cursor-foreground": "#101820",
        "block-cursor-text-style": "none",
        "block-cursor-blurred-background": "#dde5ea",
        "scrollbar": "#bfc3c4",
        "scrollbar-background": "#f8f8f6",
        "scrollbar-corner-color": "#f8f8f6",
    },
)

THEMES: tuple[Theme, ...] = (DARK, LIGHT, CONTRAST, BLIND_DARK, BLIND_LIGHT)
DEFAULT = DARK.name
ANSI = ("ansi-dark", "ansi-light")
"""Textual's own, in the terminal's sixteen colours."""


def next_theme(name: str) -> str:
    """The theme after ``name`` in the order of :data:`THEMES`, then :data:`ANSI`; unknown names start anew."""
    names = [*(theme.name for theme in THEMES), *ANSI]
    return names[(names.index(name) + 1) % len(names)] if name in names else names[0]
