"""Reads the options after the question mark in the URL of a MySQL or MariaDB target.

    ssl_mode=DISABLED|PREFERRED|REQUIRED|VERIFY_CA|VERIFY_IDENTITY    as in MySQL's client
    ssl_ca, ssl_capath, ssl_crl, ssl_crlpath           certificate authorities and revocation lists
    ssl_check_hostname=0                               do not check the name in the certificate
    ssl_cert, ssl_key, ssl_cipher, tls_version, tls_ciphersuites
    server_public_key_path, get_server_public_key=1    for passwords without TLS
    unix_socket, connect_timeout

Without ssl_mode, an authority or a revocation list means VERIFY_IDENTITY, or VERIFY_CA with ssl_check_hostname=0. Other
options ssl_… and tls_… mean REQUIRED. The default without all these options is PREFERRED.

Invariant: an unknown option is refused, because a misspelt ssl_ca must not leave a connection unverified.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy.engine import URL

from rplctl.errors import ConfigError
from rplctl.handshake import Security, TlsMode, TlsSettings

_FILES = ("ca", "capath", "cert", "key", "cipher", "crl", "crlpath")
_VERSIONS = {"tls_version": "version", "tls_ciphersuites": "ciphersuites"}
_SWITCHES = ("ssl_check_hostname", "ssl_verify_identity", "ssl_verify_cert", "get_server_public_key")
_KNOWN = {
    *("ssl_mode", "server_public_key_path", "unix_socket", "connect_timeout"),
    *_SWITCHES,
    *_VERSIONS,
    *(f"ssl_{name}" for name in _FILES),
}
_TRUE, _FALSE = ("1", "true", "on", "yes"), ("0", "false", "off", "no")
CONNECT_TIMEOUT_S = 10


def connection_options(url: URL) -> tuple[Security, dict[str, Any]]:
    """Return the TLS and password settings, and the options for the driver, from the target's URL. Raises ConfigError
    for unknown or contradictory options.
    """
    words = {name.replace("-", "_"): str(value) for name, value in url.query.items()}
    unknown = sorted(words.keys() - _KNOWN)
    if unknown:
        raise ConfigError(
            f"the target's URL has '{unknown[0]}', which is not an option of a MySQL or MariaDB target",
            hint=f"use one of {', '.join(sorted(_KNOWN))}",
        )
    switches = {name: _switch(name, words[name]) for name in _SWITCHES if name in words}
    tls = TlsSettings(
        mode=_mode(words, switches),
        **{name: words.get(f"ssl_{name}", "") for name in _FILES},
        **{field: words.get(name, "") for name, field in _VERSIONS.items()},
    )
    if tls.mode < TlsMode.VERIFY_CA and (tls.ca or tls.capath or tls.crl or tls.crlpath):
        raise ConfigError(
            f"ssl_mode={tls.mode.name} in the target's URL ignores ssl_ca, ssl_capath, ssl_crl and ssl_crlpath",
            hint="use ssl_mode=VERIFY_CA or VERIFY_IDENTITY, or remove ssl_mode",
        )
    key = words.get("server_public_key_path", "")
    timeout = words.get("connect_timeout", str(CONNECT_TIMEOUT_S))
    if not timeout.isascii() or not timeout.isdecimal() or not int(timeout):
        raise ConfigError(f"connect_timeout={timeout} in the target's URL is not a number of seconds")
    options = {"connect_timeout": int(timeout), "unix_socket": words.get("unix_socket")}
    return Security(tls, key, switches.get("get_server_public_key", False)), options


def _mode(words: Mapping[str, str], switches: Mapping[str, bool]) -> TlsMode:
    if "ssl_mode" in words:
        try:
            return TlsMode[words["ssl_mode"].upper()]
        except KeyError:
            known = ", ".join(mode.name for mode in TlsMode)
            raise ConfigError(
                f"ssl_mode={words['ssl_mode']} in the target's URL is not a mode", hint=f"use one of {known}"
            ) from None
    has_authority = any(f"ssl_{name}" in words for name in ("ca", "capath", "crl", "crlpath"))
    names_host = switches.get("ssl_verify_identity", switches.get("ssl_check_hostname", has_authority))
    if names_host:
        return TlsMode.VERIFY_IDENTITY
    if has_authority or switches.get("ssl_verify_cert"):
        return TlsMode.VERIFY_CA
    if any(name.startswith(("ssl_", "tls_")) for name in words):
        return TlsMode.REQUIRED
    if "server_public_key_path" in words or switches.get("get_server_public_key"):
        return TlsMode.DISABLED  # the public key is only used without TLS; over TLS, servers accept the plain password
    return TlsMode.PREFERRED


def _switch(name: str, word: str) -> bool:
    if word.lower() not in (*_TRUE, *_FALSE):
        raise ConfigError(f"{name}={word} in the target's URL is neither 0 nor 1")
    return word.lower() in _TRUE
