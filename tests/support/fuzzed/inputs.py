"""Inputs for readers: samples with changes of their bytes or of their tree, and trees without a sample."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from hypothesis import strategies as st

MOST: Final = 1024 * 1024
"""Bytes of an input."""
_TOKENS: Final = [
    b"", b"[", b"]", b"{", b"}", b"[]", b"{}", b"- ", b"? ", b": ", b",", b"&a ", b"*a", b"*a, ", b"&a [*a, *a]", b"<<: ",
    b"<<: *a\n", b"<<: [*a, *a]\n", b"---\n", b"...\n", b"%TAG !a! x\n", b"%YAML 1.1\n", b"!!binary ", b"!!set ", b"!!str ",
    b"!!int ", b"!x ", b"|\n", b">-\n", b'"', b"'", b"\t", b"\n", b"\r", b" ", b"\x00", b"\xff", b"\xef\xbb\xbf", b"\xed\xa0\x80",
    b"\xe2\x80\xa8", b"0x", b"0b1", b":1", b"1:30", b"_", b"1e999", b"-1e999", b"1" * 400, b"9" * 5000, b".inf", b".nan", b"NaN",
    b"Infinity", b"~", b"null", b"true", b"#", b"\\u0000", b"\\ud800", b"\\", b"/", b"../", b"${A:=", b"${A}", b"{get_input: a}",
    b"{get_param: a}", b'{"a":', b"Name: a\n", b"Source: b\n", b": :", b"https://[", b"https://a:99999999", b"-----BEGIN ",
    b"PK\x03\x04", b"PK\x01\x02", b"PK\x05\x06",
]  # fmt: skip
_SCALARS: Final = [
    None, True, False, 0, 1, -1, 1.5, 2**31, 2**63, 2**64, 10**30, 1e308, "", " ", "a", "\0", "\n", "ä", "\U0001f600", "-", "../a",
    "/a", "a/b", "\\", "1", "1e999", "0x10", "1:30", "yes", "~", "<<", "$a", "${A}", "%", "x" * 5000, "https://[", "https://a:99999999/",
    "http://\r\n", "1 GB", "v1", "v" + "1" * 5000, "List", "PersistentVolume", "CustomResourceDefinition", "2026-01-01", "9999-99-99",
    "tosca.nodes.nfv.VNF", "tosca.nodes.nfv.Vdu.Compute", "OS::Nova::Server", "OS::Heat::ResourceGroup",
]  # fmt: skip
_NAMES: Final = [
    "",
    "a",
    "name",
    "kind",
    "type",
    "properties",
    "get_input",
    "get_param",
    "derived_from",
    "$ref",
    "file",
    "resources",
]

scalars = st.sampled_from(_SCALARS)
trees: st.SearchStrategy[Any] = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(_NAMES), inner, max_size=4),
    max_leaves=8,
)
_edits = st.lists(
    st.tuples(
        st.sampled_from(["insert", "replace", "delete", "repeat", "cut"]),
        st.integers(0, 2**16),
        st.sampled_from([0, 1, 2, 7, 40, 300]),
        st.sampled_from(_TOKENS),
        st.sampled_from([1, 1, 1, 2, 9, 200, 20_000]),
    ),
    min_size=1,
    max_size=5,
)
_tree_edits = st.lists(
    st.tuples(
        st.sampled_from(["replace", "replace", "replace", "copy", "delete", "rename", "deepen"]),
        st.integers(0, 2**16),
        scalars | trees,
    ),
    min_size=1,
    max_size=4,
)


def edited(sample: bytes, edits: Sequence[tuple[str, int, int, bytes, int]]) -> bytes:
    """Return the bytes with the edits applied in order."""
    for kind, where, length, token, times in edits:
        at = where * len(sample) // 2**16
        new = (token * times)[:MOST] if token else b""
        if kind == "insert":
            sample = sample[:at] + new + sample[at:]
        elif kind == "replace":
            sample = sample[:at] + new + sample[at + length :]
        elif kind == "delete":
            sample = sample[:at] + sample[at + length :]
        elif kind == "repeat":
            sample = sample[:at] + (sample[at : at + length] * times)[:MOST] + sample[at:]
        else:
            sample = sample[:at]
    return sample[:MOST]


def _places(tree: Any) -> Iterator[tuple[Any, Any]]:
    """Yield each (map or list, key or index), in order."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        entries = (
            list(node.items()) if isinstance(node, dict) else list(enumerate(node)) if isinstance(node, list) else []
        )
        for key, value in entries:
            yield node, key
            waiting.append(value)


def edited_tree(tree: Any, edits: Sequence[tuple[str, int, Any]]) -> Any:
    """Return a copy with the edits applied in order."""
    root = json.loads(json.dumps([tree]))
    for kind, where, new in edits:
        places = list(_places(root))
        if not places:
            break
        holder, key = places[where % len(places)]
        if kind == "replace":
            holder[key] = new
        elif kind == "copy":
            other, name = places[where // 7 % len(places)]
            if name in other if isinstance(other, dict) else name < len(other):
                holder[key] = json.loads(json.dumps(other[name]))
        elif kind == "delete":
            del holder[key]
        elif kind == "rename" and isinstance(holder, dict):
            holder[str(new)[:50]] = holder.pop(key)
        else:
            for _ in range(where % 150):
                holder[key] = [holder[key]] if where % 2 else {"a": holder[key]}
    return root[0] if root else None


def from_bytes(samples: Sequence[bytes]) -> st.SearchStrategy[bytes]:
    """Return samples with changed bytes."""
    return st.builds(edited, st.sampled_from(samples), _edits)


def from_trees(samples: Sequence[Any]) -> st.SearchStrategy[bytes]:
    """Return samples with changed trees, and trees without a sample, as JSON, which is YAML too."""
    changed = st.builds(edited_tree, st.sampled_from(samples), _tree_edits)
    return st.one_of(changed, changed, changed, trees).map(lambda tree: json.dumps(tree).encode())


def zipped(files: Mapping[str, bytes | str]) -> bytes:
    """Return an archive; a name may be one that no archive should have."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name or "a"), content)
    return stream.getvalue()


def from_files(packages: Sequence[Mapping[str, bytes | str]], only: str = "") -> st.SearchStrategy[bytes]:
    """Return archives of packages in which one file has changed bytes, or a changed tree. ``only``: a part of its name."""
    whole = [{name: _raw(content) for name, content in package.items()} for package in packages]

    def changed(index: int, which: int, edits: Any) -> bytes:
        files = dict(whole[index])
        names = sorted(name for name in files if only in name)
        name = names[which % len(names)]
        files[name] = edited(files[name], edits)
        return zipped(files)

    return st.builds(changed, st.integers(0, len(whole) - 1), st.integers(0, 1000), _edits)


def from_file_trees(
    packages: Sequence[Mapping[str, bytes | str]], trees_by_name: Sequence[Mapping[str, Any]]
) -> st.SearchStrategy[bytes]:
    """Return archives of packages in which one file has a changed tree. ``trees_by_name``: of each package, in their order."""
    whole = [{name: _raw(content) for name, content in package.items()} for package in packages]

    def changed(index: int, which: int, edits: Any) -> bytes:
        names = sorted(trees_by_name[index])
        name = names[which % len(names)]
        tree = edited_tree(trees_by_name[index][name], edits)
        return zipped({**whole[index], name: json.dumps(tree).encode()})

    return st.builds(changed, st.integers(0, len(whole) - 1), st.integers(0, 1000), _tree_edits)


def _raw(content: bytes | str) -> bytes:
    return content if isinstance(content, bytes) else content.encode()
