"""Elementary and special functions of one element, as polynomials that LLVM vectorises."""
