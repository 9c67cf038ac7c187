"""Times of statements: what is measured, what is said of it, and the tables."""

import pytest
from expecttest import assert_expected_inline

import redispatch as rd
from redispatch.utils import benchmark
from redispatch.utils.benchmark import Compare, Measurement, TaskSpec, Timer


def measured(times, runs=10, **facts):
    return Measurement(runs, times, TaskSpec("x + 1", "pass", **facts))


SORTS = [
    measured([1e-5, 1.1e-5, 1.2e-5, 1.05e-5], label="sort", sub_label="int", description="n=1"),
    measured([2e-4, 2.2e-4, 3e-4, 2.1e-4], label="sort", sub_label="int", description="n=1000"),
    measured([3e-5] * 4, label="sort", sub_label="float", description="n=1"),
    measured([1.7e-4] * 4, label="sort", sub_label="float", description="n=1000"),
    measured([7e-5] * 4, label="sort", sub_label="float", description="n=1", num_threads=4),
]


def test_a_statement_is_measured_on_the_threads_that_are_asked_for():
    seen = []
    before = rd.get_num_threads()
    timer = Timer("note(torch.get_num_threads())", globals={"note": seen.append}, num_threads=2, label="threads")
    found = timer.timeit(10)
    assert found.number_per_run == 10 and {*seen} == {2} and rd.get_num_threads() == before and found.label == "threads"
    called = []
    found = timer.blocked_autorange(callback=lambda number, time: called.append(number), min_run_time=0.001)
    assert sum(found.raw_times) >= 0.001 and called == [found.number_per_run] * len(found.raw_times)
    assert timer.adaptive_autorange(max_run_time=0.02).raw_times


@pytest.mark.parametrize(
    ("facts", "text"),
    [
        ({"stmt": len}, "Currently only a `str`"),
        ({"language": "c++"}, "Invalid language"),
        ({"global_setup": "x"}, "C[+][+] only, got `x`"),
    ],
)
def test_what_cannot_be_measured_is_an_error(facts, text):
    with pytest.raises(ValueError, match=text):
        Timer(**facts)


def test_a_measurement_says_how_far_its_times_are_apart():
    lines = repr(SORTS[1]).partition("\n")[2]
    assert_expected_inline(
        lines,
        """\
sort: int
n=1000
  Median: 21.50 us
  IQR:    3.25 us (20.75 to 24.00)
  4 measurements, 10 runs per measurement, 1 thread
  WARNING: Interquartile range is 15.1% of the median measurement.
           This could indicate system fluctuation.""",
    )
    assert SORTS[0].significant_figures == 1 and SORTS[3].significant_figures == 2
    with pytest.raises(AttributeError):
        SORTS[0].nothing


def test_measurements_stand_side_by_side():
    table = Compare(SORTS)
    table.highlight_warnings()
    assert_expected_inline(
        str(table),
        """\
[-------------- sort --------------]
             |  n=1  |     n=1000   
1 threads: -------------------------
      int    |  1.1  |  21.5 (! 15%)
      float  |  3.0  |  17.0        
4 threads: -------------------------
      float  |  7.0  |              

Times are in microseconds (us).
(! XX%) Measurement has high variance, where XX is the IQR / median * 100.
""",  # noqa: W291  # columns are filled up
    )
    table.colorize()
    table.trim_significant_figures()
    assert "\033[92m\033[1m" in str(table)
    with pytest.raises(ValueError, match="Expected an instance of `Measurement`"):
        Compare([1])


def test_numbers_are_written_for_people():
    assert [benchmark.select_unit(t)[0] for t in (1e-7, 2e-5, 2e-3, 5)] == ["ns", "us", "ms", "s"]
    assert benchmark.trim_sigfig(12345.0, 2) == 12000 and benchmark.unit_to_english("us") == "microsecond"
    assert benchmark.ordered_unique([2, 1, 2]) == [2, 1]
