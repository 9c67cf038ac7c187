"""What `make demo` runs: a classifier trained on scanned digits through the whole stack."""
