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

"""The URLs of databases, of which no text may show a part of the password.

SQLAlchemy ends the password at the first ``@``. The rest of one that has an
``@`` in it would be taken for the server's name, and told with it: by us, and
by the database's driver. So such a URL is not used.
"""

import sqlalchemy as sa
from sqlalchemy import exc as sa_exc

from nova_accel import exceptions


def parse(text: str, whose: str) -> sa.URL:
    """The URL, if there is no doubt where its password ends.

    :param whose: names the URL in the fault, which has no part of the URL
    :raises ConfigurationError: it is no URL, or has an ``@`` too many
    """
    try:
        found = sa.make_url(text)
    # The latter if the port is no number.
    except (sa_exc.ArgumentError, ValueError):
        # Not chained: the fault's text may have the password.
        raise exceptions.ConfigurationError(
            f'{whose} is not the URL of a database whose driver is installed'
        ) from None
    is_file = found.username is None and found.host is None
    if not is_file and (text.count('@') > 1 or '@' in (found.database or '')):
        raise exceptions.ConfigurationError(
            f'{whose} has an "@" that is not the one before the server: '
            'write %40 for each "@" of the user, the password and what '
            'follows the server, %2F for "/" and %3A for ":"'
        )
    return found


def server(url: sa.URL) -> str:
    """The server and its port, empty for a file.

    It is also empty without a user: then the port may be a password, before
    which the server was forgotten.
    """
    if url.host is None or url.username is None:
        return ''
    return url.host if url.port is None else f'{url.host}:{url.port}'
