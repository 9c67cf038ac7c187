"""What extension authors take from PyTorch's own tests: its test case, and tensors that log operators."""

import io
import unittest

import torch
from torch.testing._internal.common_utils import TestCase, instantiate_parametrized_tests, parametrize, subtest
from torch.testing._internal.logging_tensor import LoggingTensor, capture_logs, capture_logs_with_logging_tensor_mode
from torch.testing._internal.two_tensor import TwoTensor, TwoTensorMode


class Tests(TestCase):
    def test_equal(self):
        self.assertEqual(torch.ones(2), torch.ones(2) + 1e-8)
        self.assertEqual([torch.tensor(3), {"a": 1.0}], [torch.tensor(3), {"a": 1.0}])
        self.assertEqual(torch.tensor(3), 3)
        self.assertNotEqual(torch.ones(1), torch.zeros(1))
        self.assertEqual(torch.initial_seed(), 1234)
        for x, y in ((1, 2), (torch.ones(2), torch.ones(3)), (torch.ones(1), torch.ones(1).double()), ("a", "b")):
            with self.assertRaises(AssertionError):
                self.assertEqual(x, y)

    @parametrize("a,b", [(1, 2), subtest((3, 4), name="large")])
    @parametrize("dtype", [torch.float32, torch.int64])
    def test_less(self, a, b, dtype):
        self.assertLess(torch.tensor(a, dtype=dtype), b)


instantiate_parametrized_tests(Tests)
suite = unittest.TestLoader().loadTestsFromTestCase(Tests)
print([test._testMethodName for test in suite], unittest.TextTestRunner(io.StringIO()).run(suite).wasSuccessful())

with capture_logs() as log:
    x = LoggingTensor(torch.ones(2, 2), requires_grad=True)
    y = x @ x.t() * x
    torch.autograd.grad(y.reshape(-1).sum(), x)
print("\n".join(log))
with capture_logs_with_logging_tensor_mode() as log:
    torch.arange(4).view(2, 2)[0].add_(1)
print("\n".join(log))
with TwoTensorMode():
    made = torch.zeros(2)
print(type(made).__name__, isinstance(made, TwoTensor), torch.ops.aten.size.default(torch.ones(2, 3)))
