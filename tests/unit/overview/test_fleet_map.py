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


import dataclasses
import datetime
import html.parser
import os
import pathlib
import shutil
import subprocess
import zlib

import fixtures
import testtools

from nova_accel.model import finding
from nova_accel.model.fleet import disagreement
from nova_accel.model.fleet import fleet
from nova_accel.model.fleet import fleet_sources
from nova_accel.model.units import unit_state
from nova_accel.overview import fleet_map
from nova_accel.testing import simulated_fleet

NOW = datetime.datetime(2026, 11, 23, 1, 30, tzinfo=datetime.UTC)

#: Tenants, devices and hosts can say such a thing.
HOSTILE = '"><script src=//evil.example></script><b id=\'evil\'>\u202e\x1b[2J'

_BROWSERS = ('chromium', 'chromium-browser', 'google-chrome')


class _Reader(html.parser.HTMLParser):
    """Which elements are begun, and what texts and titles say."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.begun: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(
        self, tag: str, attrs: list[tuple[str, str | None]]
    ) -> None:
        self.begun.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    @property
    def text(self) -> str:
        return ' '.join(' '.join(self.texts).split())

    def titles(self) -> str:
        return '\n'.join(
            attributes.get('title') or '' for _tag, attributes in self.begun
        )

    def of_class(self, name: str) -> list[dict[str, str | None]]:
        return [
            attributes
            for _tag, attributes in self.begun
            if name in (attributes.get('class') or '').split()
        ]


def join(simulated: simulated_fleet.SimulatedFleet) -> fleet.Fleet:
    return fleet.join(simulated.ours, simulated.nova, simulated.placement)


class TestDraw(testtools.TestCase):
    def draw(self, simulated: simulated_fleet.SimulatedFleet) -> _Reader:
        return _Reader(fleet_map.draw(join(simulated), NOW))

    def test_an_empty_fleet(self) -> None:
        found = self.draw(simulated_fleet.SimulatedFleet(0))
        self.assertIn('0 devices on 0 hosts, 0 units', found.text)
        self.assertIn('As of 2026-11-23 01:30 UTC', found.text)

    def test_it_needs_nothing_else(self) -> None:
        simulated = simulated_fleet.SimulatedFleet(48)
        begun = self.draw(simulated).begun
        self.assertEqual(
            set(),
            {tag for tag, _attributes in begun}
            & {'script', 'link', 'img', 'iframe', 'object', 'base'},
        )
        for _tag, attributes in begun:
            self.assertEqual(
                [],
                [name for name in attributes if name.startswith('on')],
            )
            self.assertTrue((attributes.get('href') or '#').startswith('#'))
            self.assertNotIn('src', attributes)

    def test_everything_is_escaped(self) -> None:
        simulated = simulated_fleet.SimulatedFleet(8)
        (device, *_rest) = simulated.devices.values()
        (host,) = simulated.hosts
        simulated.hosts = [host._replace(name=HOSTILE)]
        simulated.devices = {
            device.uuid: device._replace(
                hostname=HOSTILE,
                product=HOSTILE,
                fault=HOSTILE,
                address=HOSTILE,
            )
        }
        simulated.units = [
            unit._replace(
                part=HOSTILE,
                resource_class=HOSTILE,
                condition=unit.condition.__class__(
                    True, 'enabled', HOSTILE, True, None
                ),
                arq=unit.arq._replace(hostname=HOSTILE),
            )
            for unit in simulated.units
            if unit.device_uuid == device.uuid and unit.arq is not None
        ]
        self.assertNotEqual([], simulated.units)
        simulated.servers = {
            uuid: fleet_sources.FleetServer(
                HOSTILE, 'active', name=HOSTILE, flavor=HOSTILE, image=HOSTILE
            )
            for uuid in simulated.servers
        }
        text = fleet_map.draw(join(simulated), NOW)
        found = _Reader(text)
        self.assertNotIn('script', [tag for tag, _attributes in found.begun])
        self.assertNotIn(
            'evil', [attributes.get('id') for _tag, attributes in found.begun]
        )
        self.assertNotIn('<script', text)
        for character in ('\x1b', '\u202e'):
            self.assertNotIn(character, text)
        self.assertIn('<script', found.text)
        self.assertIn('<script', found.titles())

    def test_each_unit_is_drawn(self) -> None:
        simulated = simulated_fleet.SimulatedFleet(96)
        found = self.draw(simulated)
        titles = found.titles()
        for unit in simulated.units:
            self.assertIn(unit.uuid, titles)
        for uuid, server in simulated.servers.items():
            self.assertIn(uuid, titles)
            self.assertIn(server.name, found.text)
        self.assertEqual(96, len(found.of_class('bar')))

    def test_drift(self) -> None:
        simulated = simulated_fleet.SimulatedFleet(2000)
        simulated.disagree()
        found = self.draw(simulated)
        self.assertIn('Where the sources disagree: 8', found.text)
        for kind, whose in simulated.made.items():
            self.assertIn(kind, found.text)
            self.assertIn(whose, found.titles())
        outlined = {
            uuid for each in join(simulated).compared for uuid in each.devices
        }
        # One more is in the key.
        self.assertEqual(len(outlined) + 1, len(found.of_class('wrong')))
        anchors = {attributes.get('id') for _tag, attributes in found.begun}
        links = [
            attributes['href']
            for _tag, attributes in found.begun
            if 'href' in attributes
        ]
        self.assertEqual(len(disagreement.Subject) - 1, len(links))
        for link in links:
            self.assertIn((link or '').removeprefix('#'), anchors)

    def test_findings(self) -> None:
        simulated = simulated_fleet.SimulatedFleet(2000)
        healthy = self.draw(simulated)
        self.assertIn('What hosts have found: 0', healthy.text)
        simulated.find(is_repaired=True)
        repaired = self.draw(simulated)
        self.assertEqual(
            self.number_to_look_at(healthy), self.number_to_look_at(repaired)
        )
        simulated.findings = []
        simulated.find()
        found = self.draw(simulated)
        self.assertIn(
            f'What hosts have found: {len(finding.Kind)}', found.text
        )
        for each in simulated.findings:
            for words in (each.kind, each.words, each.remedy):
                self.assertIn(words, found.text)
        self.assertEqual(
            self.number_to_look_at(healthy)
            + len({each.hostname for each in simulated.findings}),
            self.number_to_look_at(found),
        )
        # One more is in the key.
        self.assertEqual(
            len(simulated.findings) + 1, len(found.of_class('wrong'))
        )

    def number_to_look_at(self, found: _Reader) -> int:
        return int(found.text.split('Hosts to look at: ')[1].split()[0])

    def test_what_hosts_say_is_escaped(self) -> None:
        simulated = simulated_fleet.SimulatedFleet(400)
        simulated.find()
        simulated.findings = [
            dataclasses.replace(
                found, kind=HOSTILE, words=HOSTILE, device=HOSTILE
            )
            for found in simulated.findings
        ]
        text = fleet_map.draw(join(simulated), NOW)
        self.assertNotIn('<script', text)
        self.assertNotIn('\x1b', text)
        self.assertIn('<script', _Reader(text).text)

    def test_hosts_to_look_at(self) -> None:
        simulated = simulated_fleet.SimulatedFleet(2000)
        found = self.draw(simulated)
        # Each 40th has a fault, each 80th failed cleaning or is silent.
        self.assertIn('Hosts to look at: 12 of 250', found.text)
        for words in ('silent', '1 faulty', '1 unclean'):
            self.assertIn(words, found.text)
        # Somebody wants that.
        self.assertNotIn('1 drained', found.text.split('The other hosts')[0])

    def test_states_have_letters(self) -> None:
        self.assertEqual(
            {means.shown for means in unit_state.MEANINGS.values()},
            set(fleet_map.LETTERS),
        )
        letters = [letter for letter in fleet_map.LETTERS.values() if letter]
        self.assertEqual(len(letters), len(set(letters)))

    def test_whether_placement_was_asked(self) -> None:
        simulated = simulated_fleet.SimulatedFleet(8)
        self.assertIn('Placement was asked', self.draw(simulated).text)
        self.assertIn(
            'Placement was not asked',
            fleet_map.draw(fleet.join(simulated.ours, simulated.nova), NOW),
        )


class TestScreenshots(testtools.TestCase):
    """A browser draws the map of 2,000 devices, in light and dark.

    If NOVA_ACCEL_SCREENSHOTS names a directory, they are left there.
    """

    def setUp(self) -> None:
        super().setUp()
        found = next(filter(None, map(shutil.which, _BROWSERS)), None)
        if found is None:
            self.skipTest('there is no Chromium')
        self.browser = found
        self.directory = pathlib.Path(
            os.environ.get('NOVA_ACCEL_SCREENSHOTS')
            or self.useFixture(fixtures.TempDir()).path
        )

    def shoot(self, name: str, url: str, scheme: int) -> bytes:
        """:param scheme: Chromium's number, 0 for dark and 1 for light"""
        picture = self.directory / name
        picture.unlink(missing_ok=True)
        done = subprocess.run(
            [
                self.browser,
                '--headless',
                # Tests may run as root.
                '--no-sandbox',
                '--disable-gpu',
                '--hide-scrollbars',
                f'--user-data-dir={self.useFixture(fixtures.TempDir()).path}',
                f'--blink-settings=preferredColorScheme={scheme}',
                '--window-size=1240,1850',
                f'--screenshot={picture}',
                url,
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=120,
            check=False,
        )
        self.assertTrue(picture.exists(), done.stdout)
        return picture.read_bytes()

    def test_light_and_dark(self) -> None:
        simulated = simulated_fleet.SimulatedFleet(2000)
        simulated.disagree()
        text = fleet_map.draw(join(simulated), NOW)
        page = self.directory / 'fleet-map.html'
        # A browser shows no closed host's table.
        page.write_text(
            text.replace(
                '<details class="host"', '<details open class="host"', 2
            )
        )
        light = self.shoot('fleet-map.png', page.as_uri(), 1)
        dark = self.shoot('fleet-map-dark.png', page.as_uri(), 0)
        self.assertEqual((255, 255, 255), _first_pixel(light))
        self.assertEqual((0x14, 0x17, 0x1B), _first_pixel(dark))
        # A blank page is much smaller.
        for picture in (light, dark):
            self.assertGreater(len(picture), 100_000)


def _first_pixel(picture: bytes) -> tuple[int, ...]:
    """The colour of the upper left corner of a PNG.

    No filter of PNG changes the first pixel of the first line.
    """
    assert picture.startswith(b'\x89PNG\r\n\x1a\n')
    at, data = 8, b''
    while at < len(picture):
        length = int.from_bytes(picture[at : at + 4], 'big')
        if picture[at + 4 : at + 8] == b'IDAT':
            data += picture[at + 8 : at + 8 + length]
        at += length + 12
    # The first byte names the filter of the line.
    return tuple(zlib.decompress(data)[1:4])
