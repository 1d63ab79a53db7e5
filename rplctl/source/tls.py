"""A source's TLS and key settings, from MasterInfo, as handshake/ takes them: no fallback to none, as MySQL reads them.

MASTER_SSL=1 alone encrypts (REQUIRED); with a CA the chain is verified (VERIFY_CA); MASTER_SSL_VERIFY_SERVER_CERT=1
verifies the host name too (VERIFY_IDENTITY), against the system's CAs when none is given.
"""

from __future__ import annotations

from rplctl.handshake import Security, TlsMode, TlsSettings
from rplctl.info import MasterInfo


def security_of(info: MasterInfo) -> Security:
    """What the operator set for this channel's connections."""
    settings = TlsSettings(
        mode=_mode(info),
        ca=info.ssl_ca,
        capath=info.ssl_capath,
        cert=info.ssl_cert,
        key=info.ssl_key,
        cipher=info.ssl_cipher,
        crl=info.ssl_crl,
        crlpath=info.ssl_crlpath,
        version=info.tls_version,
        ciphersuites=info.tls_ciphersuites or "",
        option="MASTER_",
    )
    return Security(settings, info.public_key_path, info.get_public_key)


def _mode(info: MasterInfo) -> TlsMode:
    if not info.enabled_ssl:
        return TlsMode.DISABLED
    if info.ssl_verify_server_cert:
        return TlsMode.VERIFY_IDENTITY
    return TlsMode.VERIFY_CA if info.ssl_ca or info.ssl_capath else TlsMode.REQUIRED
