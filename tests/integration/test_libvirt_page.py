#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""docs/libvirt.md: each domain that the page makes, made as it says, is the request that it promises, read by the agent itself."""

import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import tempfile
import unittest
import uuid

import page_code
import tap
import yaml
from libvirtd import Libvirtd
from test_agent import Agent, conf_text

PAGE = (pathlib.Path(os.environ["VHCA_SOURCE_DIR"]) / "docs/libvirt.md").read_text("utf-8")
TERRAFORM = json.loads((pathlib.Path(os.environ["VHCA_SOURCE_DIR"]) / "tests/data/terraform.json").read_text("utf-8"))
PLAIN = ("<domain type='test'><name>{}</name><metadata><other:x xmlns:other='urn:other'>a &amp; b</other:x></metadata><memory>65536</memory>"
         "<os><type>hvm</type></os></domain>")
# As LibvirtVMDef.toString() of CloudStack writes it (read at d4b537e): components in no order, what extraconfig has among them.
CLOUDSTACK = """<domain type='test'>
<name>{name}</name>
<uuid>{uuid}</uuid>
<description>Debian GNU/Linux 12 (64-bit)</description>
{extraconfig}<clock offset='utc'>
</clock>
<memory>65536</memory>
<devices>
<memballoon model='none'/>
</devices>
<vcpu>1</vcpu>
<os>
<type >hvm</type>
</os>
<on_reboot>restart</on_reboot>
<on_poweroff>destroy</on_poweroff>
<on_crash>destroy</on_crash>
<devices>
</devices>
</domain>
"""
# Nothing, what the pull request 11061 proposes, and what a tenant may say beside that.
OWN = ('<metadata><cloudstack:instance xmlns:cloudstack="http://cloudstack.apache.org/instance"><cloudstack:name>vm</cloudstack:name>'
       "</cloudstack:instance></metadata>\n")
TENANT = ("<metadata><v:infiniband xmlns:v='urn:vhcad:domain:1'><v:vf name='ib0' partition='0x8066' fabric='default' guid='auto'/></v:infiniband>"
          "</metadata>\n")
# Refused by the agent, and with it all that the domain asks for.
UNKNOWN = "<metadata><v:other xmlns:v='urn:vhcad:domain:1'/></metadata>\n"
EXTRA = ("", OWN, TENANT, OWN + TENANT, TENANT + OWN, UNKNOWN)

INDENTED = [line for block in page_code.indented(PAGE) for line in block.splitlines()]
COMMANDS = [shlex.split(line) for line in INDENTED if line.startswith("vir")]
FENCED = page_code.fenced(PAGE)


def fenced(language, has=""):
    return next(code for its, code in FENCED if its == language and has in code)


def for_test_driver(xml):
    """Which knows no machines."""
    return re.sub(r"<domain type=.\w+.", "<domain type='test'", xml).replace("machine='q35'", "")


class PageCase(unittest.TestCase):
    def setUp(self):
        self.where = pathlib.Path(tempfile.mkdtemp(prefix="vhca-page."))
        self.addCleanup(shutil.rmtree, self.where)
        self.libvirtd = Libvirtd()
        self.agent = Agent(str(self.where))
        self.libvirtd.keep()
        self.addCleanup(self.libvirtd.end)
        self.agent.write(conf_text(str(self.where)).replace("test:///default", self.libvirtd.uri))
        self.agent.start()
        self.addCleanup(self.agent.stop)

    def run_program(self, argv, stdin=None, **more):
        env = {**os.environ, "LIBVIRT_DEFAULT_URI": self.libvirtd.uri, "XDG_CACHE_HOME": str(self.where), "HOME": str(self.where), **more}
        return subprocess.run(argv, input=stdin, capture_output=True, text=True, timeout=120, env=env, cwd=self.where, check=True).stdout

    def begins(self, name, xml):
        """The domain runs, and asks for what the page says."""
        path = self.where / f"{name}.xml"
        path.write_text(for_test_driver(xml), "utf-8")
        self.libvirtd.virsh("create", str(path))
        self.asks(name)

    def asks(self, name):
        wanted = dict(pair.split("=") for line in INDENTED if line.startswith("name=") for pair in line.split())

        def found():
            return [(d["problem"], [{k: r[k] for k in wanted} for r in d["requests"]])
                    for d in self.agent.get("/v1/domains")[1]["domains"] if d["name"] == name]
        self.agent.wait(lambda: found() == [(None, [wanted])])

    def sheet(self, text=None):
        path = self.where / "vhca.xsl"
        path.write_text(text or fenced("xml"), "utf-8")
        return path

    def cloudstack_sheet(self):
        """For the VMs of one account."""
        chosen = re.search(r"match=\"(/domain\[.*?\])\"", PAGE)[1]
        return self.sheet(fenced("xml").replace('match="/domain', f'match="{chosen}'))

    def assert_hook(self, transform):
        """Only the account's VMs, and nobody by his own request. transform gives for each domain what the hook makes of it."""
        cases = [(account, number, extra) for account in (7, 8) for number, extra in enumerate(EXTRA)]
        names = [f"i-{account}-{number}-VM" for account, number, _ in cases]
        made = transform([CLOUDSTACK.format(name=name, uuid=uuid.uuid4(), extraconfig=extra) for name, (_, _, extra) in zip(names, cases)])
        self.assertEqual(len(made), len(cases))
        for name, (account, _, extra), xml in zip(names, cases, made):
            with self.subTest(name, extra=extra):
                self.assertEqual(xml.count("cloudstack:instance "), extra.count("cloudstack:instance "))
                if account == 7:
                    self.begins(name, xml)
                else:
                    self.assertNotIn("infiniband", xml)


class Page(PageCase):
    def test_a_domain_that_is_there(self):
        command = next(c for c in COMMANDS if c[0] == "virsh")
        (self.where / "vm1.xml").write_text(PLAIN.format("vm1"), "utf-8")
        self.libvirtd.virsh("define", f"{self.where}/vm1.xml")
        self.libvirtd.virsh("start", "vm1")
        self.run_program(command)
        self.asks("vm1")
        for view in ((), ("--inactive",)):
            self.assertIn("infiniband", self.libvirtd.virsh("dumpxml", "vm1", *view))
        self.assertIn("`--remove` instead of `--set` takes it out", PAGE)
        self.run_program([*command[:command.index("--set")], "--remove"])
        for view in ((), ("--inactive",)):
            self.assertNotIn("infiniband", self.libvirtd.virsh("dumpxml", "vm1", *view))

    def test_virt_install(self):
        command = next(c for c in COMMANDS if c[0] == "virt-install")
        if not shutil.which(command[0]):
            self.skipTest("no virt-install")
        # The test driver knows no machines, and makes no disk here.
        at = command.index("--machine")
        del command[at:at + 2]
        at = command.index("--disk")
        command[at + 1] = "none"
        self.begins("vm2", self.run_program([*command, "--print-xml"]))

    def test_terraform(self):
        """What the provider 0.9 writes before its text into <metadata> and behind it."""
        text = re.search(r"<<-EOT\n(.*?)\n *EOT$", fenced("hcl", "EOT"), re.S | re.M)[1]
        self.begins("vm3", f'<domain type="test"><metadata>{text}</metadata><name>vm3</name><memory>65536</memory><os><type>hvm</type></os></domain>')

    def test_terraform_with_a_stylesheet(self):
        """As Terraform itself has run it: the page is still what it was given then, and xsltproc makes the same of that."""
        self.assertEqual(TERRAFORM["asked"], [fenced("hcl", "xslt"), fenced("xml")], "run Terraform again, and record that")
        self.assertIn(self.sheet().name, fenced("hcl", "xslt"))
        write = self.where / "domain"
        write.write_text(TERRAFORM["written"], "utf-8")
        made = self.run_program(["xsltproc", "--nomkdir", "--nonet", "--nowrite", str(self.sheet()), str(write)])
        self.assertEqual(made, TERRAFORM["transformed"])
        self.assertRegex(TERRAFORM["runs"], "machine='pc-q35-")
        # The test driver knows no machines, and none of its devices.
        runs = re.sub(r" arch='x86_64' machine='.*?'", "", re.sub(r"<devices>.*</devices>|<cpu .*</cpu>", "", TERRAFORM["runs"], flags=re.S))
        self.begins("vm4", runs)
        made = self.run_program(["xsltproc", str(self.sheet()), "-"], PLAIN.format("vm"))
        self.assertEqual(made.count("<metadata>"), 1)
        self.assertIn("a &amp; b", made)

    def test_ansible(self):
        """The XML of the play; the play itself where there is an Ansible (260 MB in 20,000 files: too much for tools/deps)."""
        play = yaml.safe_load(fenced("yaml"))
        module = play[0]["tasks"][0]["community.libvirt.virt"]
        self.begins("vm5", module["xml"])
        if not shutil.which("ansible-playbook"):
            return
        module["xml"] = for_test_driver(module["xml"]).replace("vm5", "vm6")
        module["uri"] = self.libvirtd.uri
        (self.where / "play.yml").write_text(yaml.safe_dump(play), "utf-8")
        (self.where / "hosts").write_text("[hypervisors]\nlocalhost ansible_connection=local ansible_python_interpreter=/usr/bin/python3\n", "utf-8")
        said = self.run_program(["ansible-playbook", "-i", "hosts", "play.yml"])
        self.assertRegex(said, r"localhost +: ok=2 +changed=1 ")
        self.libvirtd.virsh("start", "vm6")
        self.asks("vm6")

    def test_cloudstack(self):
        """The stylesheet; the Groovy around it is run in tests/clouds."""
        sheet = str(self.cloudstack_sheet())
        self.assert_hook(lambda domains: [self.run_program(["xsltproc", sheet, "-"], xml) for xml in domains])

    def test_every_block_of_the_page_is_one_of_these(self):
        self.assertEqual([language for language, _ in FENCED], ["hcl", "xml", "hcl", "yaml", "groovy", ""])
        self.assertEqual([c[0] for c in COMMANDS], ["virsh", "virt-install"])


tap.main(__name__)
