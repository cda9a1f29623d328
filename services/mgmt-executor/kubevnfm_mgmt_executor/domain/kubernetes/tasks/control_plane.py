"""Tasks that make a master the control plane of a cluster."""

from __future__ import annotations

import base64
import binascii
import secrets

from kubevnfm_events.mgmt import ManagedNode

from kubevnfm_mgmt_executor.domain.certificates import public_key_hash
from kubevnfm_mgmt_executor.domain.errors import NodeFailure
from kubevnfm_mgmt_executor.domain.kubernetes import values
from kubevnfm_mgmt_executor.domain.kubernetes.answers import AdminAnswer, InitAnswer
from kubevnfm_mgmt_executor.domain.kubernetes.state import ClusterRun
from kubevnfm_mgmt_executor.domain.node_session import ScriptAnswer
from kubevnfm_mgmt_executor.domain.ports import Earlier
from kubevnfm_mgmt_executor.domain.recorder import TaskResult


async def init(run: ClusterRun, node: ManagedNode, _: Earlier | None) -> TaskResult:
    """Run ``kubeadm init``; learn the cluster's CA."""
    # Also if the journal says `done`: the joins need the CA, and only the script's answer has it.
    answer = await run.session(node).run_script(
        "init", values.init(run.cluster), timeout_s=run.timeouts.node_install, answer=InitAnswer
    )
    # The script reads the file with $(<file), which drops the line end that a PEM file ends with.
    run.learned.ca_pem = answer.ca_cert.strip() + "\n"
    try:
        run.learned.ca_cert_hash = public_key_hash(run.learned.ca_pem)
    except ValueError as error:
        raise NodeFailure("ca.crt is not a certificate in PEM form", node=run.cluster.name(node)) from error
    return TaskResult(changed=answer.changed, facts={"ca_cert_hash": run.learned.ca_cert_hash})


async def network(run: ClusterRun, node: ManagedNode, _: Earlier | None) -> TaskResult:
    """Apply the pod network's manifest and wait for its workloads."""
    # The script waits for one workload after the other, for each up to node_ready.
    rollouts_s = len(run.files.network_workloads) * run.timeouts.node_ready
    answer = await run.session(node).run_script(
        "network",
        values.network(run.cluster, run.files),
        timeout_s=run.timeouts.command + rollouts_s,
        answer=ScriptAnswer,
    )
    return TaskResult(changed=answer.changed)


async def admin(run: ClusterRun, node: ManagedNode, _: Earlier | None) -> TaskResult:
    """Make the service account by which the cluster is registered as a VIM; learn its token."""
    learned, name = run.learned, run.cluster.name(node)
    # 32 bytes in hexadecimal (AES-256). kubeadm encrypts the control plane's certificates with it and deletes them
    # after two hours, so each try uploads them again with a new key.
    learned.certificate_key = secrets.token_hex(32)
    run.tools.mask.add(learned.certificate_key)
    answer = await run.session(node).run_script(
        "admin",
        {**values.init(run.cluster), "CERTIFICATE_KEY": learned.certificate_key},
        # node_ready is for the token, which a controller writes into the Secret after the Secret was created.
        timeout_s=2 * run.timeouts.command + run.timeouts.node_ready,
        answer=AdminAnswer,
    )
    try:
        learned.admin_token = base64.b64decode(answer.token_base64, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError) as error:
        raise NodeFailure("the admin token is not base64 text", node=name) from error
    # An empty text is valid base64, and a VIM registered without a token would fail much later.
    if not learned.admin_token:
        raise NodeFailure("the install script returned no admin token", node=name)
    run.tools.mask.add(learned.admin_token)
    return TaskResult(changed=answer.changed)
