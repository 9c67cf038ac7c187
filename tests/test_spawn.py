"""`multiprocessing.spawn`: every process gets its number, and an error in one reaches the caller with its traceback."""

import os
import pickle
import signal

import pytest

import redispatch as rd
from redispatch.multiprocessing import ProcessExitedException, ProcessRaisedException, spawn, start_processes


def write(index, folder, x):
    rd.save(x * index, f"{folder}/{index}")


def fail_in_the_second(index, folder):
    if index == 1:
        raise LookupError("the second has none")
    signal.pause()


def kill_itself(index):
    os.kill(os.getpid(), signal.SIGKILL)


def test_each_process_runs_the_function_with_its_number(tmp_path):
    assert spawn(rd.save, (tmp_path / "begun anew",)) is None and rd.load(tmp_path / "begun anew") == 0
    assert start_processes(write, (str(tmp_path), rd.arange(3.0)), nprocs=2, start_method="fork") is None
    assert [rd.load(tmp_path / str(index)).tolist() for index in range(2)] == [[0, 0, 0], [0, 1, 2]]


def test_an_error_ends_the_other_processes_and_is_raised(tmp_path):
    running = start_processes(fail_in_the_second, ("",), nprocs=2, join=False, start_method="fork")
    with pytest.raises(ProcessRaisedException, match="the second has none") as raised:
        while not running.join(timeout=60):
            pass
    assert raised.value.error_index == 1 and raised.value.error_pid == running.pids()[1]
    assert not any(process.is_alive() for process in running.processes)
    assert pickle.loads(pickle.dumps(raised.value)).error_index == 1


def test_a_process_that_is_killed_says_the_signal():
    with pytest.raises(ProcessExitedException, match="process 0 terminated with signal SIGKILL") as raised:
        start_processes(kill_itself, start_method="fork")
    assert raised.value.signal_name == "SIGKILL" and raised.value.exit_code == -9
