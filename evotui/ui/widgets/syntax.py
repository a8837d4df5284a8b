"""Syntax of Python source as spans of a few categories, remembered by content.

The categories are named after component classes, so that the theme decides how code looks. A file of 500 lines costs
about 20 ms once; callers with large files call `spans` in a thread, the memory is shared.
"""

from __future__ import annotations

from functools import lru_cache

from pygments.lexers.python import PythonLexer  # type: ignore[import-untyped]
from pygments.token import Token, _TokenType  # type: ignore[import-untyped]

SyntaxSpan = tuple[int, int, str]

CATEGORIES = ("keyword", "constant", "string", "doc", "number", "comment", "function", "class", "builtin", "operator")
_CATEGORY: dict[_TokenType, str] = {
    Token.Keyword: "keyword",
    Token.Keyword.Constant: "constant",
    Token.Operator.Word: "keyword",
    Token.Literal.String: "string",
    Token.Literal.String.Doc: "doc",
    Token.Literal.String.Interpol: "number",
    Token.Literal.Number: "number",
    Token.Comment: "comment",
    Token.Name.Function: "function",
    Token.Name.Function.Magic: "function",
    Token.Name.Class: "class",
    Token.Name.Decorator: "function",
    Token.Name.Builtin: "builtin",
    Token.Name.Builtin.Pseudo: "builtin",
    Token.Operator: "operator",
}


@lru_cache(maxsize=128)
def spans(code: str, path: str) -> tuple[tuple[SyntaxSpan, ...], ...]:
    """For each line the spans (start, end, category). Files other than Python have none."""
    if not path.endswith(".py"):
        return ()
    lines: list[list[SyntaxSpan]] = [[]]
    at = 0
    for token, text in PythonLexer(stripnl=False, ensurenl=False).get_tokens(code):
        category = _category(token)
        first, *rest = text.split("\n")
        if category and first:
            lines[-1].append((at, at + len(first), category))
        at += len(first)
        for part in rest:
            lines.append([(0, len(part), category)] if category and part else [])
            at = len(part)
    return tuple(tuple(line) for line in lines)


@lru_cache(maxsize=512)
def _category(token: _TokenType) -> str:
    kind: _TokenType | None = token
    while kind is not None:
        if kind in _CATEGORY:
            return _CATEGORY[kind]
        kind = kind.parent
    return ""
