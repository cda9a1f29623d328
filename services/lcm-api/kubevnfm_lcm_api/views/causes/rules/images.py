"""Causes: images of containers, and the registries that have them. The texts are those of kubelet, containerd and CRI-O."""

from __future__ import annotations

from typing import Final

from kubevnfm_lcm_api.views.causes.rule import rule

_FAILED: Final = r"(?:ErrImagePull|ImagePullBackOff|ERROR ImagePull|[Ff]ailed to pull (?:and unpack )?image)"
_IMAGE: Final = rf"{_FAILED}.{{0,300}}?(?:image|reference) \\?\"?(?P<image>[^\"\s\\,;]{{1,200}})"
_AWAY: Final = (
    r"no such host|connection refused|i/o timeout|no route to host|Client\.Timeout|deadline exceeded|server misbehaving"
    r"|TLS handshake timeout|network is unreachable|: EOF|50[234] (?:Bad Gateway|Service Unavailable|Gateway Time)"
)
_ASKED: Final = r"(?:(?:Head|Get) \\?\"https?://(?P<registry>[^/\s\"\\]{1,200})/[^\s\"\\]{0,400}\\?\": .{0,200}?)?"
"""How containerd and CRI-O name the request to a registry or to its mirror; the failure follows."""
_REFUSED: Final = (
    r"401 Unauthorized|403 Forbidden|access denied|authorization failed|authentication required|no basic auth credentials"
    r"|unauthorized:|denied:"
)
_WHY: Final = {
    r"no such host|server misbehaving": "its name cannot be resolved",
    r"connection refused": "it refuses the connection",
    r"i/o timeout|Client\.Timeout|deadline exceeded|TLS handshake timeout": "it does not answer in time",
    r"no route to host|network is unreachable": "there is no route to it",
    r"": "it fails",
}

IMAGES: Final = (
    rule(
        "registry-away",
        "The image {image} cannot be pulled: the registry[ at {registry}] cannot be reached, {why}.",
        "See that the registry runs, and that the nodes reach it and resolve its name",
        text=_IMAGE,
        then=rf"{_ASKED}(?:{_AWAY})",
        about="Pod",
        words=_WHY,
    ),
    rule(
        "registry-not-trusted",
        "The image {image} cannot be pulled: the nodes speak HTTPS with the registry, which answers without TLS.",
        "Give the registry a certificate, or let the nodes use HTTP for it (hosts.toml of containerd)",
        text=_IMAGE,
        then=r"first record does not look like a TLS handshake|server gave HTTP response to HTTPS client",
        about="Pod",
    ),
    rule(
        "registry-not-trusted",
        "The image {image} cannot be pulled: the nodes do not trust the certificate of the registry.",
        "Give the nodes the authority of the registry's certificate",
        text=_IMAGE,
        then=r"x509:",
        about="Pod",
    ),
    rule(
        "pull-secret-missing",
        "The image {image} cannot be pulled: {secret}, a Secret that the pod names for its registry, does not exist.",
        "Create the Secret (kubectl create secret docker-registry), or correct imagePullSecrets in the package",
        text=_IMAGE,
        then=r"FailedToRetrieveImagePullSecret: .{0,80}?\((?P<secret>[a-z0-9][a-z0-9., -]{0,200})\)",
        about="Pod",
    ),
    rule(
        "registry-refuses",
        "The image {image} cannot be pulled: the registry refuses the credentials, or has no such repository.",
        "Give the nodes or the pod the right credentials (imagePullSecrets), or correct the name of the image",
        text=_IMAGE,
        then=_REFUSED,
        about="Pod",
    ),
    rule(
        "registry-limits",
        "The image {image} cannot be pulled now: the registry limits how often images are pulled.",
        "Wait, or pull with an account of the registry or from a mirror",
        text=_IMAGE,
        then=r"toomanyrequests|429 Too Many Requests",
        about="Pod",
    ),
    rule(
        "image-not-pulled",
        "The image {image} cannot be pulled: {why}.",
        "Push the image to the registry, or correct its name in the package",
        text=_IMAGE,
        about="Pod",
        words={
            r"not found|manifest unknown|name unknown|NotFound": "the registry does not have it",
            r"no match for platform": "it does not exist for the processor of the node",
            r"no space left on device": "the disk of the node is full",
            r"": "the node keeps trying",
        },
    ),
    rule(
        "image-not-pulled",
        "The image {image} is not on the node, and the policy of the pod is to pull none.",
        "Load the image onto the nodes, or correct imagePullPolicy in the package",
        text=r"ErrImageNeverPull.{0,100}?image \"(?P<image>[^\"]{1,200})",
        about="Pod",
    ),
    rule(
        "image-name-invalid",
        'The name of the image is malformed: "{image}".',
        "Correct the name of the image in the package or in the values of the request",
        text=r"InvalidImageName.{0,200}?\"(?P<image>[^\"]{1,200})",
        about="Pod",
        best="rollback",
    ),
    rule(
        "image-not-pulled",
        "An image of {pod} cannot be pulled.",
        "Push the image to the registry, or correct its name in the package",
        text=r"ErrImagePull|ImagePullBackOff|ErrImageNeverPull|InvalidImageName|ERROR ImagePull",
        about="Pod",
    ),
)
