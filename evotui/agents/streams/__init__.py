"""What coding agents write on their streams, as facts: one parser a dialect, no process and no clock in here."""
