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

"""Warnings beside an answer: what was done may not be what was meant.

They are in the header ``Warning`` with the code 299 (RFC 7234, section 5.5),
as the API of Kubernetes has them. A client that does not know the header is
not disturbed.
"""

from collections.abc import Iterable

import webob

from nova_accel import reason

#: The longest text, in characters, so that no proxy refuses the answer.
_MAX_LENGTH = 500

#: The most warnings of an answer.
_MOST = 8


def add(response: webob.Response, texts: Iterable[str]) -> None:
    """Add warnings to an answer, the first ones if there are many."""
    for text in list(texts)[:_MOST]:
        told = reason.printable(text[:_MAX_LENGTH])
        quoted = (
            told.encode('ascii', 'replace')
            .decode()
            .replace('\\', '\\\\')
            .replace('"', '\\"')
        )
        response.headers.add('Warning', f'299 nova_accel "{quoted}"')
