"""Reports about images and their registries."""

from __future__ import annotations

from typing import Final

from worlds.reported_causes.case import Case

IMAGES: Final = (
    Case(
        "an image that the registry lacks",
        "objects-not-ready",
        'Deployment default/web: 0 of 1 ready, pod web-5d9c7-x2x: container web: ImagePullBackOff: Back-off pulling image "registry.example/app:1.2": ErrImagePull: failed to pull and unpack image "registry.example/app:1.2": failed to resolve reference "registry.example/app:1.2": registry.example/app:1.2: not found, Progressing True, ReplicaSetUpdated: ReplicaSet "web-5d9c7" is progressing., warning Failed: Error: ImagePullBackOff',
        "image-not-pulled",
        "The image registry.example/app:1.2 cannot be pulled: the registry does not have it.",
        "Pod default/web-5d9c7-x2x",
    ),
    Case(
        "a registry whose name is unknown",
        "objects-not-ready",
        'Deployment default/web: 0 of 1 ready, pod web-6b7-abc: container web: ErrImagePull: failed to pull and unpack image "r.example/a:1": failed to resolve reference "r.example/a:1": failed to do request: Head "https://r.example/v2/a/manifests/1": dial tcp: lookup r.example on 10.96.0.10:53: no such host',
        "registry-away",
        "The image r.example/a:1 cannot be pulled: the registry at r.example cannot be reached, its name cannot be resolved.",
        "Pod default/web-6b7-abc",
    ),
    Case(
        "a registry that refuses the credentials",
        "objects-not-ready",
        'Deployment default/web: 0 of 1 ready, pod web-6b7-abc: container web: ErrImagePull: failed to pull and unpack image "docker.io/library/nosuch:1": failed to resolve reference "docker.io/library/nosuch:1": pull access denied, repository does not exist or may require authorization: server message: insufficient_scope: authorization failed',
        "registry-refuses",
        "The image docker.io/library/nosuch:1 cannot be pulled: the registry refuses the credentials, or has no such repository.",
        "Pod default/web-6b7-abc",
    ),
    Case(
        "an image that must not be pulled and is not on the node",
        "objects-not-ready",
        'Deployment default/web: 0 of 1 ready, pod web-6b7-abc: container web: ErrImageNeverPull: Container image "app:1" is not present with pull policy of Never',
        "image-not-pulled",
        "The image app:1 is not on the node, and the policy of the pod is to pull none.",
        "Pod default/web-6b7-abc",
    ),
    Case(
        "a malformed name of an image",
        "objects-not-ready",
        'Deployment default/web: 0 of 1 ready, pod web-6b7-abc: container web: InvalidImageName: Failed to apply default image tag "Registry/App:1": couldn\'t parse image name "Registry/App:1": invalid reference format: repository name (library/Registry/App) must be lowercase',
        "image-name-invalid",
        'The name of the image is malformed: "Registry/App:1".',
        "Pod default/web-6b7-abc",
    ),
    Case(
        "a registry with an unknown certificate",
        "objects-not-ready",
        'Deployment default/web: 0 of 1 ready, pod web-6b7-abc: container web: ErrImagePull: failed to pull and unpack image "r.example:5000/a:1": failed to resolve reference "r.example:5000/a:1": failed to do request: Head "https://r.example:5000/v2/a/manifests/1": tls: failed to verify certificate: x509: certificate signed by unknown authority',
        "registry-not-trusted",
        "The image r.example:5000/a:1 cannot be pulled: the nodes do not trust the certificate of the registry.",
        "Pod default/web-6b7-abc",
    ),
    Case(
        "a registry that limits pulls",
        "objects-not-ready",
        'Deployment default/web: 0 of 1 ready, pod web-6b7-abc: container web: ErrImagePull: failed to pull and unpack image "docker.io/library/nginx:1": failed to copy: httpReadSeeker: failed open: unexpected status code https://registry-1.docker.io/v2/library/nginx/manifests/sha256:1: 429 Too Many Requests - Server message: toomanyrequests: You have reached your pull rate limit.',
        "registry-limits",
        "The image docker.io/library/nginx:1 cannot be pulled now: the registry limits how often images are pulled.",
        "Pod default/web-6b7-abc",
    ),
    Case(
        "a registry that refuses connections",
        "objects-not-ready",
        'Deployment default/web: 0 of 1 ready, pod web-6b7-abc: container web: ErrImagePull: failed to pull and unpack image "r.example:5000/a:1": failed to resolve reference "r.example:5000/a:1": failed to do request: Head "https://r.example:5000/v2/a/manifests/1": dial tcp 10.1.2.3:5000: connect: connection refused',
        "registry-away",
        "The image r.example:5000/a:1 cannot be pulled: the registry at r.example:5000 cannot be reached, it refuses the connection.",
        "Pod default/web-6b7-abc",
    ),
    Case(
        "an image of the cluster's own parts",
        "mgmt-driver-failed",
        'node worker1: task prepare: deployment/coredns in namespace kube-system: pod coredns-1 cannot start: ErrImagePull: failed to pull and unpack image "registry.k8s.io/coredns/coredns:v1.12.0": failed to resolve reference: not found',
        "image-not-pulled",
        "The image registry.k8s.io/coredns/coredns:v1.12.0 cannot be pulled: the registry does not have it.",
        "Pod coredns-1",
    ),
    Case(
        "a pull that says no name",
        "objects-not-ready",
        "Deployment causes-d/web: 0 of 1 ready, pod web-6b7-abc: container web: ImagePullBackOff: Back-off pulling image",
        "image-not-pulled",
        "An image of pod web-6b7-abc cannot be pulled.",
        "Pod causes-d/web-6b7-abc",
    ),
    Case(
        "a pull secret that does not exist",
        "",
        'Deployment p-pull/web: 0 of 1 ready, pod web-1: container web: ImagePullBackOff: Back-off pulling image "10.77.0.1:5079/private/app:1": ErrImagePull: failed to pull and unpack image "10.77.0.1:5079/private/app:1": failed to resolve reference "10.77.0.1:5079/private/app:1": pulling from host 10.77.0.1:5079 failed with status code [manifests 1]: 401 Unauthorized; pod web-1: FailedToRetrieveImagePullSecret: Unable to retrieve some image pull secrets (regcred); attempting to pull the image may not succeed.',
        "pull-secret-missing",
        "The image 10.77.0.1:5079/private/app:1 cannot be pulled: regcred, a Secret that the pod names for its registry, does not exist.",
        "Pod p-pull/web-1",
    ),
    Case(
        "a registry without TLS",
        "",
        'Deployment p-pull/web: 0 of 2 ready, pod web-1: container web: ErrImagePull: failed to pull and unpack image "10.77.0.1:5079/private/app:1": failed to resolve reference "10.77.0.1:5079/private/app:1": failed to do request: Head "https://10.77.0.1:5079/v2/private/app/manifests/1": tls: first record does not look like a TLS handshake',
        "registry-not-trusted",
        "The image 10.77.0.1:5079/private/app:1 cannot be pulled: the nodes speak HTTPS with the registry, which answers without TLS.",
        "Pod p-pull/web-1",
    ),
)
