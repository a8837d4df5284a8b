"""The panes of the run screen: each takes the same picture, a state with the cursor on it, and draws its part.

A pane decides what of a picture is new to it and reads files in threads; its widgets' messages say what was picked.
"""
