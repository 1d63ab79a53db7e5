"""Set up TLS for a connection to a server, with MySQL's five modes (manual: ssl-mode).

DISABLED         no TLS
PREFERRED        TLS if the server offers it: no protection against a man in the middle, so no secret depends on it
REQUIRED         always TLS, with any server
VERIFY_CA        REQUIRED, and a trusted authority has signed the certificate chain
VERIFY_IDENTITY  VERIFY_CA, and the certificate is for the requested host name
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from rplctl import mysql_errors as er
from rplctl.errors import ConfigError

_VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}


class TlsMode(IntEnum):
    DISABLED = 0
    PREFERRED = 1
    REQUIRED = 2
    VERIFY_CA = 3
    VERIFY_IDENTITY = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsSettings:
    """The operator's TLS settings. Files are PEM. `option` is the prefix of the settings' names, for errors."""

    mode: TlsMode = TlsMode.PREFERRED
    ca: str = ""
    capath: str = ""
    cert: str = ""
    key: str = ""
    cipher: str = ""
    crl: str = ""
    crlpath: str = ""
    version: str = ""  # TLSv1.2,TLSv1.3
    ciphersuites: str = ""  # for TLS 1.3
    option: str = ""  # MASTER_ for a source, '' for a target

    def named(self, setting: str) -> str:
        """Return the operator's name of a setting: MASTER_SSL_CA, MASTER_TLS_VERSION, ssl_ca or tls_version."""
        name = setting if setting.startswith("tls_") else f"ssl_{setting}"
        return f"{self.option}{name}".upper() if self.option else name


def tls_context(settings: TlsSettings) -> ssl.SSLContext | None:
    """Return the TLS context, or None for DISABLED.

    Raises ConfigError, with the option's name, if an option is invalid.
    """
    if settings.mode is TlsMode.DISABLED:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.check_hostname = settings.mode is TlsMode.VERIFY_IDENTITY
    context.verify_mode = ssl.CERT_REQUIRED if settings.mode >= TlsMode.VERIFY_CA else ssl.CERT_NONE
    try:
        _load_files(context, settings)
    except (OSError, ssl.SSLError) as error:
        name = settings.named("*")
        hint = f"check the files and names of {name}"
        raise ConfigError(f"{name}: {error}", errno=er.CR_SSL_CONNECTION_ERROR, hint=hint) from error
    _limit_suites(context, settings)
    _limit_versions(context, settings)
    return context


def _load_files(context: ssl.SSLContext, settings: TlsSettings) -> None:
    if settings.ca or settings.capath:
        context.load_verify_locations(settings.ca or None, settings.capath or None)
    elif settings.mode >= TlsMode.VERIFY_CA:
        context.load_default_certs(ssl.Purpose.SERVER_AUTH)
    if settings.crl or settings.crlpath:
        context.load_verify_locations(settings.crl or None, settings.crlpath or None)
        context.verify_flags |= ssl.VerifyFlags.VERIFY_CRL_CHECK_LEAF
    if settings.cert:
        context.load_cert_chain(settings.cert, settings.key or None)
    if settings.cipher:
        context.set_ciphers(settings.cipher)


def _limit_suites(context: Any, settings: TlsSettings) -> None:
    """Limit the cipher suites of TLS 1.3 to those in the settings.

    Raises ConfigError if a suite is unknown, or if the ssl module cannot limit them (before Python 3.15).
    """
    if not settings.ciphersuites:
        return
    name = settings.named("tls_ciphersuites")
    if not hasattr(context, "set_ciphersuites"):
        raise ConfigError(
            f"{name} cannot be limited: this Python's ssl module sets suites of TLS 1.3 from version 3.15 on",
            errno=er.WRONG_ARGUMENTS,
            hint=f"to limit the ciphers of TLS 1.2 instead, set {name} to '', {settings.named('tls_version')} to "
            f"TLSv1.2, and {settings.named('cipher')} to the list",
        )
    try:
        context.set_ciphersuites(settings.ciphersuites)
    except ssl.SSLError as error:
        raise ConfigError(
            f"{name} '{settings.ciphersuites}' is not a list of cipher suites: {error}",
            errno=er.WRONG_ARGUMENTS,
            hint="to list the suites of OpenSSL, run: openssl ciphers -s -tls1_3\n"
            f"Set {name} to some of them, with colons between them",
        ) from error


def _limit_versions(context: ssl.SSLContext, settings: TlsSettings) -> None:
    if not settings.version:
        return
    wanted = [_VERSIONS.get(word.strip()) for word in settings.version.split(",")]
    known = [version for version in wanted if version is not None]
    if not known:
        name = settings.named("tls_version")
        raise ConfigError(
            f"{name} '{settings.version}' names neither TLSv1.2 nor TLSv1.3",
            errno=er.WRONG_ARGUMENTS,
            hint=f"set {name} to TLSv1.2, TLSv1.3 or both with a comma between them",
        )
    context.minimum_version = min(known)
    context.maximum_version = max(known)
