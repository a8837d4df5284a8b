"""The native agent: a language model with tools, through litellm in a process of its own.

``agent`` is the loop of turns, ``tools`` what the model can do, ``history`` what it is sent, ``calls`` how a model's
answer becomes tool calls. ``client`` (here) and ``gateway`` (the child process, the only place that imports litellm)
speak JSON lines; ``keys`` and ``faults`` are the child's.
"""
