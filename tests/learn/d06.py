"""Lesson D06, the teacher's part: a solution, and misconceptions as changes of it, with the part that refuses each."""

SOLUTION = """
NORMAL = {"CPU", "ADInplaceOrView", "Autograd"}
VIEWS, WRITES = ("view", "detach"), ("mul_", "add_")


def entered(state, region):
    if region == "no_grad":
        return state._replace(recording=False)
    if region == "enable_grad":
        return state._replace(recording=True)
    if region == "inference":
        return State(state.included - {"ADInplaceOrView"}, state.excluded | {"Autograd"}, False, True)
    return State(state.included | {"ADInplaceOrView"}, state.excluded - {"Autograd"}, True, False)


def stops(state, name, inputs):
    keys = set(state.included)
    for one in inputs:
        keys |= one.keys
    keys -= state.excluded
    if name not in VIEWS + WRITES:
        keys -= {"ADInplaceOrView"}
    return [key for key in ("Autograd", "ADInplaceOrView", "CPU") if key in keys]


def is_inference(one):
    return "ADInplaceOrView" not in one.keys


def result(state, name, inputs):
    fresh = {"CPU"} if state.inference else NORMAL
    if name == "new":
        return T(fresh, False, True)
    first = inputs[0]
    if name == "requires_grad_":
        if is_inference(first) and not state.inference:
            raise RuntimeError("requires_grad_ of an inference tensor")
        return first._replace(requires_grad=True)
    recording = state.recording and "Autograd" in stops(state, name, inputs)
    recorded = recording and any(one.requires_grad for one in inputs)
    if name in WRITES:
        if is_inference(first) and not state.inference:
            raise RuntimeError("an inference tensor is written")
        if recording and first.requires_grad and first.is_leaf:
            raise RuntimeError("a leaf is written")
    if recorded and name in ("mul", "mul_"):
        a, b = inputs
        if a.requires_grad and is_inference(b):
            raise RuntimeError("an inference tensor is kept")
        if b.requires_grad and is_inference(a) and name == "mul":
            raise RuntimeError("an inference tensor is kept")
    if name in WRITES:
        return T(first.keys, True, False) if recorded else first
    keys = first.keys if name in VIEWS else fresh
    if name == "detach" or not recorded:
        return T(keys, name == "view" and first.requires_grad, True)
    return T(keys, True, False)
"""

WRONG = {  # what is thought -> (part, what stands there, what stands there instead)
    "inference mode is no_grad": (
        "regions",
        '        return State(state.included - {"ADInplaceOrView"}, state.excluded | {"Autograd"}, False, True)',
        "        return state._replace(recording=False)",
    ),
    "inference mode leaves the views layer included": (
        "regions",
        'State(state.included - {"ADInplaceOrView"},',
        "State(state.included,",
    ),
    "inference_mode(False) changes nothing": (
        "regions",
        '    return State(state.included | {"ADInplaceOrView"}, state.excluded - {"Autograd"}, True, False)',
        "    return state",
    ),
    "inference_mode(False) leaves recording as it was": (
        "regions",
        '- {"Autograd"}, True, False)',
        '- {"Autograd"}, state.recording, False)',
    ),
    "enable_grad ends inference mode": (
        "regions",
        "        return state._replace(recording=True)",
        '        return State(state.included | {"ADInplaceOrView"}, state.excluded - {"Autograd"}, True, False)',
    ),
    "included keys do not count": ("stops", "keys = set(state.included)", "keys = set()"),
    "every call stops at ADInplaceOrView": ("stops", "    if name not in VIEWS + WRITES:\n", "    if False:\n"),
    "views pass": ("stops", "    if name not in VIEWS + WRITES:\n", "    if name not in WRITES:\n"),
    "nobody records, so Autograd is passed": (
        "stops",
        "    keys -= state.excluded\n",
        ('    keys -= state.excluded\n    if not state.recording:\n        keys -= {"Autograd"}\n'),
    ),
    "inference tensors are so in the region alone": (
        "result",
        "    keys = first.keys if name in VIEWS else fresh\n",
        "    keys = fresh\n",
    ),
    "what is computed of inference tensors is one": (
        "result",
        "    keys = first.keys if name in VIEWS else fresh\n",
        "    keys = first.keys\n",
    ),
    "new tensors are normal under no_grad alone": (
        "result",
        '    fresh = {"CPU"} if state.inference else NORMAL',
        '    fresh = {"CPU"} if not state.recording else NORMAL',
    ),
    "enable_grad records again": (
        "result",
        'state.recording and "Autograd" in stops(state, name, inputs)',
        "state.recording",
    ),
    "detach requires grad as its base does": ("result", 'name == "detach" or not recorded:', "not recorded:"),
    "a view made under no_grad requires none": (
        "result",
        'name == "view" and first.requires_grad, True',
        "False, True",
    ),
    "an inference tensor may be written anywhere": (
        "refusals",
        (
            "        if is_inference(first) and not state.inference:\n"
            '            raise RuntimeError("an inference tensor is written")\n'
        ),
        "",
    ),
    "an inference tensor may be written nowhere": (
        "refusals",
        (
            "        if is_inference(first) and not state.inference:\n"
            '            raise RuntimeError("an inference tensor is written")\n'
        ),
        ('        if is_inference(first):\n            raise RuntimeError("an inference tensor is written")\n'),
    ),
    "an inference tensor may be kept": (
        "refusals",
        "        if a.requires_grad and is_inference(b):\n",
        "        if False:\n",
    ),
    "no call at all takes an inference tensor": (
        "result",
        ('    if recorded and name in ("mul", "mul_"):\n        a, b = inputs\n'),
        ("    if recorded and len(inputs) == 2:\n        a, b = inputs\n"),
    ),
    "it may require grad": (
        "refusals",
        ('        if is_inference(first) and not state.inference:\n            raise RuntimeError("requires_grad_ of'),
        ('        if False:\n            raise RuntimeError("requires_grad_ of'),
    ),
    "a leaf may be written": (
        "refusals",
        "        if recording and first.requires_grad and first.is_leaf:",
        "        if False:",
    ),
    "a leaf may never be written": (
        "refusals",
        "        if recording and first.requires_grad and first.is_leaf:",
        "        if first.requires_grad and first.is_leaf:",
    ),
}
