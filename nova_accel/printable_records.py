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

"""Make what this package logs printable.

Hosts, tenants, devices and tools choose many of the texts in log lines. A line
feed in one would forge a line, and an escape sequence would reach the terminal
of the administrator who reads the log. So each record of a logger of this
package is made printable when it is made, whoever logs it, and however the
service writes its log. The records of other packages stay as they are.
"""

import logging
from typing import Any

from nova_accel import reason

_LOGGERS = f'{__name__.partition(".")[0]}.'

#: The most faults that have caused another one, which are told.
_MAX_CAUSES = 16


def install() -> None:
    """Let Python's logging make the records; a second call does nothing."""
    make = logging.getLogRecordFactory()
    if not isinstance(make, _Factory):
        logging.setLogRecordFactory(_Factory(make))


class _Factory:
    """Makes records by the factory that there was before."""

    def __init__(self, make: Any) -> None:
        self._make = make

    def __call__(self, *args: Any, **kwargs: Any) -> logging.LogRecord:
        record: logging.LogRecord = self._make(*args, **kwargs)
        if str(record.name).startswith(_LOGGERS):
            _make_printable(record)
        return record


def _make_printable(record: logging.LogRecord) -> None:
    try:
        text = record.getMessage()
    except Exception:
        # The text and its arguments do not match: logging tells where.
        return
    record.msg, record.args = reason.printable(text), ()
    if record.exc_info and record.exc_info[1] is not None:
        fault = _printable(record.exc_info[1])
        record.exc_info = (type(fault), fault, record.exc_info[2])


def _printable(fault: BaseException, depth: int = 0) -> BaseException:
    """The fault, or one that looks like it in a traceback, with its causes."""
    cause = fault.__cause__ or (
        None if fault.__suppress_context__ else fault.__context__
    )
    shown_cause = (
        None
        if cause is None or depth == _MAX_CAUSES
        else _printable(cause, depth + 1)
    )
    words = str(fault)
    if words.isprintable() and shown_cause is cause:
        return fault
    kind = type(fault)
    shown: BaseException = type(
        kind.__name__,
        (Exception,),
        {'__module__': kind.__module__, '__qualname__': kind.__qualname__},
    )(reason.printable(words))
    if fault.__cause__ is None:
        shown.__context__ = shown_cause
    else:
        shown.__cause__ = shown_cause
    return shown.with_traceback(fault.__traceback__)
