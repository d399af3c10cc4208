# SPDX-License-Identifier: LGPL-2.1-or-later
"""The rig's certificates: one authority, one certificate for each hypervisor, and a stranger's of another authority."""

import io
import pathlib
import tarfile
import tempfile
import time

from kit.base import run

DAY = 86400
WHERE = "/etc/vhcad/tls"  # in a hypervisor
OWN, KEY, CA, STRANGER = (f"{WHERE}/{name}" for name in ("own.pem", "own.key", "ca.pem", "stranger.pem"))
# How a hypervisor's shell talks to whoever has a certificate of the rig.
CURL = f"curl -sf --cacert {CA} --cert {OWN} --key {KEY}"
# `openssl ca` alone can date a certificate back: a hypervisor's clock may be behind this machine's.
CA_CONF = """[ca]
default_ca = rig
[rig]
database = {where}/index
new_certs_dir = {where}
rand_serial = yes
default_md = sha256
policy = any
unique_subject = no
copy_extensions = copy
[any]
commonName = supplied
[req]
distinguished_name = dn
[dn]
[authority]
basicConstraints = critical,CA:true
keyUsage = critical,keyCertSign
"""


class Authority:
    """Signs for ten days, from yesterday on."""

    def __init__(self, where, name):
        self.where = where
        where.mkdir()
        (where / "index").write_text("")
        (where / "conf").write_text(CA_CONF.format(where=where))
        self._request("ca", name, "")
        self._sign("ca", "-selfsign", "-extensions", "authority")

    def _request(self, file, name, names):
        extension = ["-addext", f"subjectAltName={names}"] if names else []
        run(["openssl", "req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", f"/CN={name}",
             "-config", self.where / "conf", *extension, "-keyout", self.where / f"{file}.key", "-out", self.where / f"{file}.csr"])

    def _sign(self, file, *switches):
        dates = [time.strftime("%Y%m%d%H%M%SZ", time.gmtime(time.time() + days * DAY)) for days in (-1, 10)]
        run(["openssl", "ca", "-batch", "-notext", "-config", self.where / "conf", "-startdate", dates[0], "-enddate", dates[1],
             "-in", self.where / f"{file}.csr", "-out", self.where / f"{file}.pem", "-keyfile", self.where / "ca.key",
             *(switches or ["-cert", self.where / "ca.pem"])])

    def issue(self, name, address):
        """(certificate, key) in PEM for a host of this name at this address."""
        self._request(name, name, f"DNS:{name},IP:{address}")
        self._sign(name)
        return tuple((self.where / f"{name}.{suffix}").read_bytes() for suffix in ("pem", "key"))


def tar_of(files):
    """{path: (content, mode)} as a tar."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for path, (content, mode) in files.items():
            entry = tarfile.TarInfo(path.lstrip("/"))
            entry.size, entry.mode, entry.mtime = len(content), mode, int(time.time())
            tar.addfile(entry, io.BytesIO(content))
    return out.getvalue()


def make(addresses):
    """{name: tar of its files} for hosts {name: address}."""
    with tempfile.TemporaryDirectory() as where:
        ours, theirs = (Authority(pathlib.Path(where, name), name) for name in ("rig-authority", "another-authority"))
        authority = (ours.where / "ca.pem").read_bytes()
        tars = {}
        for name, address in addresses.items():
            certificate, key = ours.issue(name, address)
            strange, strange_key = theirs.issue(name, address)
            tars[name] = tar_of({OWN: (certificate, 0o644), KEY: (key, 0o600), CA: (authority, 0o644),
                                 STRANGER: (strange + strange_key, 0o600)})
        return tars
