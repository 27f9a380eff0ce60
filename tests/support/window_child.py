"""The whole workstation in a process of its own, with a run going on.

``window_child.py DATA``: starts it as the command does, opens DATA (HU), starts a run and says
'running' when some iterations are done. The denoiser is slowed down, so that there is time to
disturb it.
"""

import sys
import time

from PySide6.QtCore import QTimer

from app.context import AppContext
from engine.cli import main
from engine.priors.analytic import GaussianPrior

STEPS = 60
SLOW_SECONDS = 0.05
denoise, on_choices = GaussianPrior.__call__, AppContext._on_choices


def slow(*args):
    time.sleep(SLOW_SECONDS)
    return denoise(*args)


class Driver:
    """Presses Run as soon as the data are there."""

    def __init__(self, window, path):
        self.window, self.started = window, False
        self.timer = QTimer(window)
        self.timer.timeout.connect(self.look)
        self.timer.start(20)
        window.data.open(path, {"unit": "hu"})

    def look(self):
        window = self.window
        if window.setup.data is not None and not self.started:
            self.started = True
            values = {"method": "dc-pnpdp", "prior": "gaussian", "nfe": STEPS, "cg_iterations": 2}
            window.history.set_many(values)
            window.left.solver.run.click()
        entries = list(window.store)
        if self.started and entries and (entries[-1].history.last("k") or 0) > 3:
            self.timer.stop()
            print("running", flush=True)


def ready(context, choices):
    on_choices(context, choices)
    context.driver = Driver(context, sys.argv[1])


if __name__ == "__main__":
    GaussianPrior.__call__ = slow
    AppContext._on_choices = ready
    sys.exit(main(["gui"]))
