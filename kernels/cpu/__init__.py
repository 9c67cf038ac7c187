"""Loops for the CPU, written by hand where one scalar function is not enough: reductions, sorts, products, windows."""
