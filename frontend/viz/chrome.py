"""A trace in the Trace Event Format, which Perfetto (ui.perfetto.dev) and chrome://tracing open.

Each hop is one complete event: where it began, how long it took, what it was given. Hops inside it lie below it.
Source: "Trace Event Format", the Chromium project; times are in microseconds.
"""

from __future__ import annotations

import json
import os
from typing import Any

from redispatch.dispatch import Hop, describe
from redispatch.dispatch.inspection.trace import name_of

from .tables import short_place, shortened, spoken


def chrome(root: Hop) -> str:
    """The events as JSON."""
    began = min((hop.start for hop in root.children), default=0.0)
    events = [event(hop, began) for _, hop in root.walk()]
    names = [
        {"ph": "M", "name": "process_name", "pid": os.getpid(), "args": {"name": "redispatch"}},
        *(
            {"ph": "M", "name": "thread_name", "pid": os.getpid(), "tid": thread, "args": {"name": f"thread {index}"}}
            for index, thread in enumerate(dict.fromkeys(hop.thread for _, hop in root.walk()))
        ),
    ]
    return json.dumps({"traceEvents": names + events, "displayTimeUnit": "ns"})


def event(hop: Hop, began: float) -> dict[str, Any]:
    """One hop."""
    arguments = {
        "key": hop.key,
        "answered by": hop.answered,
        "registered at": short_place(hop.place),
        "called at": short_place(hop.called_at),
        "arguments": shortened(hop.arguments),
        "tensors": ", ".join(f"#{tensor.number} {tensor.summary}" for value in hop.inputs for tensor in value.tensors),
        "result": shortened(hop.result),
    }
    if hop.entry is not None:
        arguments["keyset"] = describe(hop.keyset)
    if hop.error is not None:
        arguments["error"] = shortened(spoken(hop.error))
    return {
        "ph": "X",
        "name": f"{name_of(hop.op)} [{hop.key}]",
        "cat": "handler" if hop.handler else "dispatch",
        "ts": (hop.start - began) * 1e6,
        "dur": hop.seconds * 1e6,
        "pid": os.getpid(),
        "tid": hop.thread,
        "args": arguments,
    }
