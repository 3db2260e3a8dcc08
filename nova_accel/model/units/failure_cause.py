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

"""Why something failed, in one word of a few.

A text tells administrators what failed. A metric has room for few words, so
the text is sorted under one of them.
"""

import enum
import re

#: The reason of a programming that still ran when nova-compute died.
INTERRUPTED = 'nova-compute or its host died while it was programmed'

#: The reason of a programming whose time was over.
NO_TIME = 'there is no time left for it'

#: A bitstream is looked for, fetched and checked before the device is touched.
_OF_BITSTREAM = re.compile(r'\b(bitstream|Glance)\b', re.IGNORECASE)

#: In the reason of a binding whose host was silent: db/client_arqs.py.
_OF_SILENT_HOST = re.compile(r'\bhas not reported for\b')


class Programming(enum.StrEnum):
    """Why a programming failed."""

    INTERRUPTED = 'interrupted'
    NO_TIME = 'no_time'
    BITSTREAM = 'bitstream'
    #: Anything else: the card refused, or does not say what it was to say.
    DEVICE = 'device'


class BindingCause(enum.StrEnum):
    """Why an ARQ is BindFailed."""

    HOST_SILENT = 'host_silent'
    NO_FREE_UNIT = 'no_free_unit'


def of_programming(failure: str) -> Programming:
    """The cause that a failed programming tells."""
    if INTERRUPTED in failure:
        return Programming.INTERRUPTED
    if NO_TIME in failure:
        return Programming.NO_TIME
    if _OF_BITSTREAM.search(failure):
        return Programming.BITSTREAM
    return Programming.DEVICE


def of_binding(reason: str | None) -> BindingCause:
    """The cause that a BindFailed ARQ tells."""
    if reason is not None and _OF_SILENT_HOST.search(reason):
        return BindingCause.HOST_SILENT
    return BindingCause.NO_FREE_UNIT
