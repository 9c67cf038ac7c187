"""Comparisons, samples and fixtures for tests: ours and those of users."""
