"""A memo and its parts give the same answers, whichever was asked first."""

from hypothesis import given
from hypothesis import strategies as st

from redispatch.dispatch.specialiser.site import UNKNOWN, Memo

PLAIN = st.sampled_from([1, 2, "a", 10**30])
ANY = PLAIN | st.sampled_from([(1, 1), (1, 2), ("a", "a", "a"), ((1, 1),)])


@st.composite
def memos(draw):
    """(facts to enter, facts to ask for, which of these only run time tells, places that may be alike)"""
    alike = draw(st.sets(st.sampled_from([0, 1, 2])))
    facts = st.tuples(*(PLAIN if place in alike else ANY for place in range(3)))
    return draw(st.lists(facts, max_size=12)), draw(facts), draw(st.tuples(*[st.booleans()] * 3)), alike


def copy_of(value):
    """An equal object, another one where that can be."""
    return int(str(value)) if type(value) is int else tuple([*value]) if type(value) is tuple else value


@given(memos())
def test_a_part_answers_as_the_whole_does(drawn):
    entered, asked, hidden, alike = drawn
    memo, late = Memo(100, alike), Memo(100, alike)
    known = tuple(UNKNOWN if unknown else fact for unknown, fact in zip(hidden, asked, strict=True))
    early = memo.part(known)
    for number, facts in enumerate(entered):
        memo[facts] = late[facts] = number + 1
    left = [fact for unknown, fact in zip(hidden, asked, strict=True) if unknown]
    for values in (left, [copy_of(value) for value in left], [left[0]] * len(left) if len(set(left)) == 1 else left):
        names = {f"x{i}": value for i, value in enumerate(values)}
        key = eval(memo.key_source(known, list(names)), {}, names)
        for whole, part in ((memo, early), (late, late.part(known))):
            assert part.get(key) == whole.get(asked)


def test_a_full_memo_starts_afresh_and_its_parts_with_it():
    memo = Memo(2)
    part = memo.part((UNKNOWN, 1))
    for number in range(3):
        memo[number, 1] = number + 1
    assert len(memo) == 1 and part.get(2) == 3 and part.get(0) is None
    memo.clear()
    assert not len(memo) and not part
