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

"""Servers on cards of many shapes, whose hosts are struck."""

from crash import shapes_cloud
from crash import test_points

OPERATIONS = (
    'boot',
    'delete',
    'hard_reboot',
    'shelve',
    'unshelve',
    'set_more',
    'set_another',
    'unset',
    'replace',
    'cold_migration',
    'confirm',
    'revert',
    'resize_to_fewer_devices',
)


class TestShapesPoints(test_points.PointsTestCase):
    """What Placement counts of a card, and what is made of it."""

    cloud = shapes_cloud.ShapesCloud


class TestInstancePoints(test_points.PointsTestCase):
    """Each step of the card, too."""

    cloud = shapes_cloud.InstanceCloud


class TestWholePoints(test_points.PointsTestCase):
    """Each step of the card, which has no second unit of the shape."""

    cloud = shapes_cloud.WholeCloud


for _class, _names in (
    (TestShapesPoints, OPERATIONS),
    (TestInstancePoints, OPERATIONS),
    (
        TestWholePoints,
        [
            name
            for name in OPERATIONS
            if name not in ('replace', 'resize_to_fewer_devices')
        ],
    ),
):
    for _name in _names:
        setattr(
            _class, f'test_{_name}', lambda self, name=_name: self.check(name)
        )
