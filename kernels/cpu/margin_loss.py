"""Losses that want the score of a sample's own classes to lead the others by a margin; forward and backward.

Rows are dense: x [n, classes], target [n] (multi-margin) or [n, classes] (multi-label), losses [n]. Losses add up in
float64. Labels have been looked at: all are classes. Read next: `ctc.py`.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from redispatch.dispatch.tensor.target import cached_by_target

from ..engine.compile import Entry, Kernel

float64 = np.float64


def multi_margin_loop(lo, hi, classes, p, margin, out, x, target, weight, weighted):
    """out[i] = w * sum over j != y of max(0, margin - x[y] + x[j])^p / classes, with y the target of row i."""
    for i in range(lo, hi):
        label = target[i]
        own = x[i * classes + label]
        total = float64(0)
        for j in range(classes):
            lack = margin - own + x[i * classes + j]
            if j != label and lack > 0:
                total += lack if p == 1 else lack * lack
        if weighted:
            total *= weight[label]
        out[i] = total / classes


def multi_margin_backward_loop(lo, hi, classes, p, margin, out, grad, grad_step, share, x, target, weight, weighted):
    """out[i, j] = share * grad[i] * slope."""
    for i in range(lo, hi):
        label = target[i]
        own = x[i * classes + label]
        factor = float64(share * grad[i * grad_step] / classes)
        if weighted:
            factor *= weight[label]
        total = float64(0)
        for j in range(classes):
            lack = margin - own + x[i * classes + j]
            slope = float64(0)
            if j != label and lack > 0:
                slope = factor if p == 1 else 2 * factor * lack
            out[i * classes + j] = slope
            total -= slope
        out[i * classes + label] = total


def multi_label_loop(lo, hi, classes, out, is_target, x, target):
    """out[i] = sum over own classes y and others j of max(0, 1 - x[y] + x[j]) / classes; marks the own classes.

    The labels of a row end at the first that is negative.
    """
    for i in range(lo, hi):
        base = i * classes
        for j in range(classes):
            is_target[base + j] = 0
        for k in range(classes):
            if target[base + k] < 0:
                break
            is_target[base + target[base + k]] = 1
        total = float64(0)
        for k in range(classes):
            if target[base + k] < 0:
                break
            own = x[base + target[base + k]]
            for j in range(classes):
                lack = 1 - own + x[base + j]
                if is_target[base + j] == 0 and lack > 0:
                    total += lack
        out[i] = total / classes


def multi_label_backward_loop(lo, hi, classes, out, grad, grad_step, share, x, target, is_target):
    """out[i, j] = share * grad[i] * (how many labels j presses, or, for a label, minus how many press it) / classes."""
    for i in range(lo, hi):
        base = i * classes
        factor = share * grad[i * grad_step] / classes
        for j in range(classes):
            out[base + j] = 0
        for k in range(classes):
            if target[base + k] < 0:
                break
            label = target[base + k]
            for j in range(classes):
                if is_target[base + j] == 0 and 1 - x[base + label] + x[base + j] > 0:
                    out[base + label] -= factor
                    out[base + j] += factor


I = "int64"  # noqa: E741  # as numbers are called in signatures


@cached_by_target
def multi_margin(dtype: str) -> Entry:
    """`f(lo, hi, classes, p, margin, out, x, target, weight, weighted)`, of flat arrays."""
    x = f"{dtype}[]"
    return _entry(multi_margin_loop, dtype, I, I, dtype, x, x, "int64[]", x, I)


@cached_by_target
def multi_margin_backward(dtype: str) -> Entry:
    x = f"{dtype}[]"
    return _entry(multi_margin_backward_loop, dtype, I, I, dtype, x, x, I, "float64", x, "int64[]", x, I)


@cached_by_target
def multi_label(dtype: str) -> Entry:
    x = f"{dtype}[]"
    return _entry(multi_label_loop, dtype, I, x, x, x, "int64[]")


@cached_by_target
def multi_label_backward(dtype: str) -> Entry:
    x = f"{dtype}[]"
    return _entry(multi_label_backward_loop, dtype, I, x, x, I, "float64", x, "int64[]", x)


def _entry(loop: Callable[..., Any], dtype: str, *signature: str) -> Entry:
    return Kernel(loop, real=dtype).entry(I, I, *signature)
