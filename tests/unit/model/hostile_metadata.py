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

"""What a tenant may write into the properties of an image, for tests."""

import uuid

from hypothesis import strategies as st

#: Texts that have hurt somebody.
_KNOWN = (
    '',
    ' ',
    '---',
    'x' * 300,
    '\u2122',
    'a\nb',
    '\0',
    '\ud800',
    '\u202egnp.tib',
    '../../etc/passwd',
    '%s%n',
    '{0}',
    '[1, {"a":',
    ',' * 255,
    'CUSTOM_FPGA',
    '1e999',
)

_UUIDS = st.uuids().map(str)

_TEXTS = st.one_of(
    st.sampled_from(_KNOWN),
    st.text(max_size=300),
    _UUIDS,
    _UUIDS.map(str.upper),
    _UUIDS.map('urn:uuid:{}'.format),
    st.integers(0, 1100).map(
        lambda number: ','.join(
            str(uuid.UUID(int=value)) for value in range(number)
        )
    ),
    st.lists(st.one_of(_UUIDS, st.text(max_size=20)), max_size=20).map(
        ','.join
    ),
    st.integers(1, 65535).map('x'.__mul__),
)

#: Those that are read, and some that Nova reads.
NAMES = (
    'bs-name',
    'vendor',
    'board',
    'shell_id',
    'region_uuid',
    'function_uuid',
    'function_name',
    'provides_shell_id',
    'img_signature',
    'img_signature_hash_method',
    'img_signature_key_type',
    'img_signature_certificate_uuid',
    'owner',
    'is_public',
    'visibility',
    'mappings',
    'block_device_mapping',
)


def properties() -> st.SearchStrategy[dict[str, str]]:
    """Some of them are hostile, and others what they have to be."""
    return st.dictionaries(
        st.one_of(st.sampled_from(NAMES), st.just('function_uuid')),
        _TEXTS,
        max_size=6,
    )
