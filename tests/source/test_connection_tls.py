"""TLS settings as MySQL reads them: encrypted, chain verified, host verified."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from rplctl.errors import ConfigError
from rplctl.handshake import tls_context
from rplctl.info import MasterInfo
from rplctl.source.connection import security_of

SYSTEM_CA = ssl.get_default_verify_paths().cafile or "/etc/ssl/certs/ca-certificates.crt"


def context(**settings: object) -> ssl.SSLContext:
    made = tls_context(security_of(MasterInfo(enabled_ssl=True, **settings)).tls)  # type: ignore[arg-type]
    assert made is not None
    return made


def test_without_master_ssl_there_is_none() -> None:
    assert tls_context(security_of(MasterInfo(ssl_ca="ca.pem")).tls) is None


def test_encrypted_only() -> None:
    assert (context().verify_mode, context().check_hostname) == (ssl.CERT_NONE, False)
    assert context().minimum_version == ssl.TLSVersion.TLSv1_2


@pytest.mark.skipif(not Path(SYSTEM_CA).exists(), reason="no CA certificates on this machine (package ca-certificates)")
def test_a_ca_verifies_the_chain_and_verify_server_cert_the_host_too() -> None:
    assert (context(ssl_ca=SYSTEM_CA).verify_mode, context(ssl_ca=SYSTEM_CA).check_hostname) == (
        ssl.CERT_REQUIRED,
        False,
    )
    assert context(ssl_verify_server_cert=True).check_hostname


def test_versions_are_limited_to_those_named() -> None:
    only = context(tls_version="TLSv1.3")
    assert only.minimum_version == only.maximum_version == ssl.TLSVersion.TLSv1_3


@pytest.mark.parametrize(
    "settings",
    [{"ssl_ca": "/no/such/ca.pem"}, {"tls_version": "TLSv1.0"}, {"tls_ciphersuites": "X"}, {"ssl_cipher": "NO-SUCH"}],
)
def test_what_cannot_be_used_is_a_configuration_error(settings: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match="MASTER_"):
        context(**settings)
