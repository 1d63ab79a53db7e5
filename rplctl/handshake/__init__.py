"""Opening a session on a MySQL or MariaDB server, source or target alike: TLS, sign-in, and how much may come.

    tls.py             TlsSettings → ssl.SSLContext; what each mode checks
    authentication.py  the one table of authentication plugins, and on which connection each may send what (design D14)
    connection.py      GuardedConnection: PyMySQL's, which obeys that table and takes no endless answers

Invariant: whoever answers, a password leaves this machine readable only to a peer that the operator has chosen to
trust with it, and no answer takes more memory or time than was allowed for it.
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
