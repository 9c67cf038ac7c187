"""A report prints, shows itself in a notebook, and knows what it was told."""

from redispatch.testing.report import Broken, Nothing, Recorder, Report

CHECKS = ("values", "pickle")


def recorder(**stated):
    return Recorder(Report("Thing", CHECKS), {key.replace("__", "/"): why for key, why in stated.items()}, CHECKS)


def holds():
    return True


def raises(error):
    def trial():
        raise error

    return trial


def filled():
    made = recorder(sort="it has no order", mm__pickle="too large")
    made.run("aten::add.Tensor", "values", holds, lambda: "add(f32[2])")
    made.run("aten::mm", "values", raises(Broken("off by <one>")), lambda: "mm(f32[2, 2])")
    made.run("aten::mm", "pickle", raises(OSError("disk full")), lambda: "mm(f32[2, 2])")
    made.run("aten::sort.stable", "values", raises(TypeError("no order")), lambda: "sort(f32[2])")
    made.run("aten::exp", "values", raises(Nothing()), lambda: "")
    made.find_stale(whole=False)
    return made.report


def test_what_was_found_is_told_apart():
    report = filled()
    assert report.passed == ["aten::add.Tensor"] and [one.op for one in report.failures] == ["aten::mm"]
    assert report.not_supported == {"aten::mm": "too large", "aten::sort.stable": "it has no order"}
    assert report.counts() == [("values", 1, 1, 1), ("pickle", 0, 0, 1)] and not report.ok
    assert [one.check for one in report.of("mm")] == ["values", "pickle"]


def test_it_prints_as_a_table():
    assert str(filled()).splitlines() == [
        "Thing: 3 operators in 0.0 s, 1 failures",
        "",
        "check   holds  fails  not supported",
        "values      1      1              1",
        "pickle      0      0              1",
        "",
        "fails",
        "  aten::mm  values  mm(f32[2, 2])",
        "      off by <one>",
        "",
        "not supported",
        "  mm",
        "      too large",
        "  sort.stable",
        "      it has no order",
    ]


def test_a_notebook_shows_what_does_not_hold_with_texts_escaped():
    text = filled()._repr_html_()
    assert "off by &lt;one&gt;" in text and "<one>" not in text
    assert text.count("<tr>") == 4 and "aten::sort.stable" in text and "aten::add" not in text


def test_statements_that_are_not_true_are_found_as_far_as_one_can_tell():
    made = recorder(exp="slow", **{"lin*": "hard", "gone": "who knows"})
    made.run("aten::exp", "values", holds, lambda: "")
    made.find_stale(whole=False)
    assert made.report.stale == {"exp": "slow"}
    made.find_stale(whole=True)
    assert made.report.stale.keys() == {"exp", "lin*", "gone"}
    assert made.report.stale["gone"] == "no operator is called so (who knows)"


def test_tags_patterns_and_checks_name_operators():
    made = Recorder(Report("Thing", CHECKS), {"#nondeterministic_seeded/values": "by key"}, CHECKS)
    made.run("aten::rand_like", "values", raises(Broken("other numbers")), lambda: "")
    made.run("aten::exp", "values", raises(Broken("other numbers")), lambda: "")
    assert [one.outcome for one in made.report.findings] == ["not supported", "fails"]


def judged(stated, *trials):
    made = Recorder(Report("Thing", CHECKS), stated, CHECKS)
    for op, error in trials:
        made.run(op, "values", holds if error is None else raises(error), lambda: "")
    made.find_stale(whole=True)
    return made.report


def test_families_and_what_writes_name_operators():
    no = TypeError("not here")
    report = judged(
        {"@sorting": "it has no order", "#writes": "it is constant", "#view": "it has no memory"},
        ("aten::sort", no), ("aten::zero_", no), ("aten::t", no), ("aten::exp", no),
    )  # fmt: skip
    assert report.not_supported == {
        "aten::sort": "it has no order",
        "aten::zero_": "it is constant",
        "aten::t": "it has no memory",
    }
    assert [one.op for one in report.failures] == ["aten::exp"] and not report.stale


def test_words_share_a_reason_and_are_judged_one_by_one():
    report = judged({"exp (two words) log/values": "why not"}, ("aten::exp", Broken("3")), ("(two words)", Broken("3")))
    assert len(report.not_supported) == 2 and report.stale == {"log/values": "no operator is called so (why not)"}


def test_a_refusal_is_covered_by_the_operator_that_refused():
    error = NotImplementedError("aten.sort.default: Thing has no order")
    assert judged({"@sorting": "no order"}, ("aten::msort", error), ("aten::unique_dim", error)).ok


def test_a_pattern_under_which_more_works_than_not_is_not_true():
    no = TypeError("not here")
    report = judged({"@sorting": "no order"}, ("aten::sort", None), ("aten::topk", no), ("aten::mode", None))
    assert report.stale == {"@sorting": "mode, sort work (no order)"}
    assert judged({"@sorting": "no order"}, ("aten::sort", None), ("aten::topk", no)).ok
    assert judged({"@sorting": "no order"}, ("aten::exp", None)).stale == {"@sorting": "excuses nothing (no order)"}


def test_a_form_that_is_called_is_judged_by_its_own_name():
    made = Recorder(Report("Thing", CHECKS), {"#writes": "it is constant"}, CHECKS)
    made.run("aten::exp", "values", raises(TypeError("no")), lambda: "", form="aten::exp_")
    assert not made.report.failures
