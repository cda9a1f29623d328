"""Authentication: users, projects, tokens, application credentials."""

from __future__ import annotations

import hmac
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from kubevnfm_lab.openstack.errors import ServiceError, not_found
from kubevnfm_lab.openstack.ids import new_hex, new_uuid
from kubevnfm_lab.openstack.settings import Credentials


@dataclass(frozen=True)
class Domain:
    """A name space of users and projects."""

    domain_id: str
    name: str


@dataclass(frozen=True)
class Project:
    """The owner of stacks, servers and networks."""

    project_id: str
    name: str
    domain: Domain


@dataclass
class User:
    """A user with a password and roles in projects."""

    user_id: str
    name: str
    domain: Domain
    password: str = field(repr=False)
    roles_by_project: dict[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass
class ApplicationCredential:
    """Another credential of a user, bound to one project."""

    credential_id: str
    name: str
    secret: str = field(repr=False)
    user: User
    project: Project
    description: str | None = None
    rules: list[dict[str, str]] = field(default_factory=list)
    """Access rules: ``service``, ``method``, ``path``. Empty: none."""


@dataclass
class Token:
    """A user's authentication for a project; valid until ``expires_at``."""

    token_id: str = field(repr=False)
    user: User
    project: Project
    roles: tuple[str, ...]
    issued_at: float
    expires_at: float
    """Seconds since the epoch."""
    methods: tuple[str, ...]
    scoped: bool = True
    credential: ApplicationCredential | None = None
    """The one that it was issued for."""

    @classmethod
    def anonymous(cls) -> Token:
        """Return the token of calls that need no authentication."""
        domain = Domain("", "")
        return cls("", User("", "", domain, ""), Project("", "", domain), (), 0.0, 0.0, ())


class Identity:
    """All users, projects and tokens of the cloud."""

    def __init__(self, credentials: Iterable[Credentials], *, token_lifetime_s: float) -> None:
        self.token_lifetime_s = token_lifetime_s
        self.domains: dict[str, Domain] = {"default": Domain("default", "Default")}
        self.projects: dict[str, Project] = {}
        self.users: dict[str, User] = {}
        self.application_credentials: dict[str, ApplicationCredential] = {}
        self._tokens: dict[str, Token] = {}
        for one in credentials:
            self.admit(one)

    def admit(self, credentials: Credentials) -> User:
        """Create the domain, project and user if they are missing, and give the user its roles."""
        domain = self.find_domain(credentials.domain)
        if domain is None:
            domain = Domain(new_hex(), credentials.domain)
            self.domains[domain.domain_id] = domain
        project = self.find_project(credentials.project, domain)
        if project is None:
            project = Project(new_hex(), credentials.project, domain)
            self.projects[project.project_id] = project
        user = self._find_user(credentials.username, domain)
        if user is None:
            user = User(new_hex(), credentials.username, domain, credentials.password)
            self.users[user.user_id] = user
        user.roles_by_project[project.project_id] = credentials.roles
        return user

    def find_domain(self, name_or_id: str) -> Domain | None:
        """Return a domain by id or by name in any case: clients often send ``default`` for Default."""
        found = self.domains.get(name_or_id)
        if found is not None:
            return found
        return next((d for d in self.domains.values() if d.name.lower() == name_or_id.lower()), None)

    def domain_of(self, reference: Mapping[str, object]) -> Domain | None:
        """Return the domain that a request names by ``id`` or by ``name``; Keystone takes neither for the other."""
        if "id" in reference:
            return self.domains.get(str(reference["id"]))
        name = str(reference.get("name", "Default")).lower()
        return next((domain for domain in self.domains.values() if domain.name.lower() == name), None)

    def find_project(self, name_or_id: str, domain: Domain | None = None) -> Project | None:
        """Return a project by id, or by name in a domain."""
        found = self.projects.get(name_or_id)
        if found is not None:
            return found
        return next(
            (p for p in self.projects.values() if p.name == name_or_id and (domain is None or p.domain is domain)), None
        )

    def find(self, token_id: str) -> Token | None:
        """Return the valid token of that id."""
        token = self._tokens.get(token_id)
        if token is not None and token.expires_at <= time.time():
            del self._tokens[token_id]
            return None
        return token

    def by_password(self, *, name: str, user_id: str, domain: Domain | None, password: str) -> User:
        """Return the user with this password; raise Keystone's 401 otherwise."""
        user = self.users.get(user_id) or (self._find_user(name, domain) if domain else None)
        if user is None or not hmac.compare_digest(user.password.encode(), password.encode()):
            raise unauthorized()
        return user

    def by_application_credential(self, *, credential_id: str, name: str, secret: str) -> ApplicationCredential:
        """Return the application credential with this secret; raise Keystone's 401 otherwise, and 404 for an unknown id."""
        if credential_id and credential_id not in self.application_credentials:
            message = f"Could not find Application Credential: {credential_id}."
            raise not_found("keystone", "NotFound", message)
        found = self.application_credentials.get(credential_id) or next(
            (c for c in self.application_credentials.values() if c.name == name), None
        )
        if found is None or not hmac.compare_digest(found.secret.encode(), secret.encode()):
            raise unauthorized()
        return found

    def issue(
        self,
        user: User,
        project: Project | None,
        *,
        methods: tuple[str, ...],
        credential: ApplicationCredential | None = None,
    ) -> Token:
        """Return a new token of the user for the project; raise Keystone's 401 if it has no role there."""
        # Without a scope Keystone uses the user's default project; here that is the first in which the user has a role.
        scope = project or next(
            (self.projects[p] for p in user.roles_by_project), Project("", "", Domain("default", "Default"))
        )
        roles = user.roles_by_project.get(scope.project_id, ())
        if project is not None and not roles:
            raise unauthorized()
        now = time.time()
        # A lab may run for days; clients that never revoke their tokens must not fill its memory.
        if len(self._tokens) > 10_000:
            self._tokens = {key: token for key, token in self._tokens.items() if token.expires_at > now}
        token = Token(
            token_id=f"lab-{new_hex()}{new_hex()}",
            user=user,
            project=scope,
            roles=roles,
            issued_at=now,
            expires_at=now + self.token_lifetime_s,
            methods=methods,
            scoped=project is not None,
            credential=credential,
        )
        self._tokens[token.token_id] = token
        return token

    def revoke(self, token_id: str) -> None:
        """Revoke a token."""
        self._tokens.pop(token_id, None)

    def revoke_all(self) -> int:
        """Revoke all tokens, as the loss of Keystone's keys does; return how many there were."""
        count = len(self._tokens)
        self._tokens.clear()
        return count

    def add_application_credential(
        self,
        token: Token,
        *,
        name: str,
        secret: str,
        description: str | None = None,
        rules: list[dict[str, str]] | None = None,
    ) -> ApplicationCredential:
        """Create an application credential for the token's user and project."""
        made = ApplicationCredential(
            new_hex(), name, secret or new_uuid(), token.user, token.project, description, rules or []
        )
        self.application_credentials[made.credential_id] = made
        return made

    def _find_user(self, name: str, domain: Domain) -> User | None:
        return next((u for u in self.users.values() if u.name == name and u.domain is domain), None)


def unauthorized() -> ServiceError:
    """Return Keystone's answer to wrong credentials."""
    return ServiceError("keystone", 401, "Unauthorized", "The request you have made requires authentication.")


def keystone_time(seconds: float) -> str:
    """Return a point in time as Keystone writes it: ``2026-11-20T11:51:26.000000Z``."""
    return datetime.fromtimestamp(int(seconds), UTC).strftime("%Y-%m-%dT%H:%M:%S.000000Z")
