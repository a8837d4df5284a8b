"""Servers that tests talk to: real sockets, scripted answers."""
