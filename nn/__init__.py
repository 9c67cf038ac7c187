"""Modules, parameters and losses, built on the public face."""
