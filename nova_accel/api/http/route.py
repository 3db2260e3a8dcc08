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

"""All that the API knows of one call: an entry of a table in ``routes/``."""

from collections.abc import Callable
from collections.abc import Mapping
import dataclasses

import webob

from nova_accel.api.http import microversion
from nova_accel.api.schemas import scalars

#: Bytes.
MAX_BODY_BYTES = 128 * 1024

_ENVIRON_KEY = 'nova_accel.route'

Handler = Callable[[webob.Request], webob.Response]


@dataclasses.dataclass(frozen=True)
class Argument:
    """An argument of the query.

    :ivar since: the first microversion that has it
    """

    meaning: str
    since: str = microversion.VERSIONS[0]


@dataclasses.dataclass(frozen=True)
class Route:
    """One HTTP method of one path.

    :ivar rule: the policy rule that must allow the call, None if anyone may
        make it
    :ivar or_rule: another one that is enough
    :ivar further_rules: the ones that the handler asks for a part of the call
    :ivar body: the schema of the body, None if there is none
    :ivar wrapper: the only key of an object in which some clients send the
        body
    :ivar query: by the name; if there is none, the query is not looked at
    :ivar since: the first microversion that has the call
    :ivar is_hidden_before: whether an older request is told that there is no
        such method, as Cyborg does, not which microversion has it
    :ivar is_again: whether it is a call of another path, once more
    """

    handler: Handler
    summary: str
    rule: str | None
    or_rule: str | None = None
    further_rules: tuple[str, ...] = ()
    body: scalars.Schema | None = None
    wrapper: str | None = None
    max_body_bytes: int = MAX_BODY_BYTES
    query: Mapping[str, Argument] = dataclasses.field(default_factory=dict)
    since: str = microversion.VERSIONS[0]
    is_hidden_before: bool = False
    is_again: bool = False

    @property
    def rules(self) -> tuple[str, ...]:
        """The policy rules of which the call asks one or more."""
        own = (each for each in (self.rule, self.or_rule) if each is not None)
        return *own, *self.further_rules


#: Path -> HTTP method -> route.
Table = Mapping[str, Mapping[str, Route]]


def keep(request: webob.Request, matched: Route) -> None:
    """Let the handler of a request find the route that has led to it."""
    request.environ[_ENVIRON_KEY] = matched


def of(request: webob.Request) -> Route:
    """The route that was kept for a request."""
    matched: Route = request.environ[_ENVIRON_KEY]
    return matched
