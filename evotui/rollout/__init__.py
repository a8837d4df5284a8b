"""Rollouts: episodes run fast, isolated and honestly, in processes of their own. The one way episodes are run.

``Engine`` (in the session's process) drives worker processes, one per core; a worker owns environments, seeds, scores
and files and never imports policy code; a guest process per worker and snapshot holds the policy and never a seed.
``FrameWorker`` draws recorded episodes in yet another process. May import suite and protocol. Only worker and render
processes import gymnasium.

In the session's process: ``limits`` (what is asked and told), ``engine``, ``dealing`` (one job), ``workers``,
``messages`` (what is said to them), ``render`` (frames). In a worker: ``worker``, ``channel``, ``job``, ``episode``,
``lockstep`` and ``together`` (many at once), ``recorder`` (files), ``host`` (its side of a guest) with ``output`` and
``clocks``, ``warm`` (what guests are forked from). In the drawing process: ``render_process``. Around and in the policy
process: the folder ``guest``, of which a worker loads ``wire`` and ``layout`` too (what crosses the socket).
``selftest`` has ``attacks`` tried by a policy, and ``drawing`` tries what draws.
"""
