# SPDX-License-Identifier: LGPL-2.1-or-later
"""The command line of a benchmark of the plugin."""

import argparse
import os
import pathlib


def build_directory(name):
    build = pathlib.Path(name).resolve()
    if not (build / "opensm/libvhcasm.so").exists():
        raise argparse.ArgumentTypeError(f"{name} is no build directory with the plugin")
    return build


def count(text):
    if not text.isdigit() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text} is no number from 1 on")
    return int(text)


def parser(doc):
    """Whose first argument is BUILD, and whose --help is doc."""
    ret = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    ret.add_argument("build", metavar="BUILD", type=build_directory)
    return ret


def parse(ret):
    """OpenSM then loads the plugin of BUILD."""
    args = ret.parse_args()
    os.environ["VHCA_PLUGIN"] = str(args.build / "opensm/libvhcasm.so")
    return args
