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

"""What nova-compute does to the world outside of it, made to fail."""

from collections.abc import Callable
from collections.abc import Iterator
import contextlib
import enum
import functools
from typing import Any
from typing import NamedTuple

import fixtures
from nova.tests.fixtures import libvirt as fakelibvirt
from oslo_db import exception as db_exc
import sqlalchemy as sa

from nova_accel import exceptions
from nova_accel.client import accelerator_api
from nova_accel.drivers import mdev
from nova_accel.drivers import nvidia_vfio
from nova_accel.host import fabric_manager
from nova_accel.host import mig
from nova_accel.host import vfio_vgpu
from nova_accel.state import durable_file
from nova_accel.testing import accelerator_api as api_fixture
from nova_accel.testing import fake_fpga
from nova_accel.testing import libvirt


class Killed(BaseException):
    """The process is gone; whatever it still tries has no effect."""


class Fault(enum.Enum):
    KILLED_BEFORE = 'killed before'
    KILLED_AFTER = 'killed after'
    RAISES = 'raises'
    ANSWER_LOST = 'answer lost'
    API_AWAY = 'API away from then on'
    DATABASE_AWAY = 'database away from then on'


#: Where nothing fails, but :attr:`Effects.meanwhile` happens just before.
MEANWHILE = 'meanwhile'


class Point(NamedTuple):
    """Where an operation is struck: at its N-th effect, from zero.

    Without a number at the first one of that name.
    """

    number: int | None
    effect: str
    fault: Fault | str


_LOCAL = (Fault.KILLED_BEFORE, Fault.KILLED_AFTER, Fault.RAISES)


class _Kind(NamedTuple):
    """Effects of one kind.

    :param targets: (class or module, names of what has the effect)
    :param error: what it raises when it fails
    """

    name: str
    targets: tuple[tuple[Any, tuple[str, ...]], ...]
    error: Callable[[], Exception]
    faults: tuple[Fault, ...] = _LOCAL


_API = 'API'
_KINDS = (
    _Kind(
        'journal',
        ((durable_file, ('write', 'remove')),),
        lambda: exceptions.DiskError('No space left on device'),
    ),
    _Kind(
        _API,
        (
            (
                accelerator_api.AcceleratorApi,
                (
                    'report',
                    'acquire',
                    'additions',
                    'adopt',
                    'keep',
                    'move',
                    'release',
                ),
            ),
        ),
        lambda: exceptions.ServiceUnavailable('refused'),
        tuple(Fault),
    ),
    _Kind(
        'device',
        (
            (fake_fpga.FakeFpgaDriver, ('plug', 'unplug')),
            (mdev.MdevDriver, ('plug', 'unplug')),
            (nvidia_vfio.NvidiaVfioDriver, ('plug', 'unplug')),
        ),
        lambda: exceptions.DeviceError('the device is stuck'),
    ),
    _Kind(
        'card',
        (
            (mig.MigCard, ('turn', 'create', 'destroy', 'set_functions')),
            (vfio_vgpu.VfioVgpu, ('set_type',)),
        ),
        lambda: exceptions.DeviceError('the card is stuck'),
    ),
    _Kind(
        'fabric',
        (
            (
                fabric_manager.FabricManager,
                ('activate', 'deactivate', 'restore'),
            ),
        ),
        lambda: exceptions.FabricError('Fabric Manager is stuck'),
    ),
    _Kind(
        'guest',
        (
            (
                fakelibvirt.Domain,
                (
                    'createWithFlags',
                    'destroy',
                    'undefineFlags',
                    'managedSave',
                    'attachDeviceFlags',
                    'detachDeviceFlags',
                    'migrateToURI3',
                ),
            ),
            (fakelibvirt.Connection, ('defineXML',)),
        ),
        lambda: libvirt.libvirt_error('the guest is stuck'),
    ),
)
_FAULTS = {kind.name: kind.faults for kind in _KINDS}


class Effects(fixtures.Fixture):
    """Counts the effects of an operation, and strikes at one of them.

    :ivar struck: whether it did
    :ivar meanwhile: what happens at a point of :data:`MEANWHILE`
    """

    meanwhile: Callable[[], None]

    struck = False

    def __init__(
        self, api: api_fixture.AcceleratorApi, engine: sa.Engine
    ) -> None:
        self._api = api
        self._engine = engine
        self._seen: list[tuple[str, str]] | None = None
        self._point: Point | None = None
        self._dead = False

    def _setUp(self) -> None:
        for kind in _KINDS:
            for target, names in kind.targets:
                for name in names:
                    self._wrap(kind, target, name)
        self.addCleanup(self.mend)

    @contextlib.contextmanager
    def counted(self, point: Point | None = None) -> Iterator[list[Point]]:
        """Strike there; then the list has all points of what was done."""
        self._seen, self._point, self.struck = [], point, False
        points: list[Point] = []
        try:
            yield points
        finally:
            points += [
                Point(number, f'{kind} {name}', fault)
                for number, (kind, name) in enumerate(self._seen)
                for fault in _FAULTS[kind]
            ]
            self._seen = self._point = None

    def mend(self) -> None:
        """What was away is back, and so is the process that was killed."""
        self._dead = self._api.refuse = False
        if sa.event.contains(
            self._engine, 'before_cursor_execute', fail_statement
        ):
            sa.event.remove(
                self._engine, 'before_cursor_execute', fail_statement
            )

    def _wrap(self, kind: _Kind, target: Any, name: str) -> None:
        real = getattr(target, name)
        label = f'{name} of {target.__name__.rpartition(".")[2]}'

        @functools.wraps(real)
        def struck(*args: Any, **kwargs: Any) -> Any:
            if self._seen is None:
                return real(*args, **kwargs)
            if self._dead:
                raise Killed
            number = len(self._seen)
            self._seen.append((kind.name, label))
            point = self._point
            if (
                point is None
                or point.number not in (None, number)
                or point.effect != f'{kind.name} {label}'
            ):
                return real(*args, **kwargs)
            self._point, self.struck = None, True
            return self._strike(
                point.fault, kind, functools.partial(real, *args, **kwargs)
            )

        path = getattr(target, '__qualname__', None)
        self.useFixture(
            fixtures.MonkeyPatch(
                f'{target.__module__}.{path}.{name}'
                if path
                else f'{target.__name__}.{name}',
                struck,
            )
        )

    def _strike(
        self, fault: Fault | str, kind: _Kind, do: Callable[[], Any]
    ) -> Any:
        if not isinstance(fault, Fault):
            self.meanwhile()
            return do()
        match fault:
            case Fault.KILLED_BEFORE:
                self._dead = True
                raise Killed
            case Fault.KILLED_AFTER:
                with contextlib.suppress(Exception):
                    do()
                self._dead = True
                raise Killed
            case Fault.RAISES:
                raise kind.error()
            case Fault.ANSWER_LOST:
                self._api.lose_answers = True
                try:
                    return do()
                finally:
                    self._api.lose_answers = False
            case Fault.API_AWAY:
                self._api.refuse = True
                return do()
            case Fault.DATABASE_AWAY:
                sa.event.listen(
                    self._engine, 'before_cursor_execute', fail_statement
                )
                return do()


def fail_statement(*_args: Any) -> None:
    raise db_exc.DBConnectionError(ConnectionError('the database is away'))
