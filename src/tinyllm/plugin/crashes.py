"""How a worker process ended, in words."""

from __future__ import annotations

import signal
import subprocess
from typing import Any


def how_it_ended(node: Any) -> str:
    """Killed by which signal, or with which exit status; what xdist's own controller does not say.

    Parameters
    ----------
    node
        xdist's controller of the worker. Its process is execnet's business and is asked for with care: of a worker
        that is no child of this process (``--tx socket=…``) nothing is known.
    """
    process = getattr(getattr(node.gateway, "_io", None), "popen", None)
    if process is None:
        return "how is not known"
    try:
        status = process.wait(timeout=5)
    except (OSError, subprocess.TimeoutExpired):
        return "how is not known"
    if status >= 0:
        return f"exit status {status}"
    name = signal.Signals(-status).name if -status in set(signal.Signals) else f"signal {-status}"
    hint = ", as when memory runs out" if name == "SIGKILL" else ""
    return f"killed by {name}{hint}"
