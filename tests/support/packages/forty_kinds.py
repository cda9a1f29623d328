"""The manifests of a CNF of more than forty kinds, in two versions."""

from __future__ import annotations

from textwrap import dedent
from typing import Final

_POD: Final = "{containers: [{name: c, image: 'nginx:IMAGE', resources: {requests: {cpu: 10m}}}]}"
_KINDS: Final = dedent("""\
    apiVersion: v1
    kind: Namespace
    metadata: {name: PLACE}
    ---
    apiVersion: v1
    kind: ConfigMap
    metadata: {name: pages, namespace: PLACE}
    data: {index.html: "page IMAGE", mac: 52:54:00:12:34:56}
    ---
    apiVersion: v1
    kind: Secret
    metadata: {name: login, namespace: PLACE}
    stringData: {password: forty-kinds-IMAGE}
    ---
    apiVersion: v1
    kind: ServiceAccount
    metadata: {name: runner, namespace: PLACE}
    ---
    apiVersion: v1
    kind: Service
    metadata: {name: web, namespace: PLACE}
    spec: {selector: {app: web}, ports: [{port: 80}]}
    ---
    apiVersion: v1
    kind: Endpoints
    metadata: {name: outside, namespace: PLACE}
    subsets: [{addresses: [{ip: 192.0.2.7}], ports: [{port: 80}]}]
    ---
    apiVersion: v1
    kind: PersistentVolume
    metadata: {name: PLACE-disk}
    spec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], storageClassName: PLACE, hostPath: {path: /tmp/PLACE}}
    ---
    apiVersion: v1
    kind: PersistentVolumeClaim
    metadata: {name: disk, namespace: PLACE}
    spec: {accessModes: [ReadWriteOnce], storageClassName: PLACE, volumeName: PLACE-disk, resources: {requests: {storage: 1Gi}}}
    ---
    apiVersion: v1
    kind: LimitRange
    metadata: {name: limits, namespace: PLACE}
    spec: {limits: [{type: Container, default: {cpu: 20m}, defaultRequest: {cpu: 10m}}]}
    ---
    apiVersion: v1
    kind: ResourceQuota
    metadata: {name: quota, namespace: PLACE}
    spec: {hard: {pods: "100"}}
    ---
    apiVersion: v1
    kind: PodTemplate
    metadata: {name: template, namespace: PLACE}
    template: {metadata: {labels: {app: template}}, spec: POD}
    ---
    apiVersion: v1
    kind: Pod
    metadata: {name: alone, namespace: PLACE}
    spec: {serviceAccountName: runner, priorityClassName: PLACE, containers: [{name: c, image: busybox}]}
    ---
    apiVersion: v1
    kind: ReplicationController
    metadata: {name: old, namespace: PLACE}
    spec: {replicas: 1, selector: {app: old}, template: {metadata: {labels: {app: old}}, spec: POD}}
    ---
    apiVersion: apps/v1
    kind: Deployment
    metadata: {name: web, namespace: PLACE}
    spec: {replicas: 2, selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: POD}}
    ---
    apiVersion: apps/v1
    kind: StatefulSet
    metadata: {name: db, namespace: PLACE}
    spec:
      replicas: 1
      serviceName: web
      selector: {matchLabels: {app: db}}
      template:
        metadata: {labels: {app: db}}
        spec: {containers: [{name: c, image: 'nginx:IMAGE', volumeMounts: [{name: data, mountPath: /data}]}]}
      volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}]
    ---
    apiVersion: apps/v1
    kind: DaemonSet
    metadata: {name: agent, namespace: PLACE}
    spec: {selector: {matchLabels: {app: agent}}, template: {metadata: {labels: {app: agent}}, spec: POD}}
    ---
    apiVersion: apps/v1
    kind: ReplicaSet
    metadata: {name: set, namespace: PLACE}
    spec: {replicas: 1, selector: {matchLabels: {app: set}}, template: {metadata: {labels: {app: set}}, spec: POD}}
    ---
    apiVersion: apps/v1
    kind: ControllerRevision
    metadata: {name: noted, namespace: PLACE}
    revision: 1
    data: {}
    ---
    apiVersion: batch/v1
    kind: Job
    metadata: {name: once, namespace: PLACE}
    spec: {ttlSecondsAfterFinished: 0, template: {spec: {restartPolicy: Never, containers: [{name: c, image: busybox}]}}}
    ---
    apiVersion: batch/v1
    kind: CronJob
    metadata: {name: yearly, namespace: PLACE}
    spec: {schedule: "0 0 1 1 *", jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: busybox}]}}}}}
    ---
    apiVersion: networking.k8s.io/v1
    kind: NetworkPolicy
    metadata: {name: closed, namespace: PLACE}
    spec: {podSelector: {matchLabels: {app: db}}, policyTypes: [Ingress]}
    ---
    apiVersion: networking.k8s.io/v1
    kind: Ingress
    metadata: {name: web, namespace: PLACE}
    spec: {ingressClassName: PLACE, defaultBackend: {service: {name: web, port: {number: 80}}}}
    ---
    apiVersion: networking.k8s.io/v1
    kind: IngressClass
    metadata: {name: PLACE}
    spec: {controller: example.com/none}
    ---
    apiVersion: policy/v1
    kind: PodDisruptionBudget
    metadata: {name: web, namespace: PLACE}
    spec: {minAvailable: 1, selector: {matchLabels: {app: web}}}
    ---
    apiVersion: rbac.authorization.k8s.io/v1
    kind: Role
    metadata: {name: reader, namespace: PLACE}
    rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]
    ---
    apiVersion: rbac.authorization.k8s.io/v1
    kind: RoleBinding
    metadata: {name: reader, namespace: PLACE}
    roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader}
    subjects: [{kind: ServiceAccount, name: runner, namespace: PLACE}]
    ---
    apiVersion: rbac.authorization.k8s.io/v1
    kind: ClusterRole
    metadata: {name: PLACE}
    rules: [{apiGroups: [""], resources: [nodes], verbs: [get]}]
    ---
    apiVersion: rbac.authorization.k8s.io/v1
    kind: ClusterRoleBinding
    metadata: {name: PLACE}
    roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: PLACE}
    subjects: [{kind: ServiceAccount, name: runner, namespace: PLACE}]
    ---
    apiVersion: autoscaling/v2
    kind: HorizontalPodAutoscaler
    metadata: {name: set, namespace: PLACE}
    spec:
      minReplicas: 1
      maxReplicas: 2
      scaleTargetRef: {apiVersion: apps/v1, kind: ReplicaSet, name: set}
      metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 80}}}]
    ---
    apiVersion: storage.k8s.io/v1
    kind: StorageClass
    metadata: {name: PLACE}
    provisioner: example.com/none
    ---
    apiVersion: storage.k8s.io/v1
    kind: CSIDriver
    metadata: {name: PLACE.example.com}
    spec: {attachRequired: false}
    ---
    apiVersion: storage.k8s.io/v1
    kind: CSIStorageCapacity
    metadata: {name: room, namespace: PLACE}
    storageClassName: PLACE
    capacity: 1Gi
    ---
    apiVersion: scheduling.k8s.io/v1
    kind: PriorityClass
    metadata: {name: PLACE}
    value: 7
    ---
    apiVersion: coordination.k8s.io/v1
    kind: Lease
    metadata: {name: leader, namespace: PLACE}
    spec: {holderIdentity: none}
    ---
    apiVersion: discovery.k8s.io/v1
    kind: EndpointSlice
    metadata: {name: further, namespace: PLACE}
    addressType: IPv4
    endpoints: [{addresses: [192.0.2.8]}]
    ---
    apiVersion: node.k8s.io/v1
    kind: RuntimeClass
    metadata: {name: PLACE}
    handler: none
    ---
    apiVersion: admissionregistration.k8s.io/v1
    kind: ValidatingWebhookConfiguration
    metadata: {name: PLACE}
    webhooks: [WEBHOOK]
    ---
    apiVersion: admissionregistration.k8s.io/v1
    kind: MutatingWebhookConfiguration
    metadata: {name: PLACE}
    webhooks: [WEBHOOK]
    ---
    apiVersion: admissionregistration.k8s.io/v1
    kind: ValidatingAdmissionPolicy
    metadata: {name: PLACE}
    spec:
      matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [bindings]}]}
      validations: [{expression: "true"}]
    ---
    apiVersion: admissionregistration.k8s.io/v1
    kind: ValidatingAdmissionPolicyBinding
    metadata: {name: PLACE}
    spec: {policyName: PLACE, validationActions: [Deny]}
    ---
    apiVersion: apiextensions.k8s.io/v1
    kind: CustomResourceDefinition
    metadata: {name: gauges.PLACE.example.com}
    spec:
      group: PLACE.example.com
      names: {kind: Gauge, plural: gauges}
      scope: Namespaced
      versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {unit: {type: string}}}}}}}]
    ---
    apiVersion: PLACE.example.com/v1
    kind: Gauge
    metadata: {name: speed, namespace: PLACE}
    spec: {unit: "IMAGE"}
    ---
    apiVersion: apiregistration.k8s.io/v1
    kind: APIService
    metadata: {name: v9.PLACE.example.com}
    spec: {group: PLACE.example.com, version: v9, groupPriorityMinimum: 100, versionPriority: 9}
    ---
    apiVersion: flowcontrol.apiserver.k8s.io/v1
    kind: PriorityLevelConfiguration
    metadata: {name: PLACE}
    spec: {type: Limited, limited: {nominalConcurrencyShares: 1, limitResponse: {type: Reject}}}
    ---
    apiVersion: flowcontrol.apiserver.k8s.io/v1
    kind: FlowSchema
    metadata: {name: PLACE}
    spec:
      priorityLevelConfiguration: {name: PLACE}
      matchingPrecedence: 9000
      rules: [{subjects: [{kind: User, user: {name: PLACE}}], resourceRules: [{verbs: [get], apiGroups: [""], resources: [pods], namespaces: ["*"]}]}]
    ---
    apiVersion: authorization.k8s.io/v1
    kind: SelfSubjectAccessReview
    spec: {resourceAttributes: {verb: get, resource: pods}}
    """)
_WEBHOOK: Final = (
    "{name: PLACE.example.com, sideEffects: None, admissionReviewVersions: [v1], failurePolicy: Ignore, timeoutSeconds: 1, "
    "clientConfig: {url: 'https://127.0.0.1:1/'}, namespaceSelector: {matchLabels: {none: PLACE}}, "
    "rules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]}"
)
GONE: Final = (
    "ReplicationController",
    "Lease",
    "RuntimeClass",
    "CSIStorageCapacity",
    "FlowSchema",
    "CronJob",
    "PodTemplate",
)
"""The kinds that the second version of the package lacks."""


def forty_kinds(place: str, *, version: int = 1) -> str:
    """Return the manifests. ``place``: a word that is the namespace, and a part of every cluster-scoped name.

    Version 2 has another image and other contents, and lacks the kinds of `GONE`.
    """
    text = _KINDS.replace("POD", _POD).replace("WEBHOOK", _WEBHOOK).replace("PLACE", place)
    documents = text.replace("IMAGE", f"1.2{version}").split("---\n")
    if version == 2:
        documents = [each for each in documents if kind_of(each) not in GONE]
    return "---\n".join(documents)


def kind_of(document: str) -> str:
    """Return the kind of a manifest."""
    return next(line.removeprefix("kind: ") for line in document.splitlines() if line.startswith("kind: "))


def kinds_of(manifests: str) -> list[str]:
    """Return the kinds of the manifests, in order."""
    return [kind_of(each) for each in manifests.split("---\n")]
