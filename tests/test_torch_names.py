"""Every public name of PyTorch is here, forwards to where it is, or is absent for a reason, which an error says."""

from collections import Counter
from fnmatch import fnmatchcase
from importlib import import_module

import pytest

import redispatch as rd
from redispatch import _absent, torch_names

NAMES = torch_names.names()


@pytest.fixture(scope="module")
def listings():
    return torch_names.listings()


def test_every_public_name_of_pytorch_is_here_or_forwards_or_is_absent_for_a_reason(listings):
    unknown = {one.module: one.names["unknown"] for one in listings if one.names["unknown"]}
    assert not unknown, "give them a row in a table of names, or in MISSING of frontend/_absent.py"
    assert not [one.module for one in listings if one.itself.state == "unknown"]
    counts = Counter({state: sum(one.count(state) for one in listings) for state in torch_names.STATES})
    assert counts.total() == sum(map(len, NAMES.values())) > 6000
    assert counts["here"] + counts["forwards"] > 2900


def test_a_name_that_forwards_is_where_the_table_says(listings):
    for one in listings:
        for place, names in one.names["forwards"].items():
            owner = import_module(torch_names.path(one.module))
            for name in names:
                there = import_module(place)
                value, theirs = getattr(owner, name), getattr(there, name, there)
                assert value is theirs or value == theirs, (one.module, name)


@pytest.mark.parametrize("module", _absent.MISSING)
def test_the_reasons_are_of_names_that_pytorch_has(module):
    inside = [one for one in NAMES if not module or one.startswith(f"{module}.")]
    known = {*NAMES.get(module, ()), *(one.removeprefix(f"{module}.").partition(".")[0] for one in inside)}
    for patterns in _absent.MISSING[module].values():
        for pattern in patterns.split():
            assert any(fnmatchcase(name, pattern) for name in known), (module, pattern)


@pytest.mark.parametrize("module", sorted(_absent.MISSING.keys() - {"Tensor"}))
def test_an_absent_name_says_why_where_it_is_asked_for(module):
    owner = import_module(torch_names.path(module))
    for name in NAMES.get(module, ()):
        reason = _absent.why(module, name)
        if reason and not any(name in row.names() for row in _absent.EXTRA.get(module, ())):  # which raises when called
            with pytest.raises(AttributeError) as refused:
                getattr(owner, name)
            assert str(refused.value).endswith(reason)


def test_an_absent_module_says_why_when_it_is_imported():
    for module in NAMES:
        if torch_names.where_is(module).state == "absent" and module not in _absent.ABSENT:
            with pytest.raises(ModuleNotFoundError) as refused:
                import_module(torch_names.path(module))
            assert str(refused.value).endswith((_absent.why_module(module), "is not a package"))
    with rd.installed(shadow=True), pytest.raises(ModuleNotFoundError, match=r"'torch.utils.tensorboard' .* a tool of"):
        import torch.utils.tensorboard  # noqa: F401


def test_the_page_has_every_part_and_every_name_that_is_here(listings):
    page = torch_names.page()
    assert {f"## {torch_names.shown(module.partition('.')[0])}" for module in NAMES} <= set(page.splitlines())
    for one in listings:
        for names in one.names["here"].values():
            assert all(f"<code>{name}</code>" in page for name in names)


def test_one_name_is_told_at_the_prompt(capsys):
    torch_names.main(["torch.nn.Linear", "torch.lobpcg", "torch.distributed.rpc.init_rpc"])
    assert capsys.readouterr().out.splitlines() == [
        "torch.nn.Linear: forwards, redispatch.nn.linear",
        "torch.lobpcg: absent, linalg.eigh finds all eigenvalues",
        "torch.distributed.rpc.init_rpc: absent, processes are not coordinated here",
    ]
