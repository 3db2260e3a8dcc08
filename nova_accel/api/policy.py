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

"""The enforcer of our policy rules, over Nova's policy file."""

from collections.abc import Mapping
import functools
import time
from typing import Any

from nova import context as nova_context
from oslo_policy import policy
import webob.exc

from nova_accel import conf
from nova_accel.api import policies

#: How old the policy file's rules may be.
_FRESH_S = 1.0


class _Enforcer(policy.Enforcer):
    """Looks for a changed policy file once a second, not for each rule."""

    _looked_at = -_FRESH_S

    def load_rules(self, force_reload: bool = False) -> None:
        if force_reload or time.monotonic() >= self._looked_at + _FRESH_S:
            super().load_rules(force_reload)
            self._looked_at = time.monotonic()


@functools.cache
def get_enforcer() -> policy.Enforcer:
    """The enforcer of the rules, also for the ``oslopolicy-*`` commands."""
    enforcer = _Enforcer(conf.CONF)
    enforcer.register_defaults(policies.list_rules())
    return enforcer


def authorize(
    context: nova_context.RequestContext,
    rule: str,
    or_rule: str | None = None,
    refusal: str | None = None,
) -> None:
    """Make sure that the caller may do it in the caller's own project.

    :param or_rule: another rule that is enough
    :param refusal: what to say instead of the first rule's name
    :raises HTTPForbidden: the rules say no.
    """
    if allows(context, rule):
        return
    if or_rule is None or not allows(context, or_rule):
        raise webob.exc.HTTPForbidden(
            refusal or f'Access was denied to the following resource: {rule}'
        )


def allows(context: nova_context.RequestContext, rule: str) -> bool:
    """Whether the rule says yes."""
    target: Mapping[str, Any] = {'project_id': context.project_id}
    return bool(get_enforcer().authorize(rule, target, context))
