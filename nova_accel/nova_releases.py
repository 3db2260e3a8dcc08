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

"""How the supported releases of Nova differ: 33 (2026.1) and 34 (2026.2).

No other module asks which release this is. Each function says what a release
does, and looks for the feature itself, not for a number.
"""

from collections.abc import Callable
from typing import Any

try:
    # Nova 34.
    from nova import thread_pool_factory as _threads
except ImportError:
    from nova import utils as _threads


def spawn(work: Callable[[], None]) -> None:
    """Have a thread of Nova's own do this, a green one in its eventlet mode.

    :raises RuntimeError: Nova has ended its threads.
    """
    _threads.spawn(work)


def is_virtual_mdev_parent(driver: Any, name: str) -> bool:
    """Whether Nova's configuration names a parent that is no PCI function.

    Only Nova 34 lets it.

    :param driver: Nova's driver of libvirt
    :param name: what libvirt calls the parent of mediated devices
    """
    ask = getattr(driver, '_is_virtual_mdev', None)
    return ask is not None and bool(ask(name))
