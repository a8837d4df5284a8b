"""Arguments, wiring, exit codes. The only place where kernel, agents, rollout and interface meet.

Heavy imports stay inside the commands that need them: ``evotui --version`` imports click and nothing else of weight.
"""
