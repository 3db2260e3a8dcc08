# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""Find which processes have nodes of accelerators open, as root."""

from collections.abc import Iterator
import os
import pathlib
import re

from nova_accel import privileged

#: The mount point of proc; callers cannot choose it.
PROC = pathlib.Path('/proc')

_NODE = re.compile(
    r'/dev/(?P<node>nvidia[0-9]+|nvidia-caps/nvidia-cap[0-9]+'
    r'|dri/(card|renderD)[0-9]+|accel/accel(_controlD)?[0-9]+'
    r'|hl(_controlD)?[0-9]+|davinci[0-9]+|mei[0-9]+'
    r'|infiniband/(uverbs|umad|issm)[0-9]+)'
)


@privileged.processes_pctxt.entrypoint
def opened() -> dict[str, list[tuple[int, str]]]:
    """Node below ``/dev`` -> (process, its command) for all that have it open.

    Links are read but not followed. Following one into a file system whose
    server is away would block.
    """
    found: dict[str, list[tuple[int, str]]] = {}
    for process in PROC.iterdir():
        if not process.name.isdecimal():
            continue
        # The process may end at any moment, and its files disappear.
        nodes = set(_nodes(process))
        if nodes:
            command = _command(process)
            for node in nodes:
                found.setdefault(node, []).append((int(process.name), command))
    return found


def _nodes(process: pathlib.Path) -> Iterator[str]:
    try:
        for file in (process / 'fd').iterdir():
            match = _NODE.fullmatch(os.readlink(file))
            if match is not None:
                yield match['node']
    except OSError:
        return


def _command(process: pathlib.Path) -> str:
    try:
        return (process / 'comm').read_text(errors='replace').strip()
    except OSError:
        return ''
