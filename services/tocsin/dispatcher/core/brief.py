"""What a worker is told: its Task, how to report, and nothing that it would have to copy. One screen, said once."""

from tocsin.contract.run import TaskKind, TaskState
from tocsin.dispatcher.core.run import Run, Task

FOUND_MAX = 5
"""Results of earlier Tasks that are told; the others can be asked for."""

EXCERPT_MAX = 300


def brief(run: Run, task: Task) -> str:
    """The text an attempt starts with. The vital part stands first: what is cut off is cut off at the end."""
    spec = task.spec
    blocks = [f"You are working on one Task of a larger plan. Your coordinator cannot see this terminal.\n\nTask {spec.id}: {spec.title}"]
    blocks.append(_judging(run, task) if spec.kind is TaskKind.REVIEW else _working())
    if spec.spec.strip():
        blocks.append(f"What is wanted:\n{spec.spec.strip()}")
    if task.findings:
        blocks.append(f"Round {task.round}. An earlier result was sent back:\n{task.findings.strip()}")
    found = _found(run, task)
    if found:
        blocks.append("Results this builds on:\n" + "\n".join(found))
    # As it would be typed: in a live pane the agent's own hook must name the same text.
    return "\n\n".join(blocks).replace("\t", "    ").strip()


DUTIES = """While you work:
  tocsin heartbeat PHASE       every few minutes, in a word or two: investigating, implementing, testing
  tocsin ask 'QUESTION'        when you need a decision; it waits for the answer. Do not ask in this terminal
  tocsin mail check            at natural pauses, and once more before you report"""


def _working() -> str:
    return f"""When you are done, or cannot go on, run one of these in your own turn, once:
  tocsin report succeeded 'what was done, what you found, what is left' --commit SHA --file PATH
  tocsin report failed 'what stands in the way'
After that end your turn and wait: no polling, no other work, the terminal stays open.

{DUTIES}"""


def _judging(run: Run, task: Task) -> str:
    target = run.tasks[task.spec.reviews or ""]
    reported = run.dispatches.get(target.reported or "")
    report = reported.report if reported is not None else None
    commit = report.commit if report is not None else None
    lines = [f"This is a review of Task {target.id}: {target.spec.title} (round {target.round}). Change nothing in it."]
    if reported is not None and report is not None:
        where = f" in {reported.path}" if reported.path else ""
        lines.append(f"It was reported{where}{f', commit {commit}' if commit else ''}: {_excerpt(report.body)}")
    given = f" --commit {commit}" if commit else ""
    lines.append(
        f"""
Judge it, then run one of these in your own turn, once; it is your report as well:
  tocsin review verdict accept{given}
  tocsin review verdict rework{given} --findings 'what has to change, and why'
  tocsin review verdict reject{given} --findings 'why no further round can help'
If you cannot judge it: tocsin report failed 'what stands in the way'
After that end your turn and wait.

{DUTIES}"""
    )
    return "\n".join(lines)


def _found(run: Run, task: Task) -> list[str]:
    lines = []
    for name in task.spec.deps:
        other = run.tasks[name]
        done = run.dispatches.get(other.reported or "")
        if name == task.spec.reviews or other.state is not TaskState.ACCEPTED or done is None or done.report is None:
            continue
        at = f" (commit {done.report.commit})" if done.report.commit else f" ({done.report.path})" if done.report.path else ""
        lines.append(f"  {name}{at}: {_excerpt(done.report.body)}")
    if len(lines) > FOUND_MAX:
        lines[FOUND_MAX:] = [f"  and {len(lines) - FOUND_MAX} more"]
    return lines


def _excerpt(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= EXCERPT_MAX else f"{flat[:EXCERPT_MAX].rstrip()} ..."
