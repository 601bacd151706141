"""A certificate authority that lives for one test."""

import datetime as dt
import ipaddress
import ssl
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

DAY = dt.timedelta(days=1)


class Authority:
    """Issues certificates for loopback; `file` is what must be trusted for them to be."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name("an authority of a test")
        self._now = dt.datetime.now(dt.UTC)
        constraints = x509.BasicConstraints(ca=True, path_length=None)
        certificate = self._certificate(self._name, self._key, until=self._now + DAY, extension=constraints)
        self.file = folder / "authority.pem"
        self.file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))

    def server(self, *, expired: bool = False) -> ssl.SSLContext:
        """What a server on loopback needs to be believed, or would have needed yesterday."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificate(expired=expired))
        return context

    def certificate(self, *, expired: bool = False, own_word: bool = False, address: str = "127.0.0.1") -> Path:
        """A server's key and certificate in one file, by this authority or by the server's own word."""
        key = ec.generate_private_key(ec.SECP256R1())
        name = _name("a server of a test")
        extension = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(address))])
        until = self._now + (-DAY if expired else DAY)
        certificate = self._certificate(name, key, until=until, extension=extension, own_word=own_word)
        path = self._folder / f"server-{certificate.serial_number}.pem"
        path.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
            + certificate.public_bytes(serialization.Encoding.PEM)
        )
        return path

    def _certificate(
        self,
        name: x509.Name,
        key: ec.EllipticCurvePrivateKey,
        *,
        until: dt.datetime,
        extension: x509.ExtensionType,
        own_word: bool = False,
    ) -> x509.Certificate:
        issuer, signs = (name, key) if own_word else (self._name, self._key)
        builder = x509.CertificateBuilder().subject_name(name).issuer_name(issuer).public_key(key.public_key())
        builder = builder.serial_number(x509.random_serial_number()).add_extension(extension, critical=True)
        builder = builder.not_valid_before(self._now - 3 * DAY).not_valid_after(until)
        return builder.sign(signs, hashes.SHA256())


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])
