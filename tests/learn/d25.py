"""Lesson D25, the teacher's part: a solution, and misconceptions as changes of it, with the part that refuses each."""

SOLUTION = """
class Handle:
    def __init__(self, hooks, key):
        self.hooks, self.key = hooks, key

    def remove(self):
        self.hooks.pop(self.key, None)


class Module:
    def __init__(self):
        for name in ("_parameters", "_modules", "_before", "_after"):
            object.__setattr__(self, name, {})
        self.training = True
        self.count = 0

    def __setattr__(self, name, value):
        for table, kind in ((self._parameters, Parameter), (self._modules, Module)):
            if isinstance(value, kind):
                self.__dict__.pop(name, None)
                self._modules.pop(name, None) if kind is Parameter else None
                table[name] = value
                return
            if name in table:
                if value is not None:
                    raise TypeError(f"cannot assign {value!r} as {name!r}")
                table[name] = None
                return
        object.__setattr__(self, name, value)

    def __getattr__(self, name):
        for table in (self._parameters, self._modules):
            if name in table:
                return table[name]
        raise AttributeError(name)

    def __delattr__(self, name):
        for table in (self._parameters, self._modules):
            if name in table:
                del table[name]
                return
        object.__delattr__(self, name)

    def walk(self, prefix, seen):
        if seen is not None:
            if self in seen:
                return
            seen.add(self)
        yield prefix, self
        for name, child in self._modules.items():
            if child is not None:
                yield from child.walk(prefix + "." + name if prefix else name, seen)

    def paths(self, seen):
        for prefix, module in self.walk("", seen):
            for name, parameter in module._parameters.items():
                if parameter is not None:
                    yield prefix + "." + name if prefix else name, parameter

    def named_parameters(self):
        found, seen = [], set()
        for path, parameter in self.paths(set()):
            if parameter not in seen:
                seen.add(parameter)
                found.append((path, parameter))
        return found

    def named_modules(self):
        return list(self.walk("", set()))

    def state_dict(self):
        return {path: parameter.value for path, parameter in self.paths(None)}

    def load_state_dict(self, values, strict=True):
        there = dict(self.paths(None))
        missing = [path for path in there if path not in values]
        unexpected = [path for path in values if path not in there]
        if strict and (missing or unexpected):
            raise RuntimeError(f"missing {missing}, unexpected {unexpected}")
        for path, parameter in there.items():
            if path in values:
                parameter.value = values[path]
        return missing, unexpected

    def train(self, mode=True):
        for _, module in self.walk("", set()):
            module.training = mode
        return self

    def forward(self, x):
        return x

    def __call__(self, x):
        for hook in list(self._before.values()):
            answer = hook(self, x)
            x = x if answer is None else answer
        result = self.forward(x)
        for hook in list(self._after.values()):
            answer = hook(self, x, result)
            result = result if answer is None else answer
        return result

    def register(self, hooks, hook):
        self.count += 1
        hooks[self.count] = hook
        return Handle(hooks, self.count)

    def register_forward_pre_hook(self, hook):
        return self.register(self._before, hook)

    def register_forward_hook(self, hook):
        return self.register(self._after, hook)
"""

WRONG = {  # what is thought -> (part, what stands there, what stands there instead)
    "a name is a parameter and a child at once": (
        "the registry", "self._modules.pop(name, None) if kind is Parameter else None", "pass",
    ),
    "a plain attribute hides the parameter after it": (
        "the registry", "                self.__dict__.pop(name, None)\n", "",
    ),
    "a parameter may become a number": ("the registry", "if value is not None:\n", "if False:\n"),
    "None under a parameter's name is a plain attribute": (
        "the registry", "                table[name] = None\n                return", "                del table[name]",
    ),
    "an assignment moves a name to the end": (
        "the registry", "table[name] = value", "table[name] = (table.pop(name, None), value)[1]",
    ),
    "a module takes a parameter's place": (
        "the registry",
        "if name in table:\n                if",
        "if name in table and not isinstance(value, Module):\n                if",
    ),
    "a shared parameter is stepped twice": ("paths", "if parameter not in seen:", "if True:"),
    "a shared module is walked twice": ("paths", 'list(self.walk("", set()))', 'list(self.walk("", None))'),
    "a path begins at the end": (
        "paths",
        'prefix + "." + name if prefix else name, parameter',
        'name + "." + prefix if prefix else name, parameter',
    ),
    "a path has the last names alone": (
        "paths", 'child.walk(prefix + "." + name if prefix else name, seen)', "child.walk(name, seen)",
    ),
    "a state dict leaves out what is shared": (
        "state", "parameter in self.paths(None)}", "parameter in self.paths(set())}",
    ),
    "missing paths alone are an error": ("state", "if strict and (missing or unexpected)", "if strict and missing"),
    "loading makes new parameters": (
        "state", "parameter.value = values[path]", "self._parameters[path] = Parameter(values[path])",
    ),
    "only the module itself goes to training mode": (
        "train", 'for _, module in self.walk("", set())', 'for module in [self]',
    ),
    "a mode is only set where it changes": (
        "train",
        'in self.walk("", set()):\n            module',
        'in self.walk("", set()) if mode is not self.training else ():\n            module',
    ),
    "a hook without a result makes the result None": (
        "hooks", "result = result if answer is None else answer", "result = answer",
    ),
    "the newest hook runs first": ("hooks", "list(self._after.values())", "list(self._after.values())[::-1]"),
    "hooks after get what hooks before got": (
        "hooks", "answer = hook(self, x, result)", "answer = hook(self, given, result)",
        "        for hook in list(self._before", "        given = x\n        for hook in list(self._before",
    ),
}  # fmt: skip
