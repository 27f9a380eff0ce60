"""A question about a run answered by the engine's own parts.

Import it in the worker's thread only: the engine, and torch with it, comes along.
"""

from __future__ import annotations

from app.background import STEP, Ended, Mailbox, Step
from app.tools.trust.model import CERTIFICATE, PULL, SPLIT, Question
from engine.spec.control import RunControl
from engine.workflows.trust import slices


def find_out(question: Question, control: RunControl, mailbox: Mailbox) -> Ended:
    """From a question to its answer; stopped, seeds that are done are kept."""

    def progress(fraction: float, words: str) -> None:
        mailbox.put_frame(STEP, Step(words, fraction))

    if question.kind == PULL and question.gap is not None:
        return Ended("done", result=slices.pull_of(question.gap, question.unit))
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
    return Ended("cancelled" if control.cancelled else "done", result=answer)
