"""Every operator has every property of properties/, as far as frontend/testing/op_db/ does not say otherwise.

A test for each operator, which checks all of its properties and lists those that are broken. `pytest -k "add.Tensor"`
runs one operator, `pytest --property vmap` one property of all operators; then what does not apply is skipped, and
`-rs` says why.
"""

import pytest

from redispatch.testing.op_db import op_db

from .properties import PROPERTIES, findings


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("info", op_db, ids=str)
def test_operator(info, request, record_property):
    chosen = request.config.getoption("--property")
    assert not {*(chosen or ())} - PROPERTIES.keys(), f"there is none of this name: {', '.join(PROPERTIES)}"
    names = chosen or [name for name, one in PROPERTIES.items() if one.is_drawn(info)]
    found = findings(info, [PROPERTIES[name] for name in names if PROPERTIES[name].of(info)])
    record_property("op_db", {"held": found.held, "left out": found.left_out})
    if found.broken:
        names = f"{len(found.broken)} findings in {len(names)} properties"
        raise AssertionError(f"{info}: {names}\n\n" + "\n\n".join(found.broken)) from found.first
    if chosen and not found.held:
        pytest.skip(f"{info}: {'; '.join(found.left_out.values()) or f'has no {chosen[0]}'}")
