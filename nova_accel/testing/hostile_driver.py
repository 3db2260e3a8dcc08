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

"""A device driver that misbehaves, one method at a time."""

from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
import contextlib
import functools
import inspect
from typing import Any

import fixtures

from nova_accel import exceptions
from nova_accel.drivers import base

#: All methods of a driver that the core calls.
METHODS = tuple(
    name
    for name, _function in inspect.getmembers(base.Driver, inspect.isfunction)
    if not name.startswith('_')
)


def _raising(
    error: type[BaseException], *arguments: object
) -> Callable[[], object]:
    def act() -> object:
        raise error(*arguments)

    return act


#: The misdeeds of a method, each in the place of its work. A method that
#: returns garbage has done nothing.
DEEDS: Mapping[str, Callable[[], object]] = {
    'refuses': _raising(exceptions.DeviceError, 'it does not want to'),
    'OSError': _raising(OSError, 5, 'Input/output error'),
    'KeyError': _raising(KeyError, 'firmware'),
    'another of our errors': _raising(exceptions.StaleAttempt, 'newer'),
    'sys.exit': _raising(SystemExit, 1),
    'garbage': object,
}


class HostileDriver(fixtures.Fixture):
    """A driver that behaves until it is told to be hostile.

    :param driver: its class
    :ivar asked: the methods that were called since the set was cleared
    """

    def __init__(self, driver: type[base.Driver]) -> None:
        super().__init__()
        self._driver = driver
        self._method: str | None = None
        self._deed = ''
        self.asked: set[str] = set()

    def _setUp(self) -> None:
        for method in METHODS:
            self.useFixture(
                fixtures.MonkeyPatch(
                    f'{self._driver.__module__}.{self._driver.__name__}.{method}',
                    self._wrapped(method),
                )
            )

    @contextlib.contextmanager
    def hostile(self, method: str, deed: str) -> Iterator[None]:
        """Have a method do a misdeed while the body runs."""
        self._method, self._deed = method, deed
        try:
            yield
        finally:
            self._method = None

    def _wrapped(self, method: str) -> Callable[..., Any]:
        real = getattr(self._driver, method)

        @functools.wraps(real)
        def act(*args: Any, **kwargs: Any) -> Any:
            self.asked.add(method)
            if method != self._method:
                return real(*args, **kwargs)
            return DEEDS[self._deed]()

        return act
