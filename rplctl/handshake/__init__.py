"""Open a session on a MySQL or MariaDB server, for sources and targets: TLS, sign-in, limits of the answers.

tls             turns TlsSettings into an ssl.SSLContext, with each mode's checks
authentication  authentication plugins, and the secrets that each may send (design D14)
connection      PyMySQL's connection with these plugins, and with limits for answers

Invariant: rplctl sends a readable password only to a server that the operator has chosen to trust with it. No answer
takes more memory or time than its limit.
"""

from __future__ import annotations

from rplctl.handshake.authentication import Security
from rplctl.handshake.connection import LONGEST_WAIT_S, Allowance, GuardedConnection, Protection
from rplctl.handshake.tls import TlsMode, TlsSettings, tls_context

__all__ = [
    "LONGEST_WAIT_S",
    "Allowance",
    "GuardedConnection",
    "Protection",
    "Security",
    "TlsMode",
    "TlsSettings",
    "tls_context",
]
