"""Answers of MariaDB's two plugins that prove a password by a signature: client_ed25519, and parsec of 11.6 and later.

client_ed25519  Ed25519 (RFC 8032) whose seed is the password itself, of any length; signs the server's 32 bytes
parsec          Ed25519 whose seed is PBKDF2-HMAC-SHA512 of the password; signs the server's 32 bytes and 32 of ours

Invariant: neither the password nor its hash leaves; who listens can only guess passwords and try them.
(Manual: MariaDB, Authentication Plugin - ed25519; Authentication Plugin - PARSEC.)
"""

from __future__ import annotations

import hashlib
import os
from typing import Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

CHALLENGE_BYTES: Final = 32
_PBKDF2: Final = ord("P")
_MOST_DOUBLINGS: Final = 3  # of 1024 rounds: a server must not make us count for hours


def ed25519_answer(password: bytes, challenge: bytes) -> bytes:
    """64 bytes. Raises ImportError without PyNaCl: the seed is no 32 bytes long, as other libraries want it."""
    from nacl import bindings

    digest = bytearray(hashlib.sha512(password).digest())
    digest[0] &= 248
    digest[31] = digest[31] & 127 | 64
    secret = bytes(digest[:32])
    nonce = bindings.crypto_core_ed25519_scalar_reduce(hashlib.sha512(bytes(digest[32:]) + challenge).digest())
    commitment = bindings.crypto_scalarmult_ed25519_base_noclamp(nonce)
    public = bindings.crypto_scalarmult_ed25519_base_noclamp(secret)
    asked = bindings.crypto_core_ed25519_scalar_reduce(hashlib.sha512(commitment + public + challenge).digest())
    product = bindings.crypto_core_ed25519_scalar_mul(asked, secret)
    return commitment + bindings.crypto_core_ed25519_scalar_add(product, nonce)


def parsec_answer(password: bytes, challenge: bytes, salted: bytes) -> bytes:
    """`salted`: 'P', the power of two of 1024 rounds, the salt. Raises ValueError for anything else."""
    if len(challenge) != CHALLENGE_BYTES or len(salted) < 3 or salted[0] != _PBKDF2 or salted[1] > _MOST_DOUBLINGS:
        raise ValueError("the server's challenge is none of parsec's")
    seed = hashlib.pbkdf2_hmac("sha512", password, salted[2:], 1024 << salted[1], 32)
    ours = os.urandom(CHALLENGE_BYTES)
    return ours + Ed25519PrivateKey.from_private_bytes(seed).sign(challenge + ours)
