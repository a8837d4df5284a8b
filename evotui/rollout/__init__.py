"""Rollouts: episodes run fast, isolated and honestly, in processes of their own. The one way episodes are run.

``Engine`` (in the session's process) drives worker processes, one per core; a worker owns environments, seeds, scores
and files and never imports policy code; a guest process per worker and snapshot holds the policy and never a seed.
``FrameWorker`` draws recorded episodes in yet another process. May import suite and protocol. Only worker and render
processes import gymnasium.

Modules: ``limits`` (what is asked and told), ``engine`` (coordinator), ``messages`` (coordinator ↔ worker), ``worker``,
``episode``, ``recorder`` (files), ``host`` (the worker's side of a guest), ``wire`` (frames, layouts), ``guest`` (the
stub in the policy process), ``render``.
"""
