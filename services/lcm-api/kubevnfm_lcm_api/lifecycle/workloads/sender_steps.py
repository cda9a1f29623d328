"""The step in which a script of the package sends a workload cluster's credentials (capi.md CR-009, CR-077).

It takes the place of `SendClusterCredentials` in an instantiation, and of `WithdrawClusterCredentials` in a termination. In a
rollback the driver has the receiver erase what the script has sent.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from kubevnfm_clients.awaited import CallbackEvent
from kubevnfm_events import Command
from kubevnfm_events.credentials import WithdrawCredentials
from kubevnfm_events.mgmt import CredentialsSender, RunScript, ScriptAnswer, ScriptDone

from kubevnfm_lcm_api.lifecycle.core.draft import Draft
from kubevnfm_lcm_api.lifecycle.core.step import Step
from kubevnfm_lcm_api.lifecycle.core.workload_cluster import CapiParameters
from kubevnfm_lcm_api.lifecycle.scripts.steps import SCRIPT_TIMEOUT_S, phase_command
from kubevnfm_lcm_api.lifecycle.workloads.credential_steps import SendClusterCredentials, WithdrawClusterCredentials
from kubevnfm_lcm_api.lifecycle.workloads.drafts import WorkloadDraft


@dataclass(frozen=True)
class RunSenderScript(Step[WorkloadDraft, ScriptDone]):
    """Run the script of a phase with access to the management cluster and with what its call-back needs.

    Adds: as `RunScriptPhase`; the uid and the endpoint of the cluster.
    Again: the script runs again, with the same facts; the receiver takes its request once (CR-078).
    Fails: an exit status other than 0, with the end of its stderr; the management cluster refuses the account of the script.
    """

    phase: str
    event: CallbackEvent
    callback_url: str | None = None
    register_vim: bool = True
    vim_name: str | None = None
    vim_default: bool = False
    is_forced: bool = False
    """A FORCEFUL termination: a management cluster that does not answer does not keep the script from running."""

    kind: ClassVar[str] = "run_sender"
    command: ClassVar[type[Command]] = RunScript
    label: ClassVar[str] = "Script of the package, which sends the credentials ({event}): {phase}"
    base_timeout_s: ClassVar[float] = SCRIPT_TIMEOUT_S

    @classmethod
    def with_parameters(cls, phase: str, event: CallbackEvent, capi: CapiParameters) -> RunSenderScript:
        """Return the step for a cluster with these parameters."""
        return cls(
            phase,
            event,
            callback_url=capi.callback_url,
            register_vim=capi.register_vim,
            vim_name=capi.vim_name,
            # Only a new VIM becomes the default: an operator may have chosen another one since.
            vim_default=capi.vim_default and event == "CREATED",
        )

    def ask(self, draft: WorkloadDraft) -> RunScript:
        sender = CredentialsSender(vim_key=draft.vim_key)
        if self.event == "DELETED":
            withdrawal = WithdrawClusterCredentials(self.callback_url, self.is_forced)
            sender = sender.model_copy(update={"withdraws": withdrawal.ask(draft)})
        else:
            sending = SendClusterCredentials(
                callback_url=self.callback_url,
                register_vim=self.register_vim,
                vim_name=self.vim_name,
                vim_default=self.vim_default,
                is_rotation=self.event == "ROTATED",
            )
            sender = sender.model_copy(update={"sends": sending.ask(draft)})
        return phase_command(draft, self.phase).model_copy(update={"sender": sender})

    def fold(self, draft: WorkloadDraft, reply: ScriptDone) -> Draft:
        """Keep what the script answered, and the facts of the cluster whose credentials it has sent."""
        return _answered(draft, reply.answer).with_credentials_sent(reply.sent)

    def fold_remains(self, draft: WorkloadDraft, remains: Mapping[str, object]) -> Draft:
        """Keep what a script that failed has answered."""
        return draft.with_script(ScriptAnswer.model_validate(remains))

    def forget(self, draft: WorkloadDraft) -> Draft:
        """The receiver has erased them."""
        return draft.with_credentials_sent(None)

    def undo(self, draft: WorkloadDraft) -> WithdrawCredentials | None:
        """Have the receiver erase what the script may have sent, also if it has failed after that."""
        # ROTATED and DELETED: the cluster stays, and a termination has no rollback.
        return SendClusterCredentials(callback_url=self.callback_url).undo(draft) if self.event == "CREATED" else None


def _answered(draft: WorkloadDraft, answer: ScriptAnswer) -> WorkloadDraft:
    # A draft returns one of its own class.
    return draft.with_script(answer)
