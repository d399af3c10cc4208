# SPDX-License-Identifier: LGPL-2.1-or-later
"""The doors on the private link: the plugin's and the agents' own. All other cases go through them with the rig's certificates."""

from kit import tls
from kit.case import case, check
from kit.hypervisors import PRIVATE, SM_ADDRESS

DOORS = {"plugin": (SM_ADDRESS, "/v1/bindings"), "hva's agent": (f"{PRIVATE['hva']}:8514", "/healthz"),
         "hvb's agent": (f"{PRIVATE['hvb']}:8514", "/healthz")}
NOBODY, REFUSED = "000", "401"
TRUST = f"--cacert {tls.CA}"
# {who: (curl's switches, scheme, is heard)}
CLIENTS = {"a host of the rig": (f"{TRUST} --cert {tls.OWN} --key {tls.KEY}", "https", True),
           "somebody without a certificate": (TRUST, "https", False),
           "somebody with a stranger's": (f"{TRUST} --cert {tls.STRANGER}", "https", False),
           "somebody who knows the system's authorities only": ("", "https", False),
           "somebody with plain HTTP": ("", "http", False)}
ASK = "curl -s -o /dev/null -w '%{{http_code}}\\n' -m 30 {switches} {scheme}://{door} || true"


def statuses(host):
    """{(door, client): HTTP status, NOBODY for no answer} as this host gets them."""
    asked = [(door, client) for door in DOORS for client in CLIENTS]
    script = "\n".join(ASK.format(switches=CLIENTS[client][0], scheme=CLIENTS[client][1], door="".join(DOORS[door]))
                       for door, client in asked)
    return dict(zip(asked, host.sh(script, timeout=180).split(), strict=True))


@case
def only_certificates_of_the_rig_are_heard(rig):
    """Plugin and agents answer HTTPS with a certificate of their authority, and nobody else: no certificate, a stranger's, plain HTTP."""
    for host in rig.hosts:
        for (door, client), status in statuses(host).items():
            heard = status not in (NOBODY, REFUSED)
            check(heard == CLIENTS[client][2], f"{door} answers {client} at {host.name} with {status}")
