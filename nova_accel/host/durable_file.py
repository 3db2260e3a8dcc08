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

"""Small files that survive a crash of the host, whole or not at all."""

import os
import pathlib
import tempfile


def write(path: pathlib.Path, text: str) -> None:
    """Replace the file's content; only its owner may read it."""
    with tempfile.NamedTemporaryFile(
            'w', dir=path.parent, suffix='.new', delete=False) as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(file.name, path)
    sync(path.parent)


def remove(path: pathlib.Path) -> None:
    """Remove the file; one that is not there is fine."""
    path.unlink(missing_ok=True)
    sync(path.parent)


def sync(directory: pathlib.Path) -> None:
    """Make a rename or removal in it durable."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
