"""Heads of our files, changed and with the right checksum again: what only a hostile writer makes."""

import hashlib
import json
import zlib

import numpy as np

from splitembed.tables.head import MAGIC, NUM_END_BYTES, checksum_of_ends, read_head

START = 56


def head_of(path):
    """Return the head of a file as splitembed reads it."""
    with open(path, "rb") as stream:
        return read_head(stream)


def rewrite_head(path, change):
    """Change the JSON of a head, given as a dict, in place; or replace it by the text that `change` returns."""
    content = path.read_bytes()
    length = int.from_bytes(content[20:24], "little")
    head = json.loads(content[START : START + length])
    text = change(head)
    write_text(path, json.dumps(head) if not isinstance(text, str) else text, old_length=length)


def write_text(path, text, version=1, old_length=4096 - START):
    """Write any text as the JSON of a head."""
    raw = text.encode("ascii")
    start = MAGIC + version.to_bytes(4, "little") + len(raw).to_bytes(4, "little")
    block = (start + hashlib.sha256(start + raw).digest() + raw).ljust(START + old_length, b"\0")
    content = path.read_bytes()
    path.write_bytes(block + content[len(block) :])


def place_of(head, name):
    return next(each for each in head["arrays"] if each["name"] == name)


def replace_array(path, name, data):
    """Write an array at the end of a file, and say in the head that it is the array of a name."""
    data = np.asarray(data)
    raw, content = data.tobytes(), path.read_bytes()
    content += bytes(-len(content) % 64)
    path.write_bytes(content + raw)

    def change(head):
        ends = checksum_of_ends(raw[:NUM_END_BYTES], raw[-NUM_END_BYTES:])
        found = {"name": name, "dtype": data.dtype.str, "shape": list(data.shape), "offset": len(content)}
        found |= {"size": len(raw), "ends": ends, "crc32": zlib.crc32(raw)}
        head["arrays"] = [each for each in head["arrays"] if each["name"] != name] + [found]
        head["file_size"] = len(content) + len(raw)

    rewrite_head(path, change)


def remove(name):
    """Return a change that removes an attribute or an array, or all arrays of a group."""

    def change(head):
        head["attributes"].pop(name, None)
        head["arrays"] = [each for each in head["arrays"] if not f"{each['name']}/".startswith(f"{name}/")]

    return change


def attribute(name, value):
    """Return a change that sets an attribute."""
    return lambda head: head["attributes"].__setitem__(name, value)
