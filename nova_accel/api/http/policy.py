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

"""The enforcer of our policy rules, over Nova's policy file.

oslo.policy takes 0.1 ms for a decision, and Nova asks for seven in the life of
a server. A decision depends on the rules and on what the token says of its
user, and the same services ask again and again. So decisions are kept as long
as the rules are: until the policy file is looked at again.

A rule compares the caller with the *target*: the caller's own project, and the
host that the path of the call names. So a rule can let a user speak for one
host alone.
"""

import functools
import re
import threading
import time
from typing import Any

from oslo_policy import policy
import webob.exc

from nova_accel import conf
from nova_accel.api import policies
from nova_accel.api.http import caller

#: How old the policy file's rules may be, and a decision by them.
_FRESH_S = 1.0

#: How many decisions are kept at most.
_MOST_DECISIONS = 4096

#: A role in the text of a rule, of the caller or of a service.
_ROLE = re.compile(r'\brole:([\w-]+)')

#: A caller, as the rules see it.
_Caller = tuple[Any, ...]


class _Enforcer(policy.Enforcer):
    """Looks for a changed policy file once a second, not for each rule."""

    _looked_at = -_FRESH_S

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        # While the rules are loaded, most of them are missing for a moment.
        self._lock = threading.RLock()
        self._decisions: dict[tuple[str, str | None, _Caller], bool] = {}
        super().__init__(*args, **kwargs)

    def load_rules(self, force_reload: bool = False) -> None:
        if force_reload or time.monotonic() >= self._looked_at + _FRESH_S:
            super().load_rules(force_reload)
            self._looked_at = time.monotonic()
            self._decisions = {}

    def allows(
        self, context: caller.Caller, rule: str, hostname: str | None
    ) -> bool:
        """Whether the rule lets the caller do it in the caller's project."""
        key = rule, hostname, _caller(context)
        with self._lock:
            self.load_rules()
            decision = self._decisions.get(key)
            if decision is None:
                target: dict[str, Any] = {'project_id': context.project_id}
                # Without a host a rule that names it says no.
                if hostname is not None:
                    target['hostname'] = hostname
                decision = bool(self.authorize(rule, target, context))
                if len(self._decisions) < _MOST_DECISIONS:
                    self._decisions[key] = decision
        return decision


def _caller(context: caller.Caller) -> _Caller:
    """The values of ``to_policy_values()``: rules can see no others."""
    return (
        context.user_id,
        context.user_name,
        context.user_domain_id,
        context.system_scope,
        context.domain_id,
        context.project_id,
        context.project_domain_id,
        tuple(context.roles),
        context.is_admin_project,
        context.service_user_id,
        context.service_user_name,
        context.service_user_domain_id,
        context.service_project_id,
        context.service_project_domain_id,
        tuple(context.service_roles),
        context.is_admin,
    )


@functools.cache
def get_enforcer() -> _Enforcer:
    """The enforcer of the rules, also for the ``oslopolicy-*`` commands."""
    enforcer = _Enforcer(conf.CONF)
    enforcer.register_defaults(policies.RULES)
    return enforcer


def authorize(
    context: caller.Caller,
    rule: str,
    or_rule: str | None = None,
    refusal: str | None = None,
    hostname: str | None = None,
) -> None:
    """Make sure that the caller may do it in the caller's own project.

    :param or_rule: another rule that is enough
    :param refusal: what to say instead of the first rule's name
    :param hostname: the host that the caller speaks of, None if of no one host
    :raises HTTPForbidden: the rules say no.
    """
    if allows(context, rule, hostname):
        return
    if or_rule is None or not allows(context, or_rule, hostname):
        told = refusal or denial(rule, or_rule)
        # A host learns which of its names the rules do not let go together.
        if hostname is not None and 'service' in context.roles:
            told += f'; user {context.user_name} asked for host {hostname}'
        raise webob.exc.HTTPForbidden(told)


def denial(rule: str, or_rule: str | None = None) -> str:
    """The answer for whom the rules say no, with the roles that they name."""
    return 'Access was denied to the following resource: ' + ', or '.join(
        _with_roles(each) for each in (rule, or_rule) if each is not None
    )


def _with_roles(rule: str) -> str:
    check = str(get_enforcer().rules.get(rule, ''))
    roles = sorted(set(_ROLE.findall(check)))
    if not roles:
        return rule
    some = 'the role' if len(roles) == 1 else 'one of the roles'
    return f'{rule}, which needs {some} {", ".join(roles)}'


def allows(
    context: caller.Caller, rule: str, hostname: str | None = None
) -> bool:
    """Whether the rule says yes; see :func:`authorize`."""
    return get_enforcer().allows(context, rule, hostname)
