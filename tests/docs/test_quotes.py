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

"""Texts that the manual quotes are those of the code, or of Nova."""

import pathlib
import re

import fixtures
import nova
import testtools

from docs import pages
from docs import quotes

#: These are no texts that a program prints.
_OTHERS = re.compile(
    r'openstack |nova-accel|tools/|pip |systemctl |nvidia-smi |xbmgmt |fmpm |'
    r'device_spec|(GET|PUT|POST|PATCH|DELETE) |[\[{"/#$]|.* \[?--\w'
)

#: A quote that a program makes of parts -> these parts.
_JOINED = {
    '4 free without <trait>': ('free',),
    '... wanted, 0 free (1 disabled by an administrator)': (
        'wanted,',
        'free',
        'by an administrator',
    ),
    '<address> (driver <name>) is published without ...': (
        'is published without',
    ),
    'Access was denied to the following resource: nova_accel:..., which '
    'needs the role <role>': (
        'Access was denied to the following resource:',
        'which needs',
    ),
    "consumer ... has something of Cyborg's providers ..., and no ARQ there": (
        "has something of Cyborg's providers ... and no ARQ there",
    ),
    'the flavor has <key>, which is to be <key>: ask an administrator to '
    'correct it': ('the flavor has', 'ask an administrator to correct it'),
    'device profile <name>: quota exceeded: class:<class>: limit ...': (
        'device profile <name>: quota exceeded:',
    ),
    'its allocation is not moved: Placement does not put ...': (
        'its allocation is not moved:',
        'Placement does not',
    ),
    'Published <N> units of <class>, ... (left out: ...)': (
        'Published',
        'units of',
        '(left out:',
    ),
    'the database of cell <name> on <host> does not answer: ...': (
        'the database of <name> on <host> does not answer:',
    ),
    'the URL of the database of cell <name> ...': (
        'the URL of the database of',
    ),
    'it is being moved: migrating': ('it is being moved',),
    'disabled by an administrator': ('by an administrator',),
    'no NUMA node has': ('NUMA node',),
    'the flavor has both nova_accel:device_profile and '
    'accel:device_profile, ...': ('the flavor has both',),
}

#: The same of Nova.
_JOINED_BY_NOVA = {
    'Failed to create accelerator requests: Invalid response from Cyborg: '
    '<Response [404]>': (
        'Failed to <op> accelerator requests:',
        'Invalid response from Cyborg:',
    ),
    'Scheduling failed: device profile <name>:': ('Scheduling failed:',),
}

#: The modules of Nova whose texts the manual quotes.
_OF_NOVA = (
    'accelerator/cyborg.py',
    'compute/manager.py',
    'exception.py',
    'virt/driver.py',
)

#: Texts of programs that are no part of OpenStack.
_OF_OTHERS = {
    "host doesn't support passthrough of host PCI devices": 'libvirt',
    'Mediated host device assignment requires VFIO support': 'libvirt',
}


def _quotes() -> set[tuple[str, str]]:
    """(page, text) of all literals with four words or more."""
    return {
        (page.name, literal)
        for page in pages.all_pages().values()
        if not page.name.startswith('contributor/')
        for literal in page.literals()
        if len(literal.split()) > 3 and not _OTHERS.match(literal)
    }


class QuotesTest(testtools.TestCase):
    def test_each_is_said_by_a_program(self) -> None:
        """A text of the code that has changed is found by its old words."""
        ours = quotes.Texts((pages.ROOT / 'nova_accel').rglob('*.py'))
        novas = quotes.Texts(
            pathlib.Path(nova.__file__).parent / name for name in _OF_NOVA
        )
        self.assertEqual(
            [],
            sorted(
                f'{page}: {text}'
                for page, text in _quotes()
                if text not in _OF_OTHERS
                and not all(map(ours.has, _JOINED.get(text, (text,))))
                and not all(map(novas.has, _JOINED_BY_NOVA.get(text, (text,))))
            ),
        )

    def test_no_exception_is_left_over(self) -> None:
        quoted = {text for _page, text in _quotes()}
        self.assertEqual(
            set(),
            {*_JOINED, *_JOINED_BY_NOVA, *_OF_OTHERS} - quoted,
        )


class TextsTest(testtools.TestCase):
    """What the code cannot say is not found."""

    def setUp(self) -> None:
        super().setUp()
        directory = self.useFixture(fixtures.TempDir()).path
        path = pathlib.Path(directory, 'code.py')
        path.write_text(
            "f'the device {address} is ' f'gone from {node}'\n"
            "'it is gone: %s' % fault\n"
            "'ARQ %(uuid)s waits'\n"
        )
        self.texts = quotes.Texts([path])

    def test_values(self) -> None:
        for quote in (
            'the device <address> is gone from <node>',
            'the device 0000:81:00.0 is gone from ...',
            'it is gone: the device 0000:81:00.0 is gone from c1',
            'ARQ <uuid> waits',
        ):
            self.assertTrue(self.texts.has(quote), quote)

    def test_other_words(self) -> None:
        for quote in (
            'the card <address> is gone from <node>',
            'the device <address> is lost from <node>',
            'is gone the device from',
            'ARQ <uuid> sleeps',
        ):
            self.assertFalse(self.texts.has(quote), quote)
