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


"""The operator's own catalogue of devices, ``[nova_accel] catalogue_file``.

YAML in the form of ``catalogue.json``::

    "8086":
      name: Intel
      products:
        QAT:
          "4948": 6xxx

The key of a board has its subsystem ids: ``"bcce/8086:1771"``.
"""

from collections.abc import Iterator
import pathlib
from typing import Any

import jsonschema
import yaml

from nova_accel import exceptions
from nova_accel.model import naming

# jsonschema uses Python's re, whose $ accepts a newline at the end.
_ID = r'^[0-9a-f]{4}\Z'

# The key of a product, or of a board that shares its product id with others.
_PRODUCT = r'^[0-9a-f]{4}(/[0-9a-f]{4}:[0-9a-f]{4})?\Z'

_NAME = {'type': 'string', 'minLength': 1}

_VALIDATOR = jsonschema.Draft202012Validator(
    {
        'type': 'object',
        'propertyNames': {'pattern': _ID},
        'additionalProperties': {
            'type': 'object',
            'properties': {
                'name': _NAME,
                'products': {
                    'type': 'object',
                    'propertyNames': {'enum': sorted(naming.RESOURCE_CLASSES)},
                    'additionalProperties': {
                        'type': 'object',
                        'propertyNames': {'pattern': _PRODUCT},
                        'additionalProperties': _NAME,
                    },
                },
            },
            'required': ['name'],
            'additionalProperties': False,
        },
    }
)


def read(file: str) -> dict[str, Any]:
    """Read and check the operator's catalogue.

    :returns: vendor id -> ``{'name': str, 'products': {type: {product id:
        name}}}``, ``products`` may be missing; ids are four lower-case
        hexadecimal digits, and that of a board is ``25b6/10de:14a9``
    :raises ConfigurationError: the catalogue is wrong; the text names the
        option, the file and the fault.
    """
    try:
        catalogue = yaml.safe_load(pathlib.Path(file).read_text('utf-8'))
        fault = next(_faults(catalogue), None)
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        fault = str(error)
    if fault is not None:
        raise exceptions.ConfigurationError(
            f'[nova_accel] catalogue_file = {file}: {fault}'
        )
    return catalogue


def _faults(catalogue: Any) -> Iterator[str]:
    # This comes before the schema, which cannot handle keys that JSON cannot
    # have.
    yield from (
        f'the id {key!r} is no text, all ids must be in quotes'
        for key in _keys(catalogue)
        if not isinstance(key, str)
    )
    for error in _VALIDATOR.iter_errors(catalogue):
        where = '/'.join(str(part) for part in error.path)
        yield f'{where}: {error.message}' if where else error.message
    for vendor_id, vendor in catalogue.items():
        types: dict[str, str] = {}
        for type_, product_id, name in (
            (type_, *product)
            for type_, names in vendor.get('products', {}).items()
            for product in names.items()
        ):
            where = f'{vendor_id}/{product_id}'
            if types.setdefault(product_id, type_) != type_:
                yield f'{where} is both {types[product_id]} and {type_}'
            try:
                naming.device_trait(type_, vendor['name'], name)
            except exceptions.InvalidName as error:
                yield f'{where}: {error}'


def _keys(value: Any) -> Iterator[Any]:
    """All keys at any depth; YAML reads 8086 and 1e10 as numbers."""
    if isinstance(value, dict):
        for key, below in value.items():
            yield key
            yield from _keys(below)
