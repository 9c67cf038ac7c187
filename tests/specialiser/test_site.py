"""Sites remember the code that they found, and nothing that is no longer so."""

import gc

import pytest

import redispatch as rd
from redispatch.dispatch import STATE
from redispatch.dispatch.specialiser.site import NOTHING


@pytest.fixture
def op():
    with rd.library._scoped_library("site_test", "DEF") as library:
        library.define("double(Tensor x) -> Tensor")
        library.impl("double", lambda x: x * 2, "CompositeExplicitAutograd")
        yield library, rd.ops.site_test.double.default


@pytest.fixture(autouse=True)
def specialised():
    before = rd.config.specialize
    rd.config.specialize = True
    yield
    rd.config.specialize = before


def ask(site, x):
    """A call as emitted code makes it; and whether the site knew the code."""
    last, keys = site.last, STATE.get().keys
    known = last.state is keys and last.tensors is x._keyset
    return (last.code if known else site.find(keys, x._keyset))(x), known


def test_code_is_remembered_when_it_was_missed_twice_in_a_row(op):
    site, x = op[1].site(("T",)), rd.ones(2)
    known = [ask(site, x)[1] for _ in range(7)]
    assert known == sorted(known) and known[-1]


def test_another_state_and_another_keyset_miss(op):
    site, x = op[1].site(("T",)), rd.ones(2)
    for _ in range(7):
        ask(site, x)
    with rd.no_grad():
        assert not ask(site, x)[1]
    assert ask(site, x)[1]
    assert not ask(site, rd.ones(2, device="meta"))[1]
    assert ask(site, x)[1]


def test_a_state_entered_anew_is_known_by_what_it_does_to_keys(op):
    site, x = op[1].site(("T",)), rd.ones(2)
    for _ in range(7):
        with rd.no_grad():
            known = ask(site, x)[1]
    assert known


def test_a_registration_is_seen_by_the_next_call(op):
    library, double = op
    site, x = double.site(("T",)), rd.ones(2)
    for _ in range(7):
        ask(site, x)
    library.impl("double", lambda x: x * 3, "CPU")
    assert site.last is NOTHING
    assert [ask(site, x)[0].tolist() for _ in range(7)] == [[3.0, 3.0]] * 7


def test_a_registration_while_code_is_looked_up_is_not_missed(op):
    library, double = op
    site, x = double.site(("T",)), rd.ones(2)
    for _ in range(3):
        ask(site, x)
    table = double.table(("T",))

    class Late(type(table)):
        def get(self, keys, default=None):
            code = super().get(keys, default)
            library.impl("double", lambda x: x * 3, "CPU")
            return code

    late = Late(double, ("T",))
    late.update(table)
    site.table = late
    site.find(STATE.get().keys, x._keyset)
    assert site.last is NOTHING


def test_two_keysets_in_turn_are_both_right(op):
    plain, meta = rd.ones(2), rd.ones(2, device="meta")
    for _ in range(20):
        assert rd.ops.site_test.double(plain).tolist() == [2.0, 2.0]
        assert rd.ops.site_test.double(meta).is_meta


def test_tensors_with_different_keysets_are_united():
    handled = rd.zeros(1)

    class Tagged(rd.Tensor):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return handled

    tagged, plain = rd.Tensor._make_subclass(Tagged, rd.ones(2)), rd.ones(2)
    for _ in range(6):
        assert rd.ops.aten.add.Tensor(plain, tagged) is handled
        assert rd.ops.aten.add.Tensor(tagged, plain) is handled
        assert rd.ops.aten.cat.default([plain, tagged, plain]) is handled
        assert rd.ops.aten.add.Tensor(plain, plain).tolist() == [2.0, 2.0]
        assert rd.ops.aten.cat.default([plain, plain]).tolist() == [1.0] * 4


def test_a_site_that_nobody_has_is_forgotten(op):
    table = op[1].table(("T",))
    before = len(table.sites)
    site = op[1].site(("T",))
    assert len(table.sites) == before + 1
    del site
    gc.collect()
    assert len(table.sites) == before
