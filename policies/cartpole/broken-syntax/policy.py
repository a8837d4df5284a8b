"""Broken on purpose: a syntax error."""


class Policy:
    def act(self, obs)
        return 0
