"""`help(redispatch.sin)` begins with a sentence; shapes, dtypes, errors and the place of declaration follow."""

import inspect
import re

import pytest

import redispatch as rd
import redispatch.special  # its operators are declared when it is imported
from redispatch.kernels.declare.declare import SEVERAL
from redispatch.kernels.declare.describe import image_rank, taken
from redispatch.kernels.declare.public import FUNCTIONS

SENTENCE = re.compile(r"[A-Z][a-z]+s [^\n].*\.", re.DOTALL)  # a verb in the third person, and what it is done to
LINES = ("Dtypes: all", "Errors: TypeError", "Declared: kernels/ops/")
ROOMS = {"": rd, "nn": rd.nn.functional, "linalg": rd.linalg, "fft": rd.fft, "special": rd.special}
FACES = {f"{room}.{name}": face for room, faces in FUNCTIONS.items() for name, face in faces.items()}
IN_PLACE = {f"{name}_": face.inplace for name, face in FACES.items() if hasattr(face, "inplace")}
METHODS = {name: method for name, method in vars(rd.Tensor).items() if hasattr(method, "operators")}


def mistakes(faces):
    """The names of those whose help does not begin with a sentence, or lacks a line."""
    for name, face in faces.items():
        said, _, behind = face.__doc__.partition("\n\n")
        if not SENTENCE.fullmatch(said) or "None" in said or not all(line in behind for line in LINES):
            yield name, said


@pytest.mark.parametrize("faces", [FACES, IN_PLACE, METHODS], ids=["functions", "in place", "methods"])
def test_help_begins_with_a_sentence_and_names_dtypes_errors_and_the_place(faces):
    assert len(faces) > 100 and dict(mistakes(faces)) == {}


def test_functions_of_the_rooms_are_those_faces():
    for room, module in ROOMS.items():
        shown = [value for name, value in inspect.getmembers(module, inspect.isfunction) if hasattr(value, "operators")]
        # an operator with an underscore becomes a function when it is asked for, and has its schema for a text
        shown = [value for value in shown if not value.__name__.startswith("_") or value in FUNCTIONS[room].values()]
        assert len(shown) > 20 and dict(mistakes({value.__name__: value for value in shown})) == {}, room


def test_functions_and_methods_that_are_written_by_hand_begin_with_a_sentence():
    for owner in (rd, rd.Tensor):
        for name, value in vars(owner).items():
            function = inspect.unwrap(value) if inspect.isfunction(value) else None
            if name.startswith("_") or function is None or not function.__code__.co_filename.count("/kernels/ops/"):
                continue
            assert re.match(r"[A-Z][a-z]+s\b", value.__doc__ or ""), f"{name}: {value.__doc__}"


WHOLE = """\
Does in place what `atan2` does: returns the angle of each point (other, self) of the plane, from -π to π.

Shapes: any that broadcast, to what the result has.
Dtypes: all but complex; whole numbers are computed as the default float dtype.
Errors: TypeError for arguments that no schema takes; RuntimeError for shapes that do not broadcast and other dtypes.
Declared: kernels/ops/elementary.py.

    aten::atan2_(Tensor(a!) self, Tensor other) -> Tensor(a!)
"""


def test_the_whole_text():
    assert re.sub(r":\d+\.", ".", rd.Tensor.atan2_.__doc__) == WHOLE


def test_a_second_name_has_the_first_ones_sentence_and_facts():
    own, of = rd.arccos.__doc__.split("\n"), rd.acos.__doc__.split("\n")
    assert own[:5] == of[:5] and "aliases.py" in own[5] and "elementary.py" in of[5]


def test_an_example_in_the_words_for_dtypes_and_images():
    assert taken(()) == "all"
    assert taken(("bool",)) == "all but bool"
    assert taken(("float16", "bfloat16", "int64", *SEVERAL["complex"])) == "all but 16-bit floats, complex and int64"
    assert [image_rank(name) for name in ("avg_pool2d", "_upsample_nearest_exact1d", "rad2deg", "im2col")] == [
        3,
        2,
        0,
        0,
    ]
    assert "[batch, channels, depth, height, width]" in rd.conv3d.__doc__


def test_dtypes_in_the_help_are_those_that_the_declaration_refuses():
    for name, face in FACES.items():
        refused = (face.op.alias_of or face.op).refuses
        assert ("all but" in face.__doc__) == bool(refused), name
