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


"""``provider.yaml``: operators' additions to Nova's resource providers.

See https://docs.openstack.org/nova/latest/admin/managing-resource-providers.html
"""

import os.path

from nova.compute import provider_config

from nova_accel import conf
from nova_accel.model import naming
from nova_accel.model.providers import provider_layout

CONF = conf.CONF

#: Nova's name for the host's root provider, unless another entry names it.
_COMPUTE_NODE = '$COMPUTE_NODE'


class ProviderConfigs:
    """The files, read once, like ``ResourceTracker._merge_provider_configs``.

    :raises nova.exception.ProviderConfigException: a file cannot be used;
        Nova does not start with it either.
    """

    def __init__(self, nodename: str, node_uuid: str) -> None:
        self._nodename = nodename
        self._entries = provider_config.get_provider_configs(
            CONF.compute.provider_config_location
        )
        self._root = next(
            (
                name
                for name in (nodename, node_uuid, _COMPUTE_NODE)
                if name in self._entries
            ),
            None,
        )

    def line_for(self, provider: provider_layout.Provider) -> str | None:
        """The entry that changes one of our providers, None if none does.

        Nova would mark the provider as its own (``OWNER_NOVA``). If the entry
        has one of our resource classes, Nova would publish nothing of the host
        any more.
        """
        return next(
            (
                self._named(name)
                for name in (provider.name, provider.uuid)
                if name in self._entries
            ),
            None,
        )

    def line_giving(self, trait: str) -> str | None:
        """An entry that sets a trait on a provider of Nova, or None."""
        return next(
            (
                self._named(name)
                for name, entry in self._entries.items()
                if trait in entry.get('traits', {}).get('additional', ())
                and (name == self._root or self._is_novas(name))
            ),
            None,
        )

    def _is_novas(self, name: str) -> bool:
        """Whether it names a provider of Nova's below this host's root.

        An entry for another host, or for a missing device, has no effect here.
        """
        return name.startswith(
            f'{self._nodename}_'
        ) and not naming.is_provider_name(name, self._nodename)

    def _named(self, name: str) -> str:
        entry = self._entries[name]
        file = os.path.join(
            CONF.compute.provider_config_location, entry['__source_file']
        )
        ((method, value),) = entry['identification'].items()
        return f'{file}: provider with {method} {value}'
