"""Everything that can be registered in the process, as it is at one moment, and how it is given back.

conftest.py takes a snapshot before each test; tests/dispatch/test_given_back.py says what must be gone after one.
"""

import os

from redispatch.dispatch import FALLBACKS, LISTENERS, NUMBER_FOR_TENSOR, OPERATORS
from redispatch.dispatch.core.base import ARGUMENT_TYPES, BACKEND_OF_DEVICE
from redispatch.dispatch.core.key import BACKEND_AT, FUNCTIONALITY_AT, KEYS, RUNTIME
from redispatch.dispatch.core.registry import OVERLOADS, forget_entries
from redispatch.dispatch.higher_order import HIGHER_ORDER
from redispatch.dispatch.layers.autocast import KEY_OF_DEVICE
from redispatch.dispatch.library import _DEFINING, REGISTRATIONS
from redispatch.dispatch.rules import TABLES, forget_code
from redispatch.dispatch.tensor import KINDS, TYPE_NAMED
from redispatch.kernels.declare.custom_op import _DEFINITIONS
from redispatch.kernels.declare.from_scalar import DEFINED

TESTS = os.path.dirname(os.path.abspath(__file__)) + os.sep
PACKAGE = os.path.dirname(os.path.dirname(TESTS)) + os.sep

# Registries that are one container each, and whose values are never changed in place. Code is made after those of the
# first list, so a change of one of them drops all of it; nothing is made after the others.
CODE_DEPENDS_ON = [
    NUMBER_FOR_TENSOR,
    ARGUMENT_TYPES,
    BACKEND_OF_DEVICE,
    HIGHER_ORDER,
    KEY_OF_DEVICE,
    KINDS,
    TYPE_NAMED,
    BACKEND_AT,
]
REGISTRIES = [
    OPERATORS,
    REGISTRATIONS,
    _DEFINING,
    LISTENERS,
    _DEFINITIONS,
    DEFINED,
    FALLBACKS,
    KEYS,
    FUNCTIONALITY_AT,
    RUNTIME,
]


def containers():
    return [
        *CODE_DEPENDS_ON,
        *REGISTRIES,
        *(container for table in TABLES for container in (table._rules, table._overridden)),
    ]


class Snapshot:
    """All registries as they are now."""

    def __init__(self):
        # An operator forgets its entries, and starts a new dict of them, whenever one of its registrations changes.
        self.entries = [op._entries for op in OPERATORS.values()]
        self.registrations = [(op, op.registrations.copy()) for op in OPERATORS.values()]
        self.overloads = {name: overloads.copy() for name, overloads in OVERLOADS.items()}
        self.containers = [(container, container.copy()) for container in containers()]

    def holds(self):
        """Whether nothing has changed since."""
        now = [op._entries for op in OPERATORS.values()]
        return len(now) == len(self.entries) and all(map(_is, now, self.entries)) and self._containers_hold()

    def _containers_hold(self):
        return len(self.containers) == len(containers()) and all(now == then for now, then in self.containers)

    def library_has_defined_more(self):
        known = {op for op, _ in self.registrations}
        return any(
            op.place.startswith(PACKAGE) and not op.place.startswith(TESTS)
            for op in OPERATORS.values()
            if op not in known
        )

    def restore(self):
        """Gives every registry back what it held, and drops the code that was made after something else.

        Code and entries say what the registries say at any time, because whoever registers makes operators forget; so
        all that is stale now is what depends on the differences that are undone here.
        """
        known, now = {op for op, _ in self.registrations}, set(OPERATORS.values())
        changed = [(container, then, container.copy()) for container, then in self.containers if container != then]
        for container, then, _ in changed:
            container.clear()
            container.extend(then) if isinstance(container, list) else container.update(then)
        OVERLOADS.clear()
        OVERLOADS.update({name: overloads.copy() for name, overloads in self.overloads.items()})
        for op, then in self.registrations:
            if op.registrations != then:
                op.registrations.clear()
                op.registrations.update(then)
                op.forget_entries()
        for container, then, was in changed:
            self._forget_what_followed_from(container, then, was)
        for listener in LISTENERS:
            for op in known ^ now:
                listener("removed" if op in now else "defined", op)

    @staticmethod
    def _forget_what_followed_from(container, then, was):
        if any(container is one for one in CODE_DEPENDS_ON):
            forget_entries()
        elif container is FALLBACKS:
            for key in {key for key in {*then, *was} if then.get(key) != was.get(key)}:
                forget_entries(key)
        elif container is KEYS:
            for key in {*was.values()} - {*then.values()}:
                forget_entries(key)
                forget_code_for(key.bits)
        elif any(container is table._rules for table in TABLES):
            for key in {key for key in {*then, *was} if then.get(key) is not was.get(key)}:
                forget_code(key)


def forget_code_for(bits):
    """Drops the code of keysets with all of these bits, which may soon stand for another key."""
    for op in OPERATORS.values():
        if any(keys & bits == bits for table in list(op.tables.values()) for keys in list(table)):
            op.forget_entries()


def _is(a, b):
    return a is b
