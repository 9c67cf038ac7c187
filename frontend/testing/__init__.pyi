"""Made by `python -m redispatch.stubs`."""

from .check_operator import check_operator as check_operator
from .comparison import assert_allclose as assert_allclose, assert_close as assert_close
from .make_tensor import make_tensor as make_tensor
from .op_info import ErrorInput as ErrorInput, Maker as Maker, OpInfo as OpInfo, SampleInput as SampleInput, sample as sample
from .scalar_info import info_of as info_of
from . import _internal as _internal
from .file_check import FileCheck as FileCheck
from .report import Finding as Finding, Report as Report, ReportError as ReportError
from .subclass_check import check_mode as check_mode, check_subclass as check_subclass

