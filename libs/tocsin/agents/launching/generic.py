"""Any program, as given. It finds its brief by the environment, and tells of its turns by `tocsin heartbeat` and `tocsin report`."""

from tocsin.agents.launching.plan import LaunchPlan, LaunchRequest, environment_of
from tocsin.contract.refusals import Code, Refusal


def plan(request: LaunchRequest) -> LaunchPlan | Refusal:
    """The command line of the request. Refuses: bad_request, without one; agent_cannot, where a model is asked for."""
    if not request.command or not request.command[0]:
        return Refusal(Code.BAD_REQUEST, "the agent generic needs the command that it is to run")
    if request.model is not None:
        return Refusal(Code.AGENT_CANNOT, "a program of your own takes no model: say it in its command")
    return LaunchPlan(
        argv=request.command,
        environment=environment_of(request),
        turn_start_signal=False,
        note="Nothing tells that its turn has begun: its first heartbeat or report does.",
    )
