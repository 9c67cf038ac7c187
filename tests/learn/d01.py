"""Lesson D01, the teacher's part: a solution, and misconceptions as changes of it, with the part that refuses each."""

SOLUTION = """
ORDER = ("CompositeExplicitAutogradNonFunctional", "CompositeExplicitAutograd", "CompositeImplicitAutograd", "Autograd")


def keyset(arguments, included, excluded):
    union = included
    for value in arguments:
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, Tensor):
                union |= one.keys
    return union & ~excluded


def resolve(registered, fallbacks, key, members, backends):
    if key in registered:
        return registered[key][-1]
    for alias in ORDER:
        if alias not in registered or key not in members[alias]:
            continue
        if alias == "CompositeImplicitAutograd":
            if "CompositeExplicitAutograd" in registered or any(one in registered for one in backends):
                continue
        return registered[alias][-1]
    return fallbacks[key][-1] if key in fallbacks else None


def stops_at(keys, passes):
    return next((key for key in keys if key not in passes), "Undefined")
"""

WRONG = {  # what is thought -> (part, what stands there, what stands there instead)
    "what is included wins": ("keyset", "union = included", "union = 0", "& ~excluded", "& ~excluded | included"),
    "included keys are forgotten": ("keyset", "    union = included\n", "    union = 0\n"),
    "lists of tensors are forgotten": ("keyset", "in value if isinstance(value, list) else [value]", "in [value]"),
    "the first tensor decides": ("keyset", "union |= one.keys", "return (union | one.keys) & ~excluded"),
    "excluding is by exclusive or": ("keyset", "& ~excluded", "^ excluded"),
    "the oldest registration wins": ("resolve", "return registered[key][-1]", "return registered[key][0]"),
    "a composite hides the backend's kernel": ("resolve", "any(one in registered for one in backends)", "False"),
    "a composite hides the explicit one": ("resolve", '"CompositeExplicitAutograd" in registered or ', ""),
    "an alias answers at every key": ("resolve", " or key not in members[alias]", ""),
    "a fallback comes before aliases": (
        "resolve", "    for alias in ORDER:", "    for alias in () if key in fallbacks else ORDER:",
    ),
    "autograd's alias is none": ("resolve", '"CompositeImplicitAutograd", "Autograd")', '"CompositeImplicitAutograd")'),
    "the lowest key wins": ("stops_at", "for key in keys", "for key in reversed(keys)"),
    "fallthroughs stop a call": ("stops_at", " if key not in passes", ""),
}  # fmt: skip
