"""The operator reference says of every operator what the registry knows, and sorts each into one shape class."""

import re

import pytest
from expecttest import assert_expected_inline

from redispatch import reference
from redispatch.dispatch import operator_named


@pytest.fixture(scope="module")
def pages():
    return reference.pages()


def test_every_operator_is_on_exactly_one_page(pages):
    text = "\n".join(text for name, text in pages.items() if name not in ("index.md", "shapes.md"))
    schemas = [line for block in re.findall(r"```text\n(.*?)\n```", text, re.DOTALL) for line in block.splitlines()]
    wanted = [str(op.schema).removeprefix("aten::") for op in reference.operators()]
    assert sorted(schemas) == sorted(wanted)


def test_an_operator_is_described_by_what_the_registry_knows():
    assert_expected_inline(
        reference.section("exp", [operator_named("aten::exp"), operator_named("aten::exp_")]),
        """\
## `exp`

```text
exp(Tensor self) -> Tensor
exp_(Tensor(a!) self) -> Tensor(a!)
```

| operator | kernels | derivative | dtypes | tags | shapes |
|---|---|---|---|---|---|
| `exp.default` | AutocastCUDA: autocast<br>CPU: pointwise exp<br>Meta: meta exp | `ExpBackward0(self)` | all | pointwise, core | [pointwise](shapes.md#pointwise) |
| `exp_.default` | ADInplaceOrView: ad\\_inplace\\_or\\_view<br>CPU: pointwise exp<br>Meta: meta exp | `ExpBackward0(self)` | all | pointwise, inplace | [pointwise](shapes.md#pointwise) |
""",  # noqa: E501  # the lines of a table
    )


def test_every_operator_is_in_one_shape_class():
    members = reference.taxonomy()
    names = [name for names in members.values() for name in names]
    assert len(names) == len(set(names)) == sum(not op.schema.is_out for op in reference.operators())
    for name, word in [
        ("add.Tensor", "pointwise"), ("sum", "full"), ("sum.dim_IntList", "dims"), ("tril", "leading"),
        ("mm", "matrices"), ("index.Tensor", "indices"), ("mse_loss", "losses"), ("uniform_", "random"),
        ("nonzero", "dynamic"), ("matmul", "composite"), ("cat", "dims"), ("upsample_nearest2d", "images"),
        ("resize_", "view"),
    ]:  # fmt: skip
        assert name in members[word], f"{name} is of the class {word}"


def test_links_lead_to_pages_and_classes_that_exist(pages):
    assert set(re.findall(r"^## (\w+)$", pages["shapes.md"], re.MULTILINE)) == set(reference.CLASSES)
    listed = pages["index.md"].partition("shapes\n")[2].partition("```")[0].split()
    assert {f"{name}.md" for name in listed} | {"index.md", "shapes.md"} == set(pages)


def test_pages_that_have_not_changed_are_left_alone(tmp_path, pages):
    (tmp_path / "gone.md").write_text("a family that is no more")
    reference.write(tmp_path)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    reference.write(tmp_path)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()} == before
    assert {path.name for path in before} == set(pages)
