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

"""The resource providers of this host's accelerators, for Placement.

Nova calls :meth:`Providers.update` inside every claim, under its resource
semaphore. So it waits for nothing: a worker asks other services, in
:meth:`Providers.settle`. The exception is a reshape, which Nova makes before
it begins its work.
"""

from collections.abc import Mapping
import threading

from nova import exception
from nova.compute import provider_tree
from oslo_log import log as logging
import oslo_messaging

from nova_accel import exceptions
from nova_accel.client import our_allocations
from nova_accel.client import servers
from nova_accel.model import finding
from nova_accel.model.providers import host_view
from nova_accel.model.providers import occupancy
from nova_accel.model.providers import provider_layout
from nova_accel.model.providers import reshape
from nova_accel.model.units import host_stats
from nova_accel.virt.holding import attaching
from nova_accel.virt.holding import cleaning
from nova_accel.virt.publishing import nova_tree
from nova_accel.virt.publishing import published_traits

LOG = logging.getLogger(__name__)


class Providers:
    """The resource providers of one host's accelerators.

    :param cleaner: knows which units the next orders will call unclean
    """

    def __init__(
        self,
        nodename: str,
        current: host_view.CurrentState,
        cleaner: cleaning.Cleaner,
        attachments: attaching.Attachments,
        traits: published_traits.PublishedTraits,
    ) -> None:
        self._nodename = nodename
        self._current = current
        self._cleaner = cleaner
        self._attachments = attachments
        self._published_traits = traits
        # The thread of the update that may reshape, until the next update.
        self._starting: int | None = None
        self._looks = 0
        self._moved = reshape.Moved()
        self._unwanted: frozenset[str] = frozenset()
        self._unused: frozenset[str] = frozenset()

    def begin_update(self) -> None:
        """Note that Nova begins to update its resources, in this thread.

        A reshape may only be asked for in the first update. Nova makes that
        when it starts, before anything can be claimed. It does not tell the
        driver which update is the first.
        """
        self._looks += 1
        self._starting = threading.get_ident() if self._looks == 1 else None

    @property
    def may_hurry(self) -> bool:
        """Whether an update that Nova did not plan disturbs no start."""
        return self._looks > 1

    def stats(self) -> dict[str, str]:
        """How many units there are, as statistics of the host."""
        return host_stats.to_stats(self._current.view.units)

    def update(
        self,
        tree: provider_tree.ProviderTree,
        allocations: reshape.Allocations | None,
    ) -> bool:
        """Make our part of the tree what it should be.

        :param allocations: all allocations in the tree, to be edited here;
            None unless Nova reshapes
        :returns: whether anything had to be changed
        :raises ReshapeNeeded: Nova is to call again, with the allocations.
        :raises ReshapeFailed: nothing is changed.
        """
        view, orders = self._current.view, self._current.orders
        layout = view.layout
        if allocations is not None:
            self._reshape(layout, allocations)
        elif self._starting == threading.get_ident():
            # Placement may have refused an earlier reshape.
            self._moved = reshape.Moved()
            if reshape.needed(layout, self._attachments.held.bindings()):
                raise exception.ReshapeNeeded()
        given = self._published_traits.read()
        present = nova_tree.present(tree, given)
        held = self._held()
        releasing = self._attachments.held.releasing()
        inventories = occupancy.inventories(
            layout,
            view.unusable(orders)
            | self._cleaner.awaited
            | releasing
            | view.excluded(held.keys() | releasing),
            held,
            self._current.uncounted or {},
        )
        if orders is None or self._current.uncounted is None:
            inventories = occupancy.keep_reserved(
                inventories,
                {} if self._current.uncounted is None else held,
                {provider.uuid: provider.units for provider in present},
            )
        if allocations is not None:
            inventories = occupancy.fit(
                inventories,
                reshape.allocated(
                    allocations,
                    layout.uuids.union(provider.uuid for provider in present),
                ),
            )
        changes = provider_layout.diff(
            layout, inventories, present, self._unused, given
        )
        # A trait that is remembered but not given does no harm. A trait that
        # is given but not remembered would never be removed after a restart.
        self._published_traits.write(
            provider_layout.now_given(layout, changes, given)
        )
        nova_tree.apply(tree, self._nodename, changes)
        self._unwanted = changes.unwanted
        if not changes:
            self._current.published = orders
        return bool(changes)

    def settle(self) -> None:
        """Ask Placement about removals and reshapes that are not finished.

        It costs nothing while no provider waits for its removal, and no
        reshape waits for its end.

        :raises ServiceUnavailable: Placement gave no usable answer.
        """
        unwanted, moved = self._unwanted, self._moved
        targets = {place.rp_uuid for place in moved.targets.values()}
        if not (unwanted or targets):
            self._unused = frozenset()
            return
        consumers = our_allocations.of_consumers(sorted(unwanted | targets))
        self._unused = unwanted.difference(*consumers.values())
        if moved.moves:
            self._end_reshape(moved, consumers)

    def _end_reshape(
        self,
        moved: reshape.Moved,
        consumers: Mapping[str, our_allocations.Resources],
    ) -> None:
        if moved.is_in(consumers):
            left = [move for move in moved.moves if not self._follow(move)]
            if left:
                return
        else:
            words = (
                'Placement has not moved the allocations of the accelerators '
                'of this host: their providers change when nova-compute '
                'starts the next time'
            )
            LOG.warning(words)
            self._current.findings.put(
                'providers', [finding.Finding(finding.Kind.PROVIDERS, words)]
            )
        if self._moved is moved:
            self._moved = reshape.Moved()

    def _follow(self, move: reshape.ReshapeMove) -> bool:
        """Journal a move.

        :returns: whether it is journaled
        """
        try:
            self._attachments.follow(move)
        except exceptions.DeviceError as error:
            LOG.warning(
                'It is not journaled that instance %s has its '
                'accelerator %s from provider %s now, trying again '
                'later: %s',
                move.instance_uuid,
                move.handle_uuid,
                move.target,
                error,
            )
            return False
        return True

    def _reshape(
        self, layout: provider_layout.Layout, allocations: reshape.Allocations
    ) -> None:
        """Move allocations to where the inventories have moved.

        :raises ReshapeFailed: Nova does not tell which migrations it has.
        """
        held = self._attachments.held.bindings()
        if not reshape.needed(layout, held):
            return
        try:
            migrations = {
                uuid: migration.instance_uuid
                for uuid, migration in servers.of_migrations(
                    allocations.keys()
                    - {binding.instance_uuid for binding in held}
                ).items()
            }
        except (
            exception.NovaException,
            oslo_messaging.MessagingException,
        ) as error:
            raise exception.ReshapeFailed(error=error) from error
        self._moved = reshape.make(layout, held, allocations, migrations)
        for move in self._moved.moves:
            LOG.info(
                'Instance %s (%s) has its accelerator %s from provider '
                '%s now, no more from %s',
                move.instance_uuid,
                move.role,
                move.handle_uuid,
                move.target,
                move.source,
            )

    def _held(self) -> dict[str, provider_layout.Place]:
        """Attach handle uuid -> where Placement has it allocated."""
        targets = self._moved.targets
        return {
            arq.handle.uuid: targets.get(
                arq.handle.uuid,
                provider_layout.Place(arq.device_rp_uuid, arq.resource_class),
            )
            for binding in self._attachments.held.bindings()
            for arq in binding.arqs
        }
