"""kubectl: its commands, and the texts of its failures."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from kubevnfm_lab.machines.apiclient import ApiRefusal, ApiUnreachable
from kubevnfm_lab.machines.programs.call import Call, Exit, Failed, Program, options
from kubevnfm_lab.machines.programs.kubectl import draining, executing, reading, waiting, writing
from kubevnfm_lab.machines.programs.kubectl.session import Session, open_session, refused
from kubevnfm_lab.machines.wordlist import words

WITH_VALUE = words(
    "--kubeconfig --context -n --namespace -o --output -l --selector --field-selector -f --filename -s --server --token "
    "--certificate-authority --for --timeout -p --patch --type --patch-file --replicas --grace-period --raw -c --container "
    "--request-timeout --from-literal --from-file --subresource --field-manager --as --user --cluster --tail --since -k "
    "--sort-by --template --duration --pod-selector --cascade -v --v --pod-running-timeout -L"
)

COMMANDS: Final[Mapping[str, Callable[[Session], Awaitable[Exit]]]] = {
    "get": reading.get,
    "describe": reading.describe,
    "logs": reading.logs,
    "cluster-info": reading.cluster_info,
    "api-resources": reading.api_resources,
    "apply": writing.apply,
    "create": writing.create,
    "delete": writing.delete,
    "patch": writing.patch,
    "label": writing.label,
    "annotate": writing.annotate,
    "taint": writing.taint,
    "scale": writing.scale,
    "auth": writing.can_i,
    "wait": waiting.wait,
    "rollout": waiting.rollout,
    "cordon": draining.cordon,
    "uncordon": draining.uncordon,
    "drain": draining.drain,
    "exec": executing.execute,
}


async def kubectl(call: Call) -> Exit:
    """Run one command of kubectl."""
    given = options(call.args, with_value=WITH_VALUE, glued="on")
    verb = given.words[0] if given.words else "help"
    if verb == "version":
        session = (
            None
            if given.get("--client") == "true" or given.values.get("--client") == [""]
            else open_session(call, given)
        )
        return await _translated(reading.version(call, given, session))
    if verb == "config":
        return await reading.config(call, given)
    if verb in ("help", "options", "completion", "plugin"):
        return Exit(0, "kubectl controls the Kubernetes cluster manager.\n")
    command = COMMANDS.get(verb)
    if command is None:
        raise Failed(f'error: unknown command "{verb}" for "kubectl"')
    return await _translated(command(open_session(call, given)))


async def _translated(running: Awaitable[Exit]) -> Exit:
    """Translate errors of the server or the network into kubectl's words."""
    try:
        return await running
    except ApiRefusal as refusal:
        raise Failed(refused(refusal)) from refusal
    except ApiUnreachable as error:
        raise Failed(str(error)) from error


PROGRAMS: Mapping[str, Program] = {"kubectl": kubectl}
