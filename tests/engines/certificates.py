"""A certificate authority of one test run, and a certificate for servers and clients on the loopback address."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

from .cache import require


@dataclass(frozen=True)
class Certificates:
    """PEM files: the authority to trust, and the server's certificate and key."""

    ca: Path
    certificate: Path
    key: Path


def make_certificates(directory: Path) -> Certificates:
    """Makes both with openssl, valid for two days for `localhost` and 127.0.0.1."""
    openssl = require("openssl", "make the certificates of the TLS tests")
    files = Certificates(directory / "ca.crt", directory / "server.crt", directory / "server.key")
    ca_key, request = directory / "ca.key", directory / "server.csr"
    authority, extensions = directory / "ca.cnf", directory / "server.ext"
    authority.write_text(
        "[req]\nprompt=no\ndistinguished_name=name\nx509_extensions=authority\n"
        "[name]\nCN=ascend-elk test authority\n"
        "[authority]\nbasicConstraints=critical,CA:TRUE\nkeyUsage=critical,keyCertSign,cRLSign\n"
        "subjectKeyIdentifier=hash\n"
    )
    extensions.write_text(
        "basicConstraints=CA:FALSE\n"
        "keyUsage=digitalSignature,keyEncipherment\n"
        "extendedKeyUsage=serverAuth,clientAuth\n"
        "subjectAltName=DNS:localhost,IP:127.0.0.1\n"
        "authorityKeyIdentifier=keyid\n"
    )
    new_key = ["-newkey", "rsa:2048", "-nodes"]
    sign = ["-CA", files.ca, "-CAkey", ca_key, "-CAcreateserial", "-days", "2", "-extfile", extensions]
    for arguments in (
        ["req", "-x509", *new_key, "-keyout", ca_key, "-out", files.ca, "-days", "2", "-config", authority],
        ["req", *new_key, "-keyout", files.key, "-out", request, "-subj", "/CN=localhost"],
        ["x509", "-req", "-in", request, *sign, "-out", files.certificate],
    ):
        subprocess.run([openssl, *map(str, arguments)], check=True, capture_output=True)
    return files
