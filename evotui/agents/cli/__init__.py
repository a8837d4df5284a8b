"""Coding-agent programs as agents: rows of agents.toml, three adapters, one way of running them."""
