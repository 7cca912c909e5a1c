"""What can go wrong, as a tree. Two places translate it: the GraphQL schema and the command line.

GraphsvcError
├── InvalidInput        an argument outside the contract: names the field and what is allowed   exit 2
├── InvalidTransition   a status change its machine does not allow                              exit 2
├── Conflict            a record that changed since the asker read it                           exit 2
├── Isolated            what isolation keeps apart                                              exit 2
├── Forbidden           what the asker's token does not allow                                   exit 2
├── NotFoundError       nothing there; carries a call that works                                exit 1
├── StoreError          the database cannot be used: newer schema, damaged, not writable        exit 3
└── ServiceError        the service is needed and not there, or gave no answer                  exit 3
"""

from __future__ import annotations


class GraphsvcError(Exception):
    """Whatever graphsvc raises on purpose."""

    exit_code = 3


class InvalidInput(GraphsvcError):
    """An argument outside the contract. `field` is its name, `allowed` says what would do."""

    exit_code = 2

    def __init__(self, field: str, problem: str, allowed: str) -> None:
        super().__init__(f"{field}: {problem}; allowed: {allowed}")
        self.field = field
        self.problem = problem
        self.allowed = allowed


class InvalidTransition(GraphsvcError):
    """A status change that the record's machine does not allow."""

    exit_code = 2

    def __init__(self, machine: str, status: str, action: str, allowed: tuple[str, ...]) -> None:
        can = ", ".join(allowed) if allowed else "nothing, the status is final"
        super().__init__(f"{machine} is {status}: cannot {action}; allowed: {can}")
        self.machine = machine
        self.status = status
        self.action = action
        self.allowed = allowed


class Conflict(GraphsvcError):
    """A record that changed since the asker read it. A version is the position of the event that changed it last."""

    exit_code = 2

    def __init__(self, target: str, expected: int, actual: int) -> None:
        super().__init__(f"{target} has version {actual}, not {expected}: read it again, then ask with its version")
        self.target = target
        self.expected = expected
        self.actual = actual


class Isolated(GraphsvcError):
    """A change across the line of isolation. `allowed` says who could make it."""

    exit_code = 2

    def __init__(self, target: str, problem: str, allowed: str) -> None:
        super().__init__(f"{target}: {problem}; allowed: {allowed}")
        self.target = target
        self.problem = problem
        self.allowed = allowed


class Forbidden(GraphsvcError):
    """More than the asker's token allows. `allowed` says what it does."""

    exit_code = 2

    def __init__(self, problem: str, allowed: str) -> None:
        super().__init__(f"{problem}; allowed: {allowed}")
        self.problem = problem
        self.allowed = allowed


class NotFoundError(GraphsvcError):
    """Nothing at the target. `suggestion` is a call that runs as written."""

    exit_code = 1

    def __init__(self, target: str, suggestion: str) -> None:
        super().__init__(f"nothing at {target!r}")
        self.target = target
        self.suggestion = suggestion


class StoreError(GraphsvcError):
    """The database cannot be used as it is."""


class ServiceError(GraphsvcError):
    """The service is needed and not there, or answered with something that is no answer."""
