"""Optimizers: SGD, Adam and AdamW."""
