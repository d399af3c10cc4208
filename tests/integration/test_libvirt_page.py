#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""docs/libvirt.md: each domain that the page makes, made as it says, is the request that it promises, read by the agent itself."""

import os
import pathlib
import re
import shlex
import shutil
import subprocess
import tempfile
import unittest

import tap
import yaml
from libvirtd import Libvirtd
from test_agent import Agent, conf_text

PAGE = (pathlib.Path(os.environ["VHCA_SOURCE_DIR"]) / "docs/libvirt.md").read_text("utf-8")
PLAIN = ("<domain type='test'><name>{}</name><metadata><other:x xmlns:other='urn:other'>a &amp; b</other:x></metadata><memory>65536</memory>"
         "<os><type>hvm</type></os></domain>")
# As CloudStack's agent runs the script.
HOOK = """
def made = new groovy.util.GroovyScriptEngine(args[0]).run('libvirt-vm-xml-transformer.groovy', new Binding())
print made.invokeMethod('transform', [null, System.in.text] as Object[])
"""


def fenced(language):
    return re.search(rf"^```{language}\n(.*?)^```", PAGE, re.S | re.M)[1]


def commands():
    return [shlex.split(line) for line in re.findall(r"^ {4}(vir.*)", PAGE, re.M)]


def for_test_driver(xml):
    """Which knows no machines."""
    return re.sub(r"<domain type=.\w+.", "<domain type='test'", xml).replace("machine='q35'", "")


class Page(unittest.TestCase):
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
        wanted = dict(pair.split("=") for pair in re.search(r"^ {4}(name=.*)$", PAGE, re.M)[1].split())

        def found():
            return [(d["problem"], [{k: r[k] for k in wanted} for r in d["requests"]])
                    for d in self.agent.get("/v1/domains")[1]["domains"] if d["name"] == name]
        self.agent.wait(lambda: found() == [(None, [wanted])])

    def sheet(self, text=None):
        path = self.where / "vhca.xsl"
        path.write_text(text or fenced("xml"), "utf-8")
        return path

    def test_a_domain_that_is_there(self):
        command = next(c for c in commands() if c[0] == "virsh")
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
        command = next(c for c in commands() if c[0] == "virt-install")
        if not shutil.which(command[0]):
            self.skipTest("no virt-install")
        # The test driver knows no machines, and makes no disk here.
        at = command.index("--machine")
        del command[at:at + 2]
        at = command.index("--disk")
        command[at + 1] = "none"
        self.begins("vm2", self.run_program([*command, "--print-xml"]))

    def test_terraform(self):
        made = self.run_program(["xsltproc", str(self.sheet()), "-"], PLAIN.format("vm3"))
        self.begins("vm3", made)
        self.assertEqual(made.count("<metadata>"), 1)
        self.assertIn("a &amp; b", made)
        self.assertIn(self.sheet().name, fenced("hcl"))

    def test_ansible(self):
        """The XML of the play; the play itself where there is an Ansible (240 MB: too much for tools/deps)."""
        play = yaml.safe_load(fenced("yaml"))
        module = play[0]["tasks"][0]["community.libvirt.virt"]
        self.begins("vm4", module["xml"])
        if not shutil.which("ansible-playbook"):
            return
        module["xml"] = for_test_driver(module["xml"]).replace("vm4", "vm5")
        module["uri"] = self.libvirtd.uri
        (self.where / "play.yml").write_text(yaml.safe_dump(play), "utf-8")
        (self.where / "hosts").write_text("[hypervisors]\nlocalhost ansible_connection=local ansible_python_interpreter=/usr/bin/python3\n", "utf-8")
        said = self.run_program(["ansible-playbook", "-i", "hosts", "play.yml"])
        self.assertRegex(said, r"localhost +: ok=2 +changed=1 ")
        self.libvirtd.virsh("start", "vm5")
        self.asks("vm5")

    def test_cloudstack(self):
        """Only the account's VMs; the Groovy itself where there is one (a Java is too much for tools/deps)."""
        chosen = re.search(r"match=\"(/domain\[.*?\])\"", PAGE)[1]
        text = fenced("xml").replace('match="/domain', f'match="{chosen}')
        sheet = self.sheet(text)
        self.begins("i-7-12-VM", self.run_program(["xsltproc", str(sheet), "-"], PLAIN.format("i-7-12-VM")))
        other = PLAIN.format("i-8-13-VM")
        self.assertNotIn("infiniband", self.run_program(["xsltproc", str(sheet), "-"], other))
        homes = sorted(pathlib.Path("/usr/lib/jvm").glob("java-*-openjdk*"))
        if not shutil.which("groovy") or not homes:
            return
        script = fenced("groovy").replace("/etc/cloudstack/agent/hooks", str(self.where))
        (self.where / "libvirt-vm-xml-transformer.groovy").write_text(script, "utf-8")
        (self.where / "agent.groovy").write_text(HOOK, "utf-8")
        groovy = ["groovy", str(self.where / "agent.groovy"), str(self.where)]
        self.begins("i-7-14-VM", self.run_program(groovy, PLAIN.format("i-7-14-VM"), JAVA_HOME=str(homes[0])))
        self.assertNotIn("infiniband", self.run_program(groovy, other, JAVA_HOME=str(homes[0])))

    def test_every_block_of_the_page_is_one_of_these(self):
        self.assertEqual(re.findall(r"^```(\w+)$", PAGE, re.M), ["xml", "hcl", "yaml", "groovy"])
        self.assertEqual([c[0] for c in commands()], ["virsh", "virt-install"])


tap.main(__name__)
