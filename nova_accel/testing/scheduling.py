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

"""A real Placement and requests, for tests of nova-scheduler."""

from collections.abc import Iterable
from collections.abc import Mapping
from typing import Any

import fixtures
from keystoneauth1 import adapter
from keystoneauth1 import session
from keystoneauth1 import token_endpoint
from nova import context as nova_context
from nova import objects
from nova.scheduler import utils
from nova.scheduler.client import report
from oslo_utils import uuidutils
from placement.tests.functional.fixtures import placement
import requests

# Each service of Nova does this when it starts.
objects.register_all()


class Placement(fixtures.Fixture):
    """A Placement of one test, to which Nova's report client talks.

    ``client`` is the report client.
    """

    client: report.SchedulerReportClient

    def _setUp(self) -> None:
        service = self.useFixture(placement.PlacementFixture())
        self.use(service.endpoint)

    def use(self, url: str) -> None:
        """Have Nova talk to the Placement at that address from now on."""
        line = requests.Session()
        # No proxy is looked for in the environment, at each request.
        line.trust_env = False
        self.client = report.SchedulerReportClient(
            adapter.Adapter(
                session.Session(token_endpoint.Token(url, 'admin'), line),
                service_type='placement',
                raise_exc=False,
            )
        )
        self.useFixture(
            fixtures.MonkeyPatch(
                'nova.scheduler.client.report.PLACEMENTCLIENT', self.client
            )
        )

    def add_provider(
        self,
        name: str,
        totals: Mapping[str, int],
        parent: str | None = None,
        traits: Iterable[str] = (),
        uuid: str | None = None,
    ) -> str:
        """Make a provider, with its resource classes and traits.

        :param totals: resource class -> units
        :param uuid: a new one, unless it is given
        :returns: its uuid
        """
        uuid = uuid or str(uuidutils.generate_uuid())
        for resource_class in totals:
            self._put(f'/resource_classes/{resource_class}', None)
        for trait in traits:
            self._put(f'/traits/{trait}', None)
        checked(
            self.client.post(
                '/resource_providers',
                {'uuid': uuid, 'name': name, 'parent_provider_uuid': parent},
                version='1.20',
            )
        )
        self._put(
            f'/resource_providers/{uuid}/inventories',
            {
                'resource_provider_generation': 0,
                'inventories': {
                    resource_class: {'total': total, 'max_unit': total}
                    for resource_class, total in totals.items()
                },
            },
        )
        self._put(
            f'/resource_providers/{uuid}/traits',
            {'resource_provider_generation': 1, 'traits': list(traits)},
        )
        return uuid

    def _put(self, path: str, body: Any) -> None:
        # Standard traits and resource classes exist, and cannot be put.
        if not path.startswith(('/traits/', '/resource_classes/')) or (
            '/CUSTOM_' in path
        ):
            checked(self.client.put(path, body, version='1.36'))

    def candidates(
        self,
        request_spec: 'objects.RequestSpec',
    ) -> list[dict[str, Any]]:
        """The allocation candidates that Nova gets for the request."""
        request = utils.resources_from_request_spec(
            nova_context.get_admin_context(), request_spec, None
        )
        found, _summaries, _version = self.client.get_allocation_candidates(
            nova_context.get_admin_context(), request
        )
        return [] if found is None else list(found)

    def claim(self, candidate: Mapping[str, Any]) -> bool:
        """Claim a candidate for a new consumer.

        :returns: whether there was room for it
        """
        answer = self.client.put(
            f'/allocations/{uuidutils.generate_uuid()}',
            {
                'allocations': candidate['allocations'],
                'mappings': candidate['mappings'],
                'project_id': 'project',
                'user_id': 'user',
                'consumer_generation': None,
            },
            version='1.36',
        )
        return bool(answer)

    @property
    def traits(self) -> frozenset[str]:
        """All traits that exist."""
        answer = checked(self.client.get('/traits', version='1.6'))
        return frozenset(answer.json()['traits'])


def checked(answer: Any) -> Any:
    """:raises requests.HTTPError: the answer is an error"""
    answer.raise_for_status()
    return answer


def request_spec(
    extra_specs: Mapping[str, str] | None = None,
    groups: 'Iterable[objects.RequestGroup]' = (),
) -> 'objects.RequestSpec':
    """A request for one server with one VCPU and 64 MiB, and no disk.

    :param extra_specs: those of its flavor
    :param groups: those of its ports and PCI requests
    """
    spec = objects.RequestSpec(
        flavor=objects.Flavor(
            name='flavor',
            vcpus=1,
            memory_mb=64,
            root_gb=0,
            ephemeral_gb=0,
            swap=0,
            extra_specs=dict(extra_specs or {}),
        ),
        image=None,
        is_bfv=False,
        num_instances=1,
        instance_uuid=uuidutils.generate_uuid(),
        project_id='project',
        user_id='user',
        requested_resources=list(groups),
    )
    spec.obj_set_defaults()
    spec.obj_reset_changes(recursive=True)
    return spec
