"""The policy process: the walls around it, and the trusted stub inside that loads a policy and answers the worker.

A part of the program that must run where nothing of evotui can be imported: ``start`` is run by its path and makes a
package of this folder under another name. So what lies here imports the standard library, numpy and its neighbors
(relatively) only; and everything here can be read by policies.

``start`` (what a new process does, and the warm interpreter that guests are forked from), ``walls`` (raised in their
order, each tried) over ``namespaces``, ``landlock``, ``privileges`` and ``syscalls`` (seccomp); then ``zygote`` (forks
a process per episode), ``serving`` (that process), ``policies`` and ``v03`` (policies of another form), ``seeds``,
``imports``, ``actions``, ``reports``. The worker's side loads ``wire`` (frames) and ``layout`` (values in them) too.
"""
