"""Those who try: each agent holds a door (task, info, submit) and a workspace, and nothing else.

Imports ``suite``, ``record`` and ``protocol``; never the kernel, so no agent can reach what the door does not serve.
"""
