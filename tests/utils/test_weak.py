"""Dictionaries that know tensors by what they are."""

import copy

import pytest

import redispatch as rd
from redispatch.utils.weak import TensorWeakRef, WeakIdKeyDictionary, WeakIdRef, WeakTensorKeyDictionary


def test_tensors_are_keys_by_identity_and_go_when_nobody_holds_them():
    x, y = rd.ones(2), rd.ones(2)
    notes = WeakTensorKeyDictionary([(x, "x"), (y, "y")])
    assert notes[x] == "x" and notes[y] == "y" and rd.ones(2) not in notes and 3 not in notes
    assert [key is x for key in notes] == [True, False] and len(notes.keyrefs()) == 2
    del y
    assert len(notes) == 1 and notes.pop(x) == "x" and x not in notes
    with pytest.raises(KeyError):
        notes[x]
    with pytest.raises(TypeError, match="weak reference"):
        notes["x"] = 1


def test_copies_and_comparisons_look_at_the_same_keys():
    x = rd.ones(2)
    notes = WeakIdKeyDictionary([(x, 1)])
    other = copy.copy(notes)
    assert other == notes and other is not notes
    other[x] = 2
    assert notes[x] == 1 and other != notes


def test_an_entry_that_goes_during_a_loop_does_not_stop_it():
    held = [rd.ones(1) for _ in range(3)]
    notes = WeakIdKeyDictionary((x, i) for i, x in enumerate(held))
    seen = []
    for _, value in notes.items():
        held.clear()
        seen.append(value)
    assert seen == [0, 1, 2] or seen == [0]


def test_references_to_one_tensor_are_equal_while_it_lives():
    x = rd.ones(2)
    reference = WeakIdRef(x)
    assert reference == WeakIdRef(x) and hash(reference) == id(x) and reference != WeakIdRef(rd.ones(2))
    weak = TensorWeakRef(x)
    assert weak() is x
    del x
    assert weak() is None and reference() is None and reference == reference
    with pytest.raises(AssertionError, match="expected Tensor, got int"):
        TensorWeakRef(1)
