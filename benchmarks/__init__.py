"""Scripts that measure: run as ``python -m benchmarks.NAME``."""
