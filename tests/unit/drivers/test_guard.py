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

import asyncio
import inspect
import logging

import fixtures
import testscenarios
import testtools

from nova_accel import exceptions
from nova_accel.drivers import base as driver_base
from nova_accel.drivers import guard
from nova_accel.model import attach_handle
from nova_accel.model.devices import programmable
from unit.drivers import test_answers

LOG = logging.getLogger(__name__)

HANDLE = test_answers.HANDLE
DEVICE = test_answers.DEVICE
REGION = programmable.Region('region0')

CALLS = {
    'discover': (test_answers.FUNCTION, test_answers.SPEC, None),
    'plug': (HANDLE,),
    'unplug': (HANDLE,),
    'check_migratable': (HANDLE,),
    'migration_facts': ([HANDLE],),
    'loaded': (DEVICE, REGION),
    'program': (DEVICE, REGION, 'path', 1),
    'loaded_shell': (DEVICE,),
    'load_shell': (DEVICE, 'path', 1),
    'check_cleaning': (test_answers.SPEC,),
    'clean': (HANDLE,),
}

ANSWERS = {
    'discover': DEVICE,
    'migration_facts': ({'driver': '550'},),
    'loaded': '6f2a',
    'loaded_shell': '6f2b',
}


class Unspeakable(Exception):
    def __repr__(self):
        raise ValueError('not even that')

    __str__ = __repr__


def _fail(self):
    raise SystemExit(1)


class Driver(driver_base.Driver):
    """Does what ``act`` does, whatever it is asked.

    Each of its methods is made below.
    """

    def discover(self, function, spec, host):
        raise NotImplementedError


def _method(name):
    def method(self, *arguments):
        return self.act(name, *arguments)

    return method


for _name in CALLS:
    setattr(Driver, _name, _method(_name))


class GuardTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.log = self.useFixture(fixtures.FakeLogger())
        self.driver = Driver(None, None, 'uuid')
        self.guard = guard.Guard('acme', lambda: self.driver)

    def have(self, error=None, answer=None):
        """The driver raises, or answers, from now on."""

        def act(name, *arguments):
            self.asked = name, arguments
            if error is not None:
                raise error
            return answer

        self.driver.act = act


class TestMethods(testscenarios.WithScenarios, GuardTestCase):
    scenarios = [(name, {'name': name}) for name in CALLS]

    def call(self):
        return getattr(self.guard, self.name)(*CALLS[self.name])

    def test_it_is_passed_on(self):
        self.have(answer=ANSWERS.get(self.name))
        self.assertEqual(ANSWERS.get(self.name), self.call())
        self.assertEqual((self.name, CALLS[self.name]), self.asked)

    def test_the_drivers_own_refusal(self):
        for _time in range(2):
            self.have(exceptions.DeviceError('the card is stuck'))
            error = self.assertRaises(exceptions.DeviceError, self.call)
            self.assertEqual('the card is stuck', str(error))
        self.assertEqual('', self.log.output)

    def test_a_text_without_an_end(self):
        self.have(exceptions.DeviceError('x' * 10**6))
        error = self.assertRaises(exceptions.DeviceError, self.call)
        self.assertLess(len(str(error)), 2000)

    def test_anything_else(self):
        for raised in (
            OSError(5, 'Input/output error'),
            KeyError('firmware'),
            exceptions.StaleAttempt('newer'),
            SystemExit(1),
            GeneratorExit(),
            StopIteration('no more'),
            asyncio.CancelledError(),
            RecursionError(),
            UnicodeError(),
            Unspeakable(),
        ):
            self.have(raised)
            error = self.assertRaises(exceptions.DeviceError, self.call)
            for text in (
                'driver acme',
                f'{self.name}()',
                type(raised).__name__,
            ):
                self.assertIn(text, str(error))

    def test_what_is_to_end_the_caller(self):
        for kind in (
            KeyboardInterrupt,
            # As those of eventlet, which need not be installed.
            type('Timeout', (BaseException,), {'__module__': 'eventlet.x'}),
            type('Exit', (BaseException,), {'__module__': 'greenlet'}),
        ):
            for ended in (kind, type('Own', (kind,), {})):
                self.have(ended())
                self.assertRaises(ended, self.call)

    def test_ten_megabytes(self):
        """No log has them: neither now nor when the error is logged."""
        text = 'x' * 10_000_000
        noted = exceptions.DeviceError('the card is stuck')
        noted.add_note(text)
        caused = exceptions.DeviceError('the card is stuck')
        caused.__cause__ = OSError(5, text)
        for raised in (
            OSError(5, text),
            KeyError(text),
            ExceptionGroup(text, [OSError(5, text)]),
            exceptions.DeviceError(text),
            exceptions.DeviceError('the card is stuck', public=text),
            type('X' * 10_000_000, (Exception,), {})(),
            noted,
            caused,
        ):
            self.have(raised)
            with fixtures.FakeLogger() as log:
                error = self.assertRaises(exceptions.DeviceError, self.call)
                LOG.error('It failed', exc_info=error)
            self.assertLess(len(error.public), 2000)
            self.assertLess(len(log.output), 20_000, repr(raised)[:50])
            self.assertIn('guard.py', log.output)

    def test_a_refusal_that_cannot_be_told(self):
        for kind in (exceptions.DeviceError, KeyError, BaseException):
            raised = type(
                'Unspeakable', (kind,), {'__str__': _fail, '__repr__': _fail}
            )
            self.have(raised('x'))
            error = self.assertRaises(exceptions.DeviceError, self.call)
            self.assertIn('Unspeakable', str(error))

    def test_each_bug_is_logged_once(self):
        def fail(text):
            self.have(KeyError(text))
            self.assertRaises(exceptions.DeviceError, self.call)

        for _time in range(3):
            fail('firmware')
        self.assertEqual(1, self.log.output.count('Traceback'))
        fail('model')
        self.assertEqual(2, self.log.output.count('Traceback'))
        # And again when it had gone.
        self.have(answer=ANSWERS.get(self.name))
        self.call()
        fail('model')
        self.assertEqual(3, self.log.output.count('Traceback'))

    def test_garbage(self):
        self.have(answer=object())
        if self.name in ANSWERS:
            error = self.assertRaises(exceptions.DeviceError, self.call)
            self.assertIn('object object', str(error))
        else:
            self.call()


class TestGuard(GuardTestCase):
    def test_no_method_is_forgotten(self):
        public = {
            name
            for name, _value in inspect.getmembers(
                driver_base.Driver, inspect.isfunction
            )
            if not name.startswith('_')
        }
        self.assertEqual(public, CALLS.keys())
        self.assertLessEqual(public, vars(guard.Guard).keys())

    def test_no_flag_is_forgotten(self):
        flags = {
            name: value
            for name, value in vars(driver_base.Driver).items()
            if not name.startswith('_') and not callable(value)
        }
        for name, value in flags.items():
            others = {frozenset: frozenset({'mine'}), type(None): 'mine'}
            setattr(self.driver, name, others.get(type(value), value is False))
        guarded = guard.Guard('acme', lambda: self.driver)
        self.assertEqual(
            {name: getattr(self.driver, name) for name in flags},
            {name: getattr(guarded, name) for name in flags},
        )

    def test_a_name_that_cannot_be(self):
        """The contract of discover has one error more."""
        self.have(exceptions.InvalidName('no trait can be made'))
        self.assertRaises(
            exceptions.InvalidName, self.guard.discover, *CALLS['discover']
        )

    def test_one_that_is_not_made(self):
        def fail():
            raise OSError('libacme.so.1')

        for make in (fail, lambda: None, dict, lambda: driver_base.Driver):
            broken = guard.Guard('acme', make)
            self.assertIn('acme', self.log.output)
            self.log.reset_output()
            for name, arguments in CALLS.items():
                error = self.assertRaises(
                    exceptions.DeviceError, getattr(broken, name), *arguments
                )
                self.assertIn('driver acme cannot be used', str(error))
            self.assertEqual('', self.log.output)

    def test_one_with_flags_that_are_none(self):
        self.driver.tells_contents = 'often'
        broken = guard.Guard('acme', lambda: self.driver)
        self.assertFalse(broken.tells_contents)
        error = self.assertRaises(exceptions.DeviceError, broken.plug, HANDLE)
        self.assertIn("tells_contents is 'often'", str(error))

    def test_of_which_device(self):
        self.have(KeyError('x'))
        error = self.assertRaises(
            exceptions.DeviceError,
            self.guard.plug,
            attach_handle.AttachHandle(HANDLE.uuid, HANDLE.address),
        )
        self.assertIn(str(HANDLE.address), str(error))


class TestMigrationFacts(GuardTestCase):
    def test_what_is_no_answer(self):
        for answer in (
            None,
            {},
            [{}],
            (),
            ({}, {}),
            ({'driver': 550},),
            ({'driver': 'x' * 5000},),
            ({str(number): '' for number in range(33)},),
        ):
            self.have(answer=answer)
            error = self.assertRaises(
                exceptions.DeviceError, self.guard.migration_facts, [HANDLE]
            )
            self.assertIn('migration_facts()', str(error))
