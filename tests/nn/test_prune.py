"""Pruning: masks and their history, what is trained and saved of a pruned parameter, and how elements are chosen."""

import pytest

import redispatch as rd
from redispatch import nn
from redispatch.nn.utils import prune


def linear(weight, bias=None):
    """A layer of these values."""
    layer = nn.Linear(len(weight[0]), len(weight), bias=bias is not None)
    with rd.no_grad():
        layer.weight.copy_(rd.tensor(weight))
        if bias is not None:
            layer.bias.copy_(rd.tensor(bias))
    return layer


def three():
    return linear([[1.0, -2.0, 3.0], [-4.0, 5.0, -0.5]], [1.0, -3.0])


def test_a_pruned_parameter_is_one_times_a_mask():
    layer = three()
    assert prune.l1_unstructured(layer, "weight", amount=2) is layer
    assert layer.weight.tolist() == [[0, -2, 3], [-4, 5, 0]]
    assert [name for name, _ in layer.named_parameters()] == ["bias", "weight_orig"]
    assert [name for name, _ in layer.named_buffers()] == ["weight_mask"]
    assert list(layer.state_dict()) == ["bias", "weight_orig", "weight_mask"]
    (hook,) = layer._forward_pre_hooks.values()
    assert isinstance(hook, prune.L1Unstructured) and hook._tensor_name == "weight"
    assert prune.is_pruned(nn.Sequential(layer)) and not prune.is_pruned(nn.Sequential(nn.ReLU()))


def test_what_is_pruned_stays_zero_while_the_rest_is_trained():
    layer = prune.l1_unstructured(three(), "weight", amount=0.5)
    layer(rd.ones(1, 3)).sum().backward()
    assert layer.weight_orig.grad.tolist() == [[0, 0, 1], [1, 1, 0]]
    rd.optim.SGD(layer.parameters(), lr=1.0).step()
    assert layer(rd.ones(1, 3)).tolist() == [[2.0, -5.0]]
    assert layer.weight.tolist() == [[0, 0, 2], [-5, 4, 0]]


def test_each_method_of_a_history_looks_at_what_those_before_it_left():
    layer = prune.ln_structured(three(), "weight", amount=1, n=2, dim=1)  # norms 4.12, 5.39, 3.04
    assert layer.weight.tolist() == [[1, -2, 0], [-4, 5, 0]]
    prune.l1_unstructured(layer, "weight", amount=0.5)
    assert layer.weight.tolist() == [[0, 0, 0], [-4, 5, 0]]
    prune.ln_structured(layer, "weight", amount=1, n=float("inf"), dim=0)
    assert not layer.weight.any()  # the first row was empty: the second was all that was left
    (history,) = layer._forward_pre_hooks.values()
    assert [type(method) for method in history] == [prune.LnStructured, prune.L1Unstructured, prune.LnStructured]
    assert len(history) == 3 and history[1].amount == 0.5


def test_removed_it_is_a_parameter_with_zeros():
    layer = prune.l1_unstructured(three(), "weight", amount=5)
    parameter = layer.weight_orig
    prune.remove(layer, "weight")
    assert layer.weight is parameter and parameter.tolist() == [[0, 0, 0], [0, 5, 0]]
    assert not layer._forward_pre_hooks and not dict(layer.named_buffers())
    with pytest.raises(ValueError, match="Parameter 'weight' of module Linear.* has to be pruned before"):
        prune.remove(layer, "weight")


def test_random_methods_prune_the_amount_asked_for():
    rd.manual_seed(0)
    layer = prune.random_unstructured(nn.Linear(10, 7), "weight", amount=0.3)
    assert (layer.weight_mask == 0).sum() == 21
    layer = prune.random_structured(nn.Linear(10, 7), "weight", amount=3, dim=1)
    assert sorted(layer.weight_mask.sum(0).tolist()) == [0.0] * 3 + [7.0] * 7
    assert prune.random_structured(nn.Linear(3, 3), "weight", amount=0, dim=0).weight_mask.all()


def test_masks_and_scores_may_be_given():
    layer = prune.custom_from_mask(three(), "bias", mask=rd.tensor([0, 1]))
    assert layer.bias.tolist() == [0, -3]
    prune.l1_unstructured(layer, "weight", amount=1, importance_scores=rd.tensor([[9.0, 9, 9], [9, 1, 9]]))
    assert layer.weight.tolist() == [[1, -2, 3], [-4, 0, -0.5]]
    x = rd.tensor([1.0, -3.0, 2.0, 0.5])
    assert prune.L1Unstructured(2).prune(x).tolist() == [0, -3, 2, 0]
    assert prune.L1Unstructured(0.5).prune(x, importance_scores=-x.flip(0)).tolist() == [0, -3, 2, 0]
    assert prune.identity(three(), "weight").weight_mask.all()


def test_global_pruning_compares_the_parameters_of_all_modules():
    small, large = linear([[0.1, 0.2]]), linear([[3.0, 0.15]])
    pairs = [(small, "weight"), (large, "weight")]
    prune.global_unstructured(pairs, pruning_method=prune.L1Unstructured, amount=0.5)
    assert small.weight_mask.tolist() == [[0, 1]] and large.weight_mask.tolist() == [[1, 0]]
    prune.global_unstructured(pairs, prune.L1Unstructured, importance_scores={pairs[1]: rd.zeros(1, 2)}, amount=1)
    assert small.weight_mask.tolist() == [[0, 1]] and large.weight_mask.tolist() == [[0, 0]]


def test_a_method_of_ones_own_is_a_class_with_a_mask():
    class EveryOther(prune.BasePruningMethod):
        PRUNING_TYPE = "unstructured"

        def compute_mask(self, t, default_mask):
            mask = default_mask.clone()
            mask.view(-1)[::2] = 0
            return mask

    layer = three()
    EveryOther.apply(layer, "weight")
    assert layer.weight.tolist() == [[0, -2, 0], [-4, 0, -0.5]]
    EveryOther.apply(layer, "weight")  # of the three that are left
    assert layer.weight.tolist() == [[0, 0, 0], [-4, 0, 0]]
    with pytest.raises(TypeError, match="abstract"):
        prune.BasePruningMethod()


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda m: prune.l1_unstructured(m, "weight", -1), ValueError, "amount=-1 should either be a float"),
        (lambda m: prune.l1_unstructured(m, "weight", 1.5), ValueError, "amount=1.5 should either be a float"),
        (lambda m: prune.l1_unstructured(m, "weight", "1"), TypeError, "Invalid type for amount: 1"),
        (lambda m: prune.l1_unstructured(m, "weight", 7), ValueError, "number of parameters to prune=6"),
        (lambda m: prune.ln_structured(m, "weight", 1, 2, 5), IndexError, "Invalid index 5 for tensor of size"),
        (lambda m: prune.ln_structured(m, "bias", 1, 2, 0), ValueError, "only be applied to multidimensional"),
        (lambda m: prune.l1_unstructured(m, "width", 1), AttributeError, "width"),
        (lambda m: prune.custom_from_mask(m, "weight", rd.ones(3)), AssertionError, "must match self.mask shape"),
        (lambda m: prune.l1_unstructured(m, "weight", 1, rd.ones(3)), AssertionError, "importance_scores should have"),
        (lambda m: prune.global_unstructured(3, prune.L1Unstructured), TypeError, "not an Iterable"),
        (
            lambda m: prune.global_unstructured([], prune.L1Unstructured, [], amount=1),
            TypeError,
            "must be of type dict",
        ),
        (lambda m: prune.global_unstructured([], prune.LnStructured, amount=1, n=2), TypeError, "of type structured"),
        (lambda m: prune.PruningContainer(3), TypeError, "is not a BasePruningMethod"),
    ],
)
@pytest.mark.parametrize("before", [False, True])
def test_what_cannot_be_pruned_is_an_error_and_changes_nothing(call, error, message, before):
    layer = three()
    if before:
        prune.identity(prune.identity(layer, "weight"), "bias")
    hooks, state = dict(layer._forward_pre_hooks), dict(layer.state_dict(keep_vars=True))
    with pytest.raises(error, match=message):
        call(layer)
    after = layer.state_dict(keep_vars=True)
    assert layer._forward_pre_hooks == hooks and list(after) == list(state)
    assert all(after[name] is state[name] for name in state)
