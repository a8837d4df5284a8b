"""The screens: home, run, and the dialogs over them. Each is imported when it is first shown."""
