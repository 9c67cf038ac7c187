"""What every test starts from. Fixtures that give a test back the registries and the state it began with stand here.

Run through `make test`, or `pytest` from the root: pyproject.toml says why `--confcutdir` is needed.
"""

from hypothesis import HealthCheck, settings

# No deadline: the first example of a property may compile a kernel. Derandomised: a failure seen once is seen again;
# `pytest --hypothesis-profile=search` looks for new ones.
settings.register_profile("steady", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("search", deadline=None, max_examples=1000)
settings.load_profile("steady")
