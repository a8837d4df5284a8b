"""Environments and policies, found by name; Gymnasium behind one adapter.

Owns task files, the folders they are looked for in, and the making of environments. May import the protocol; only
``suite.worlds`` imports gymnasium, and only inside functions. Its errors are one family, SuiteError, whose messages
are sentences for people.
"""
