"""Lesson D05, the teacher's part: a solution, and misconceptions as changes of it, with the part that refuses each."""

SOLUTION = """
def choose(sizes, out, inputs):
    arrays = [one for one in inputs if isinstance(one, Array)]
    simple = out.strides[-1] == 1 and all(one.strides[-1] in (0, 1) for one in arrays)
    loop = "strided" if not simple else "flat" if len(sizes) == 1 else "rows"
    layout = ""
    for one in inputs:
        if not isinstance(one, Array):
            layout += "n"
        elif one == out:
            layout += "="
        else:
            layout += "0" if simple and one.strides[-1] == 0 else "a"
    return loop, layout


def flat(lo, hi, layout, out, inputs, machine):
    if lo == hi:
        return
    once = {k: machine.load(one.memory, one.offset) for k, (how, one) in enumerate(zip(layout, inputs)) if how == "0"}
    once |= {k: one for k, (how, one) in enumerate(zip(layout, inputs)) if how == "n"}
    i = lo
    while i + 4 <= hi:
        values = [
            [once[k]] * 4 if k in once else machine.load4(one.memory, one.offset + i) for k, one in enumerate(inputs)
        ]
        machine.store4(out.memory, out.offset + i, machine.body4(*values))
        i += 4
    for i in range(i, hi):
        values = [once[k] if k in once else machine.load(one.memory, one.offset + i) for k, one in enumerate(inputs)]
        machine.store(out.memory, out.offset + i, machine.body(*values))


def address(index, sizes, array):
    at = array.offset
    for size, step in zip(reversed(sizes), reversed(array.strides)):
        index, i = divmod(index, size)
        at += i * step
    return at


def rows(lo, hi, sizes, layout, out, inputs, machine):
    *outer, inner = sizes

    def row_of(one, row):
        if not isinstance(one, Array):
            return one
        return one._replace(offset=address(row, outer, one._replace(strides=one.strides[:-1])))

    row, first = divmod(lo, inner)
    left = hi - lo
    while left > 0:
        last = min(inner, first + left)
        flat(first, last, layout, row_of(out, row), [row_of(one, row) for one in inputs], machine)
        left -= last - first
        row, first = row + 1, 0


def strided(lo, hi, sizes, layout, out, inputs, machine):
    for i in range(lo, hi):
        values = [
            machine.load(one.memory, address(i, sizes, one)) if isinstance(one, Array) else one for one in inputs
        ]
        machine.store(out.memory, address(i, sizes, out), machine.body(*values))


def run(sizes, out, inputs, machine, chunk):
    loop, layout = choose(sizes, out, inputs)
    count = 1
    for size in sizes:
        count *= size
    for lo in range(0, count, chunk):
        hi = min(count, lo + chunk)
        if loop == "flat":
            flat(lo, hi, layout, out, inputs, machine)
        else:
            {"rows": rows, "strided": strided}[loop](lo, hi, sizes, layout, out, inputs, machine)
"""

TAIL = "    for i in range(i, hi):\n        values = [once"
WRONG = {  # what is thought -> (part, what stands there, what stands there instead)
    "one dimension is flat, whatever its steps": (
        "choose", '"strided" if not simple else "flat" if len(sizes) == 1 else "rows"',
        '"flat" if len(sizes) == 1 else "rows" if simple else "strided"',
    ),
    "inputs that repeat are strided": ("choose", "in (0, 1) for", "in (1,) for"),
    "an output may have the step 0": ("choose", "out.strides[-1] == 1", "out.strides[-1] in (0, 1)"),
    "the same memory is in place": ("choose", "elif one == out:", "elif one.memory == out.memory:"),
    "an element is read once in strided loops, too": ("choose", '"0" if simple and one', '"0" if one'),
    "there is no tail": ("flat", "    for i in range(i, hi):", "    for i in ():"),
    "the tail is one more vector": ("flat", "while i + 4 <= hi:", "while i < hi:"),
    "the last vector may begin earlier": (
        "flat", TAIL,
        "    if i < hi and hi - 4 >= lo:\n        i = hi - 4\n"
        "        values = [[once[k]] * 4 if k in once else machine.load4(one.memory, one.offset + i)"
        " for k, one in enumerate(inputs)]\n"
        "        machine.store4(out.memory, out.offset + i, machine.body4(*values))\n        return\n" + TAIL,
    ),
    "no vectors are needed": ("flat", "while i + 4 <= hi:", "while False:"),
    "vectors are aligned to index 0": (
        "flat", "    i = lo\n    while", "    i = lo\n    while i % 4 and i < hi:\n"
        "        values = [once[k] if k in once else machine.load(one.memory, one.offset + i)"
        " for k, one in enumerate(inputs)]\n"
        "        machine.store(out.memory, out.offset + i, machine.body(*values))\n        i += 1\n    while",
    ),
    "an element all along is loaded each time": (
        "flat", "values = [once[k] if k in once",
        'values = [machine.load(one.memory, one.offset) if layout[k] == "0" else once[k] if k in once',
    ),
    "offsets are those of the range": (
        "flat", "machine.store4(out.memory, out.offset + i,", "machine.store4(out.memory, i,",
    ),
    "a range begins with a row": ("rows", "row, first = divmod(lo, inner)", "row, first = lo // inner, 0"),
    "a range ends with a row": ("rows", "last = min(inner, first + left)", "last = inner"),
    "the outermost index runs fastest": (
        "rows", "zip(reversed(sizes), reversed(array.strides))", "zip(sizes, array.strides)",
    ),
    "rows need no vectors": (
        "rows", "flat(first, last, layout, row_of(out, row), [row_of(one, row) for one in inputs], machine)",
        "strided(row * inner + first, row * inner + last, sizes, layout, out, inputs, machine)",
    ),
    "the outermost index runs fastest in strided loops": (
        "strided", "zip(reversed(sizes), reversed(array.strides))", "zip(sizes, array.strides)",
    ),
    "a strided loop is a loop over the whole": (
        "strided", "for i in range(lo, hi):\n        values = [\n", "for i in range(hi):\n        values = [\n",
    ),
    "pieces divide the whole": ("run", "hi = min(count, lo + chunk)", "hi = lo + chunk"),
    "the strided loop does for all": ("run", '{"rows": rows, "strided": strided}[loop]', "strided"),
}  # fmt: skip
