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


"""Ways in which a file of plain JSON that its writer made gets damaged.

After each of them the file is certainly wrong: whatever may be read as
another right one is left out.
"""

import json

#: Fields that may be null.
_NULLABLE = frozenset(
    {
        'asked_type',
        'failure',
        'fallback',
        'finished_at',
        'identity',
        'instance_uuid of asker',
        'loaded',
        'managed',
        'moved_from',
        'owner',
        'physical_network',
        'project_id',
        'user_id',
    }
)

#: Fields without which nothing is right.
_REQUIRED = frozenset(
    {
        'arqs',
        'asker',
        'attach_handle',
        'attempt',
        'boot_id',
        'bus',
        'device_rp_uuid',
        'domain',
        'function_uuids',
        'group',
        'handles',
        'info',
        'instance_uuid',
        'module_ids',
        'number',
        'record',
        'role',
        'sha256',
        'started_at',
        'state',
        'step',
        'type',
        'types',
        'uuid',
    }
)

#: Fields whose keys, or parts, are anybody's.
_OPEN = frozenset({'group', 'function_uuids', 'types'})

_DEEP = json.loads('[' * 90 + ']' * 90)

#: Type of a field -> values that it never has.
_WRONG = {
    str: (None, 7, True, [], {}, ['x'], 'x' * 100_000, _DEEP),
    int: (None, 'x', [], {}, True, 1.5, -1, 2**70, _DEEP),
    bool: (None, 'x', 7, [], _DEEP),
    list: (None, 'x', 7, {}, True, [None] * 10_000),
    dict: (None, 'x', 7, [], True, _DEEP),
    type(None): (7, [], {}, True, _DEEP),
}

_TEXTS = (
    '',
    '{"cut',
    '[' * 200_000,
    '{"a":' * 200_000,
    '"' + 'x' * (65 * 1024 * 1024) + '"',
    '\ud800',
    '9' * 10_000,
)


def _name(path):
    """The field of a path, whatever list it is in."""
    names = [part for part in path if isinstance(part, str)]
    if names[-2:] == ['asker', 'instance_uuid']:
        return 'instance_uuid of asker'
    return names[-1] if names else None


def _paths(value, path=()):
    yield path
    if _name(path) in _OPEN:
        return
    parts = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    for key, each in parts:
        yield from _paths(each, (*path, key))


def _at(value, path):
    for key in path:
        value = value[key]
    return value


def _replaced(value, path, new):
    if not path:
        return new
    _at(value, path[:-1])[path[-1]] = new
    return value


def damaged(text, kind, place, wrong):
    """The content of a file that had this text.

    :param kind, place, wrong: numbers that choose what is done
    :returns: bytes, and what was done
    """
    value = json.loads(text)
    kinds = ('field', 'field', 'field', 'key', 'text')
    if kinds[kind % len(kinds)] == 'text':
        new = _TEXTS[wrong % len(_TEXTS)]
        return new.encode(errors='surrogatepass'), f'{new[:20]!r}...'
    if kinds[kind % len(kinds)] == 'key':
        return _without_a_key(value, place)
    paths = list(_paths(value))
    path = paths[place % len(paths)]
    values = [
        new
        for new in _WRONG[type(_at(value, path))]
        if not (new is None and _name(path) in _NULLABLE)
    ]
    new = values[wrong % len(values)]
    return (
        json.dumps(_replaced(value, path, new)).encode(),
        f'{path} is {repr(new)[:40]}',
    )


def _without_a_key(value, place):
    paths = [path for path in _paths(value) if path and path[-1] in _REQUIRED]
    if not paths:
        return b'{}x', 'an end that does not belong to it'
    path = paths[place % len(paths)]
    _at(value, path[:-1]).pop(path[-1])
    return json.dumps(value).encode(), f'no {path}'
