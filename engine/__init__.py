"""Dualscope's engine: everything that computes. It never imports Qt."""

import os
import sys
import threading

__version__ = "0.2.0"


def _share_the_machine() -> None:
    """Threads of GNU OpenMP that wait should sleep soon, not spin for about a millisecond.

    On a machine with other work to do spinning costs many times the computation. How long they
    spin is read from the environment when torch loads. Where torch was first, a second pool of
    threads, which does nothing, makes them more than there are processors: OpenMP then spins
    hardly at all.
    """
    if "GOMP_SPINCOUNT" in os.environ:  # somebody has chosen
        return
    os.environ["GOMP_SPINCOUNT"] = "3000"
    torch = sys.modules.get("torch")
    if torch is None:
        return
    done = threading.Event()

    def second_pool() -> None:
        torch.zeros(1 << 17).add_(1)  # large enough for several threads
        done.set()
        threading.Event().wait()

    threading.Thread(target=second_pool, name="dualscope-openmp", daemon=True).start()
    done.wait(1)


_share_the_machine()
