"""Programs for TorchScript: a name, the source of a function `f`, and the arguments of its calls.

Each is run by Python and as TorchScript (test_programs.py), and by PyTorch (tests/parity/torchscript.py).
"""

PROGRAMS: list[tuple[str, str, list[str]]] = [
    (
        "add",
        """
def f(x: Tensor, y: int):
    return x + y * 2
""",
        ["(torch.ones(2), 3)"],
    ),
    (
        "loop",
        """
def f(x: Tensor, n: int):
    for i in range(n):
        if i % 2 == 0:
            x = x + i
        elif i == 5:
            return x
    return x.view(2, -1)
""",
        ["(torch.ones(4), 3)", "(torch.ones(4), 9)"],
    ),
    (
        "while",
        """
def f(n: int):
    s = 0
    i = 0
    while i < n:
        i += 1
        if i == 3:
            continue
        if s > 20:
            break
        s += i
    return s, i
""",
        ["(3,)", "(50,)", "(0,)"],
    ),
    (
        "optional",
        """
def f(x: Optional[int], y: int = 2) -> int:
    if x is None:
        return y
    return x + y
""",
        ["(None,)", "(4, 5)"],
    ),
    (
        "optional2",
        """
def f(x: Optional[Tensor]):
    if x is not None and x.dim() == 1:
        return x + 1
    if x is None:
        x = torch.zeros(2)
    return x
""",
        ["(None,)", "(torch.ones(2),)", "(torch.ones(2, 2),)"],
    ),
    (
        "optional3",
        """
def f(x: Optional[int]):
    assert x is not None
    y: Optional[int] = None
    for i in range(x):
        if y is None:
            y = i
        else:
            y = y + i
    return y
""",
        ["(4,)"],
    ),
    (
        "lists",
        """
def f(n: int):
    a: List[int] = []
    for i in range(n):
        a.append(i * i)
    a.insert(0, 7)
    a.reverse()
    b = [x + 1 for x in a if x > 1]
    a.extend(b)
    return a, len(a), a[1:3], 7 in a, sorted(a), a.index(7), a.pop(), a.count(4), sum(b), max(b), min(b)
""",
        ["(5,)"],
    ),
    (
        "dicts",
        """
def f(d: Dict[str, int]):
    t = 0
    for k in d:
        t += d[k]
    for k, v in d.items():
        t += len(k) * v
    d['z'] = t
    e = {k: v + 1 for k, v in d.items()}
    return t, d, list(d.keys()), list(d.values()), d.get('q'), d.get('a', 5), 'a' in d, e, d.pop('a'), len(d)
""",
        ["({'a': 1, 'bb': 2},)"],
    ),
    (
        "strings",
        """
def f(s: str, n: int):
    t = s.upper() + '-' * n
    u = t.split('-')
    return (
        t, u, '{} and {}'.format(s, n), f'{s}:{n}', s.replace('a', 'b'), s[1:], s[0], ','.join(u),
        s.startswith('a'), s.find('c'), ord(s[0]), s == 'abc', '%s-%d' % (s, n), s.strip(), str(n), int('4'),
        float('1.5'),
    )
""",
        ["('abc', 2)"],
    ),
    (
        "tuples",
        """
def f(p: Tuple[int, str]):
    a, b = p
    q = (a, b, p)
    c, (d, e) = 1, (2, 3)
    return q[2][1], q[0:2], c + d + e, len(q)
""",
        ["((1, 'x'),)"],
    ),
    (
        "enumerate",
        """
def f(a: List[int], b: List[float]):
    t = 0.0
    for i, x in enumerate(a):
        t += i * x
    for x, y in zip(a, b):
        t += x * y
    for i, (x, y) in enumerate(zip(a, b)):
        t += i + x - y
    for x in reversed(a):
        t = t * 2 + x
    return t
""",
        ["([1, 2, 3], [0.5, 1.5])"],
    ),
    (
        "numbers",
        """
def f(a: int, b: float):
    return (
        a + b, a // 2, a % 3, -a % 3, a / 2, b // 1, a ** 2, b ** 2, abs(-a), round(b), min(a, 3), max(b, 1.0),
        int(b), float(a), bool(a), a & 3, a | 8, a ^ 1, a << 2, a >> 1, ~a, not a > 3, a == b, a != 2,
        divmod(a, 3),
    )
""",
        ["(7, 2.5)", "(-7, -2.5)"],
    ),
    (
        "math",
        """
import math
def f(a: float):
    return math.sqrt(a), math.floor(a), math.ceil(a), math.pi, math.log(a), math.sin(a), math.pow(a, 2.0)
""",
        ["(2.25,)"],
    ),
    (
        "complex",
        """
def f(a: complex):
    return a * 2, a + 1.5, abs(a), a == 1j, complex(1, 2) + a
""",
        ["((1+2j),)"],
    ),
    (
        "index",
        """
def f(x: Tensor):
    return (
        x[0], x[1:], x[:, 1], x[..., 0], x[None], x[0, 1], x[-1, ::2], x[torch.tensor([0, 1])], x[x > 2],
        x[:, torch.tensor([1])], x[0:1, None], x[..., None], x[1:2, ..., 0:1],
    )
""",
        ["(torch.arange(6.).view(2, 3),)"],
    ),
    (
        "setitem",
        """
def f(x: Tensor):
    x = x.clone()
    x[0] = 5
    x[1, 1:] = torch.ones(2)
    x[x > 4] = 0.5
    x[:, 0] += 1
    return x
""",
        ["(torch.arange(6.).view(2, 3),)"],
    ),
    (
        "inplace",
        """
def f(x: Tensor):
    y = x.clone()
    y += 1
    y *= x
    y -= 2
    y /= 4
    return y, x
""",
        ["(torch.ones(2),)"],
    ),
    (
        "reflected",
        """
def f(x: Tensor):
    return (
        1 + x, 1 - x, 2 * x, 1 / x, 2 ** x, 3 > x, 3 <= x, 3 == x, x // 2, 5 // x, x % 2, x ** 2, -x, x @ x,
        ~(x > 1), (x > 1) & (x < 3), (x > 1) | (x < 3),
    )
""",
        ["(torch.tensor([1., 2., 4.]),)"],
    ),
    (
        "condexpr",
        """
def f(x: Tensor, n: int):
    y = x if n > 1 else x * 2
    z = 1 if bool(x.sum() > 2) else 2
    return y, z, n > 1 and n < 5, n > 3 or n == 0, 1 < n < 4
""",
        ["(torch.ones(2), 1)", "(torch.ones(4), 3)"],
    ),
    (
        "nested",
        """
def f(n: int):
    r: List[int] = []
    for i in range(n):
        for j in range(i, n, 2):
            if j == 3:
                break
            if i == j:
                continue
            r.append(i * 10 + j)
        else_ = i
    return r
""",
        ["(6,)"],
    ),
    (
        "earlyreturn",
        """
def f(n: int) -> int:
    for i in range(n):
        for j in range(n):
            if i * j == 6:
                return i * 100 + j
    return -1
""",
        ["(2,)", "(5,)"],
    ),
    (
        "partial",
        """
def f(n: int, m: int):
    if n > 0:
        if m > 0:
            return 1
        n = 10
    else:
        if m > 5:
            return 2
    return n + m
""",
        ["(1, 1)", "(1, 0)", "(-1, 6)", "(-1, 1)"],
    ),
    (
        "whilereturn",
        """
def f(x: Tensor):
    while True:
        x = x + 1
        if bool(x.sum() > 10):
            return x
""",
        ["(torch.zeros(2),)"],
    ),
    (
        "fortensor",
        """
def f(x: Tensor):
    t = torch.zeros(3)
    for row in x:
        t = t + row
    return t, len(x)
""",
        ["(torch.ones(2, 3),)"],
    ),
    (
        "factories",
        """
def f(n: int):
    return (
        torch.zeros(n, 2), torch.ones([n]), torch.arange(n), torch.full([2], 1.5), torch.tensor([1, 2, n]),
        torch.tensor([[1., 2.]]), torch.tensor(3, dtype=torch.float64), torch.zeros([2], dtype=torch.int32),
        torch.eye(n), torch.linspace(0, 1, n), torch.zeros(n, n),
    )
""",
        ["(3,)"],
    ),
    (
        "attrs",
        """
def f(x: Tensor):
    return (
        x.shape, x.size(), x.size(0), x.dim(), x.ndim, x.dtype == torch.float32, x.device.type,
        x.requires_grad, x.numel(), x.T, x.is_cuda, x.shape[1] + 1, x.is_floating_point(),
    )
""",
        ["(torch.ones(2, 3),)"],
    ),
    (
        "methods",
        """
def f(x: Tensor):
    a, b = x.split(1)
    m, i = x.max(dim=1)
    v, k = torch.topk(x, 2, dim=1)
    return (
        a, b, m, i, v, k, x.sum(), x.sum(1), x.sum(dim=0, keepdim=True), x.mean(), x.t(), x.reshape(3, 2),
        x.permute(1, 0), x.transpose(0, 1), x.float(), x.to(torch.float64), x.clamp(0, 1), x.chunk(2, dim=1),
        torch.cat([x, x], dim=1), torch.stack([x, x]), x.unbind(0), x.item() if x.numel() == 1 else 2.5,
        x.argmax(), torch.where(x > 1, x, -x), x.masked_fill(x > 1, 0.0), x.expand(2, 3), x.repeat(2, 1),
        x.flatten(), x.type_as(x), x.long(), x.int(),
    )
""",
        ["(torch.arange(6.).view(2, 3),)"],
    ),
    (
        "functional",
        """
import torch.nn.functional as F
def f(x: Tensor):
    return (
        F.relu(x), F.softmax(x, dim=1), F.dropout(x, 0.5, False), F.linear(x, torch.ones(2, 3)),
        F.layer_norm(x, [3]), F.mse_loss(x, x * 2), F.cross_entropy(x, torch.tensor([0, 2])), F.pad(x, [1, 1]),
        F.gelu(x), F.log_softmax(x, 1), F.one_hot(torch.tensor([0, 1]), 3), F.leaky_relu(x, 0.1),
        F.normalize(x),
    )
""",
        ["(torch.arange(6.).view(2, 3),)"],
    ),
    (
        "linalg",
        """
def f(x: Tensor):
    return (
        torch.linalg.norm(x), torch.linalg.det(x), torch.einsum('ij,jk->ik', [x, x]), torch.matmul(x, x),
        torch.linalg.inv(x), torch.special.expit(x), torch.fft.fft(x).real,
    )
""",
        ["(torch.tensor([[2., 1.], [1., 3.]]),)"],
    ),
    (
        "calls",
        """
def g(x: Tensor, k: int = 2) -> Tensor:
    return x * k
def f(x: Tensor):
    return g(x) + g(x, 3) + g(k=4, x=x)
""",
        ["(torch.ones(2),)"],
    ),
    (
        "unions",
        """
def f(x: Union[int, str, List[int]]):
    if isinstance(x, int):
        return x + 1
    elif isinstance(x, str):
        return len(x)
    else:
        return x[0]
""",
        ["(1,)", "('abc',)", "([5, 6],)"],
    ),
    (
        "namedtuple",
        """
class P(NamedTuple):
    a: Tensor
    b: int = 3
def f(x: Tensor):
    p = P(x, 2)
    q = P(a=x)
    return p.a + p.b, q.b, p[1]
""",
        ["(torch.ones(2),)"],
    ),
    (
        "classes",
        """
@torch.jit.script
class C:
    def __init__(self, x: int):
        self.x = x
        self.items: List[int] = []
    def inc(self, by: int):
        self.x += by
        self.items.append(self.x)
        return self
    def __len__(self) -> int:
        return self.x
    def __add__(self, o: int) -> int:
        return self.x + o
def f(n: int):
    c = C(n)
    c.inc(2).inc(3)
    return c.x, c.items, len(c), c + 5
""",
        ["(1,)"],
    ),
    (
        "annotate",
        """
def f(n: int):
    a = torch.jit.annotate(List[Tensor], [])
    b = torch.jit.annotate(Optional[int], None)
    for i in range(n):
        a.append(torch.ones(i))
        b = i
    return a, b
""",
        ["(3,)"],
    ),
    (
        "asserts",
        """
def f(x: Tensor):
    assert x.dim() == 1, f'bad {x.dim()}'
    if x.size(0) == 0:
        raise ValueError('empty')
    return x
""",
        ["(torch.ones(2),)"],
    ),
    (
        "noreturn",
        """
def f(x: Tensor):
    y = x + 1
""",
        ["(torch.ones(2),)"],
    ),
    (
        "nones",
        """
def f(x: Tensor, m: Optional[Tensor] = None):
    if m is not None:
        x = x * m
    return x
""",
        ["(torch.ones(2),)", "(torch.ones(2), torch.ones(2))"],
    ),
    (
        "sizes",
        """
def f(x: Tensor):
    b, t, c = x.shape
    return (
        x.view(b * t, c), x.view([b, t * c]), x.new_zeros(b, t),
        torch.zeros(b, t, device=x.device, dtype=x.dtype), torch.zeros_like(x), x.view(x.size(0), -1),
    )
""",
        ["(torch.ones(2, 3, 4),)"],
    ),
    (
        "scalar",
        """
def f(x: Tensor):
    a = x.item()
    b = int(x)
    c = float(x)
    return a, b, c, x + a, int(a) + 1, bool(x)
""",
        ["(torch.tensor(3),)"],
    ),
    (
        "fori",
        """
def f(x: List[Tensor]):
    out = x[0]
    for t in x[1:]:
        out = out + t
    return out, [t.sum() for t in x], torch.cat(x)
""",
        ["([torch.ones(2), torch.ones(2)],)"],
    ),
    (
        "star",
        """
def f(x: List[int]):
    a, b = 1, 2
    a, b = b, a
    c, d = [3, 4]
    return a, b, c, d
""",
        ["([1],)"],
    ),
    (
        "delitem",
        """
def f(d: Dict[int, Tensor]):
    del d[1]
    a = [1, 2, 3]
    del a[0]
    return d, a
""",
        ["({1: torch.ones(1), 2: torch.ones(2)},)"],
    ),
    (
        "shadow",
        """
def f(n: int):
    x = 1
    if n > 1:
        x = 2
        y = 3
    else:
        y = 4
    for i in range(n):
        x += y
        y += i
    return x, y
""",
        ["(0,)", "(4,)"],
    ),
    (
        "grad",
        """
def f(x: Tensor):
    with torch.no_grad():
        y = x * 2
    return y.requires_grad, (x * 2).requires_grad
""",
        ["(torch.ones(2, requires_grad=True),)"],
    ),
    (
        "notin",
        """
def f(a: List[int], s: str):
    return 3 not in a, 'b' in s, None is None, a is not None
""",
        ["([1, 3], 'abc')"],
    ),
    (
        "dtype",
        """
def f(x: Tensor, d: torch.dtype):
    return x.to(d), x.to(dtype=torch.int64), torch.zeros(2, dtype=d)
""",
        ["(torch.ones(2), torch.float64)"],
    ),
    (
        "lstm",
        """
def f(x: Tensor, h: Tuple[Tensor, Tensor]) -> Tuple[Tensor, Tensor]:
    a, b = h
    return a + x, b
""",
        ["(torch.ones(1), (torch.ones(1), torch.ones(1)))"],
    ),
    (
        "ifstr",
        """
def f(mode: str, x: Tensor):
    if mode == 'a' or mode == 'b':
        return x
    elif mode in ['c', 'd']:
        return x + 1
    else:
        raise RuntimeError('mode ' + mode)
""",
        ["('a', torch.ones(1))", "('d', torch.ones(1))"],
    ),
    (
        "print",
        """
def f(x: int):
    print('x is', x, [1, 2], (1, 'a'))
    return x
""",
        ["(1,)"],
    ),
    (
        "isscripting",
        """
def f(x: Tensor):
    if torch.jit.is_scripting():
        return x + 1
    else:
        return undefined_name(x)
""",
        [],
    ),
    (
        "typecomment",
        """
def f(x, y):
    # type: (Tensor, int) -> Tensor
    return x + y
""",
        ["(torch.ones(1), 2)"],
    ),
    (
        "fork",
        """
def g(x: Tensor):
    return x + 1
def f(x: Tensor):
    a = torch.jit.fork(g, x)
    return torch.jit.wait(a) * 2
""",
        ["(torch.ones(1),)"],
    ),
    (
        "listops",
        """
def f(a: List[int]):
    b = a + [4]
    c = a * 2
    a += [9]
    d = [0] * 3
    d[1] = 7
    return a, b, c, d, a == b, [1, 2] == [1, 2], a[-1], list(a), a.copy()
""",
        ["([1, 2],)"],
    ),
    (
        "nestedlist",
        """
def f(n: int):
    a: List[List[int]] = []
    for i in range(n):
        a.append([j for j in range(i)])
    d: Dict[str, List[int]] = {}
    d['a'] = a[2]
    d['a'].append(9)
    return a, d
""",
        ["(3,)"],
    ),
]

# A program -> why PyTorch is not asked.
NOT_IN_PYTORCH = {
    "lists": "a comprehension with `if`",
    "strings": "a string times an int",
    "whilereturn": "it takes an endless loop for one that may end, and the result for an Optional",
    "unions": "the order of a Union's types",
    "enumerate": "`reversed` of a list",
    "numbers": "`~` of an int",
    "reflected": "`//` of a tensor by a number",
    "grad": "its executor says False of the second, too",
}
