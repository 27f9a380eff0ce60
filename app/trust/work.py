"""A question from its run to its answer, by the engine's own parts.

Import it in the worker's thread only: the engine, and torch with it, comes along.
"""

from __future__ import annotations

from app.batch.stop import Stop
from app.runs.mailbox import Mailbox
from app.trust.model import CERTIFICATE, PULL, SPLIT, STEP, Ended, Question, Step
from engine.runs.run import RunControl
from engine.workflows.trust import slices


def find_out(question: Question, stop: Stop, mailbox: Mailbox) -> Ended:
    control = RunControl()
    stop.attach(control)

    def progress(fraction: float, words: str) -> None:
        mailbox.put_frame(STEP, Step(fraction, words))

    if question.kind == PULL and question.gap is not None:
        return Ended(question, slices.pull_of(question.gap, question.unit))
    assert question.record_path is not None
    run = slices.open_slice(question.record_path, question.job, question.slice)
    answer: slices.Answer | None
    if question.kind == SPLIT:
        answer = slices.split(run, control, progress)
    elif question.kind == CERTIFICATE:
        answer = slices.certificate(run)
    elif question.kind == PULL:
        answer = slices.pull(run, control, progress)
    else:
        answer = slices.spread(run, question.seeds, control, progress)
    return Ended(question, answer, control.cancelled)
