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

"""``openstack accelerator device profile explain``."""

from collections.abc import Iterable
from collections.abc import Iterator
from urllib import parse

from nova_accel.osc import accelerator_calls
from nova_accel.overview import explaining


class Explain(explaining.Explain):
    def pages(
        self, profile: str, hostname: str | None
    ) -> Iterator[Iterable[explaining.Row]]:
        for page in accelerator_calls.pages(
            accelerator_calls.client_of(self.app),
            f'/device_profiles/{parse.quote(profile, "")}/explain',
            'explain',
            {} if hostname is None else {'hostname': hostname},
        ):
            yield (
                (
                    group['device_profile_group_id'],
                    provider['hostname'],
                    provider['uuid'],
                    provider['resource_class'],
                    provider['total'],
                    provider['free'],
                    '; '.join(provider['reasons']),
                )
                for group in page['groups']
                for provider in group['resource_providers']
            )
