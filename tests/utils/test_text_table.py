"""Tables as text: columns, and quantities as people say them."""

import pytest
from expecttest import assert_expected_inline

from redispatch.utils.text import spoken_bytes, spoken_seconds, text_table


def test_names_stand_left_and_numbers_right():
    assert_expected_inline(
        text_table([("name", "n"), ("a", "10"), ("total", "10")]),
        """\
name    n
---------
a      10
---------
total  10""",
    )


@pytest.mark.parametrize(
    "count, said",
    [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (-2048, "-2.0 KiB"), (3 << 20, "3.0 MiB"), (5 << 40, "5.0 TiB")],
)
def test_bytes(count, said):
    assert spoken_bytes(count) == said


@pytest.mark.parametrize(
    "seconds, said", [(0, "0.0 µs"), (2e-6, "2.0 µs"), (0.003 - 0.002, "1.0 ms"), (0.0034, "3.4 ms"), (75, "75.0 s")]
)
def test_seconds(seconds, said):
    assert spoken_seconds(seconds) == said
