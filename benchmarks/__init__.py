"""Measurements, printed as ratios taken side by side in one run; never asserted as times in tests."""
