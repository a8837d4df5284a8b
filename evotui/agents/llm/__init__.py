"""The native agent: a language model with tools, through litellm in a process of its own."""
