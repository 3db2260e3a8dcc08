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

"""Parts of Nova's services that are made once where Nova makes them again.

Each is a function of its arguments, and no one changes what it returns:

* the rules in the text of a policy file, which is the same in all tests;
* the router of Nova's API, which two of its pipelines in a test make anew;
* the entry points of the installed packages.
"""

from collections.abc import Callable
import functools
from importlib import metadata
from typing import Any

import fixtures
from nova.api.openstack.compute import routes
from oslo_policy import policy

_parse = functools.lru_cache(maxsize=64)(policy.parse_file_contents)

#: For each group, as nova_accel and stevedore ask for them.
_entry_points = functools.cache(metadata.entry_points)


def _parsed(data: str) -> dict[str, Any]:
    return dict(_parse(data))


class MadeOnce(fixtures.Fixture):
    """Use it before the services are made."""

    def _setUp(self) -> None:
        # A router holds clients of this test's services.
        factory = routes.APIRouterV21.factory
        made: dict[str, Any] = {}

        def made_once(_class: Any, *_args: Any, **_options: Any) -> Any:
            if 'router' not in made:
                made['router'] = factory(*_args, **_options)
            return made['router']

        patches: tuple[tuple[str, Callable[..., Any]], ...] = (
            ('oslo_policy.policy.parse_file_contents', _parsed),
            ('importlib.metadata.entry_points', _entry_points),
        )
        for name, function in patches:
            self.useFixture(fixtures.MonkeyPatch(name, function))
        self.useFixture(
            fixtures.MonkeyPatch(
                'nova.api.openstack.compute.routes.APIRouterV21.factory',
                classmethod(made_once),
            )
        )
