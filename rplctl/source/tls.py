"""TLS of a connection to a source, from MasterInfo's SSL fields: no fallback to none, verification as MySQL reads them.

MASTER_SSL=1 alone encrypts (REQUIRED); with a CA the chain is verified (VERIFY_CA); MASTER_SSL_VERIFY_SERVER_CERT=1
verifies the host name too (VERIFY_IDENTITY), against the system's CAs when none is given.
"""

from __future__ import annotations

import ssl

from rplctl.errors import ConfigError
from rplctl.info import MasterInfo

_VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}


def tls_context(info: MasterInfo) -> ssl.SSLContext | None:
    """None when MASTER_SSL=0. Raises ConfigError naming the option that cannot be used."""
    if not info.enabled_ssl:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.check_hostname = info.ssl_verify_server_cert
    has_ca = bool(info.ssl_ca or info.ssl_capath)
    context.verify_mode = ssl.CERT_REQUIRED if has_ca or info.ssl_verify_server_cert else ssl.CERT_NONE
    try:
        _load_files(context, info, has_ca)
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(f"MASTER_SSL_*: {error}", errno=2026, hint="check the --master-ssl-* files") from error
    _limit_versions(context, info)
    return context


def _load_files(context: ssl.SSLContext, info: MasterInfo, has_ca: bool) -> None:
    if has_ca:
        context.load_verify_locations(info.ssl_ca or None, info.ssl_capath or None)
    elif info.ssl_verify_server_cert:
        context.load_default_certs(ssl.Purpose.SERVER_AUTH)
    if info.ssl_crl or info.ssl_crlpath:
        context.load_verify_locations(info.ssl_crl or None, info.ssl_crlpath or None)
        context.verify_flags |= ssl.VerifyFlags.VERIFY_CRL_CHECK_LEAF
    if info.ssl_cert:
        context.load_cert_chain(info.ssl_cert, info.ssl_key or None)
    if info.ssl_cipher:
        context.set_ciphers(info.ssl_cipher)


def _limit_versions(context: ssl.SSLContext, info: MasterInfo) -> None:
    if info.tls_ciphersuites:
        raise ConfigError(
            "MASTER_TLS_CIPHERSUITES cannot be limited here",
            errno=1210,
            hint="rplctl change-master --master-tls-ciphersuites ''",
        )
    if not info.tls_version:
        return
    wanted = [_VERSIONS.get(word.strip()) for word in info.tls_version.split(",")]
    known = [version for version in wanted if version is not None]
    if not known:
        raise ConfigError(f"MASTER_TLS_VERSION '{info.tls_version}' names neither TLSv1.2 nor TLSv1.3", errno=1210)
    context.minimum_version = min(known)
    context.maximum_version = max(known)
