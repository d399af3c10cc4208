#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""docs/libvirt.md, CloudStack: the page's hook in its own language, called as CloudStack's agent calls it."""

import shutil
import sys

import tap
from test_libvirt_page import PageCase, fenced

if not shutil.which("groovy"):
    print("1..0 # SKIP no groovy (tools/deps cloud)")
    sys.exit(0)

SCRIPT = "libvirt-vm-xml-transformer.groovy"
# As LibvirtKvmAgentHook does it, for all domains in one Java.
AGENT = f"""
args.tail().each {{
    def hook = new groovy.util.GroovyScriptEngine(args[0]).run('{SCRIPT}', new Binding())
    new File(it + '.made').text = hook.invokeMethod('transform', [null, new File(it).text] as Object[])
}}
"""


class Hook(PageCase):
    def made(self, domains):
        files = [self.where / f"domain.{number}" for number in range(len(domains))]
        for file, xml in zip(files, domains):
            file.write_text(xml, "utf-8")
        self.run_program(["groovy", str(self.where / "agent.groovy"), str(self.where), *map(str, files)], JAVA_HOME="/usr/lib/jvm/default-java")
        return [file.with_name(file.name + ".made").read_text("utf-8") for file in files]

    def test_hook(self):
        """Java's own XSLT, too."""
        self.cloudstack_sheet()
        (self.where / SCRIPT).write_text(fenced("groovy").replace("/etc/cloudstack/agent/hooks", str(self.where)), "utf-8")
        (self.where / "agent.groovy").write_text(AGENT, "utf-8")
        self.assert_hook(self.made)


tap.main(__name__)
