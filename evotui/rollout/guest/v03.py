"""Policies written for version 0.3 of the published harness: ``make_policy(context)`` in place of a class of our form.

Part of the stub in the policy process: standard library and numpy only. Their objects have ``act(observation)`` and no
reset. Observations stay numpy arrays, where that harness gave lists or its own tensors; arrays can be read as either.
"""

from __future__ import annotations

import inspect
import sys
import types
from collections.abc import Callable
from typing import Any

import numpy as np

POLICY_SEED = 0  # constructed before an episode is known: what is random in it comes from the seeded generators


class PolicyContext(dict[str, Any]):
    """What ``make_policy`` is given: the fields of that harness and those of ``env_meta``, as keys and attributes."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"the context has no {name!r}, only {', '.join(self)}") from None


def context(obs_space: dict[str, Any], action_space: dict[str, Any], env_meta: dict[str, Any]) -> PolicyContext:
    return PolicyContext(
        env_meta,
        observation_space=obs_space,
        obs_space=obs_space,
        action_space=action_space,
        metadata=env_meta,
        environment_parameters={},
        policy_seed=POLICY_SEED,
    )


def constructor(module: Any) -> Callable[..., Any] | None:
    """What makes a policy of ``(obs_space, action_space, env_meta)``; None where a module defines nothing that does.

    A class Policy of our form comes first. Programs for 0.3 often have one too, but theirs takes no arguments.
    """
    policy, make = getattr(module, "Policy", None), getattr(module, "make_policy", None)
    if callable(policy) and (not callable(make) or _takes_three(policy)):
        return policy
    if not callable(make):
        return None

    def adapted(obs_space: Any, action_space: Any, env_meta: Any) -> Any:
        made = make(context(obs_space, action_space, env_meta))
        if not callable(getattr(made, "act", None)):
            raise TypeError(f"make_policy returned {type(made).__name__}, which has no method act")
        return made

    return adapted


def _takes_three(policy: Any) -> bool:
    try:
        inspect.signature(policy).bind(None, None, None)
    except TypeError:
        return False
    except ValueError:  # nothing is known of it
        return True
    return True


def provide_names() -> None:
    """Let ``from evopolicygym.policy import PolicyContext, …`` work: programs import it for their annotations."""
    package, module = types.ModuleType("evopolicygym"), types.ModuleType("evopolicygym.policy")
    package.__path__ = []
    names = {"PolicyContext": PolicyContext, "PolicyValue": Any, "PolicyScalar": Any, "TensorValue": np.ndarray}
    vars(module).update(names)
    vars(package)["policy"] = module
    sys.modules.update({"evopolicygym": package, "evopolicygym.policy": module})
