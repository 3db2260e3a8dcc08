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

import ast
import inspect
import pathlib
import pickle
import re

import testtools

import nova_accel
from nova_accel import exceptions

CLASSES = {
    name: each
    for name, each in vars(exceptions).items()
    if inspect.isclass(each) and each.__module__ == exceptions.__name__
}


def aliases(tree):
    """The names by which a module knows nova_accel.exceptions."""
    return {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == 'nova_accel'
        for alias in node.names
        if alias.name == 'exceptions'
    }


def made(value, known):
    """The class of ours that an expression is, or is an instance of."""
    if isinstance(value, ast.Call):
        value = value.func
    if isinstance(value, ast.Attribute) and value.attr == 'for_all':
        value = value.value
    if (
        isinstance(value, ast.Attribute)
        and isinstance(value.value, ast.Name)
        and value.value.id in known
    ):
        return value.attr
    return None


def raised_in(source):
    """The names of our exceptions that a module raises.

    Also ``raise refuse(...)``, where ``refuse`` is a function of the same
    module that returns one.
    """
    tree = ast.parse(source)
    known = aliases(tree)
    returned = {}
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef):
            returned[function.name] = {
                made(node.value, known)
                for node in ast.walk(function)
                if isinstance(node, ast.Return)
            }
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise):
            found.add(made(node.exc, known))
            if isinstance(node.exc, ast.Call):
                name = getattr(node.exc.func, 'id', None) or getattr(
                    node.exc.func, 'attr', None
                )
                found |= returned.get(name, set())
    return found - {None}


def shipped():
    """The modules of the installed package, without its test fixtures."""
    [root] = map(pathlib.Path, nova_accel.__path__)
    return [
        path
        for path in sorted(root.rglob('*.py'))
        if path.relative_to(root).parts[0] != 'testing'
    ]


#: What names something that tenants do not know, in an expression.
_SECRETS = (
    'address',
    'device_uuid',
    'functions',
    'host',
    'instance',
    'node',
    'project',
    'rp_uuid',
    'uuid',
)

#: What tells a tenant of others.
_NEIGHBOURS = re.compile('(other|another|other\'s) (project|tenant|server)')

#: Expressions that name only what the tenant itself has or has named.
_OWN = {
    # An ARQ of the project, and the instance that has it.
    "row['uuid']",
    "row['instance_uuid']",
    # For how long no one knows anything of some host.
    'CONF.nova_accel.host_silence_s',
}


def public_texts(source):
    """The expressions by which a module says what tenants read."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call):
            if getattr(node.func, 'attr', None) == 'for_all':
                yield from node.args[:1]
            for keyword in node.keywords:
                if keyword.arg == 'public':
                    yield keyword.value


def told_too_much(text):
    """What of an expression a tenant must not read."""
    found = []
    for node in ast.walk(text):
        if isinstance(node, ast.FormattedValue):
            shown = ast.unparse(node.value)
            if shown not in _OWN and any(each in shown for each in _SECRETS):
                found.append(shown)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found += [match[0] for match in _NEIGHBOURS.finditer(node.value)]
    return found


class TestExceptions(testtools.TestCase):
    def test_no_public_text_names_what_is_not_the_tenants(self):
        for path in shipped():
            for text in public_texts(path.read_text('utf-8')):
                self.assertEqual(
                    [], told_too_much(text), f'{path}:{text.lineno}'
                )

    def test_no_default_does(self):
        for each in CLASSES.values():
            if each.PUBLIC is not None:
                self.assertIsNone(_NEIGHBOURS.search(each.PUBLIC), each)

    def test_every_exception_is_raised_somewhere(self):
        raised = set().union(
            *(raised_in(path.read_text('utf-8')) for path in shipped())
        )
        # The base of all is there to be caught.
        self.assertEqual(set(), set(CLASSES) - raised - {'AcceleratorError'})

    def test_nothing_is_raised_that_does_not_exist(self):
        for path in shipped():
            self.assertLessEqual(
                raised_in(path.read_text('utf-8')), set(CLASSES), path
            )

    def test_all_can_be_caught_as_one(self):
        for each in CLASSES.values():
            self.assertTrue(issubclass(each, exceptions.AcceleratorError))
            self.assertFalse(issubclass(each, ValueError))

    def test_families(self):
        """What the API translates to one HTTP status stays together."""

        def family(base):
            return {
                each.__name__
                for each in CLASSES.values()
                if issubclass(each, base)
            } - {base.__name__}

        self.assertEqual(
            {'FarAttempt', 'InvalidDeviceProfile', 'InvalidName'},
            family(exceptions.InvalidRequest),
        )
        self.assertEqual(
            {
                'StaleAttempt',
                'NoAssignment',
                'AcceleratorsBusy',
                'BitstreamRefused',
                'BitstreamUnusable',
                'InvalidTransition',
            },
            family(exceptions.Conflict),
        )
        self.assertEqual({'OverQuota'}, family(exceptions.NotAllowed))
        self.assertEqual({'BitstreamNotFound'}, family(exceptions.NotFound))
        self.assertEqual(
            {'CyborgAgentUnavailable', 'NoAnswerInTime', 'TooBusy'},
            family(exceptions.ServiceUnavailable),
        )

    def test_each_says_what_it_means(self):
        for each in CLASSES.values():
            self.assertTrue(each.__doc__, each)
            self.assertEqual('the culprit', str(each('the culprit')))

    def test_no_text_forges_a_line_of_a_log(self):
        """Nova logs them, too."""
        words = 'x\nCRITICAL\x1b[2J\x85\u2028\u202e\ud800'
        for each in CLASSES.values():
            for fault in (
                each(words),
                each(words, public=words),
                each.for_all(words),
            ):
                self.assertTrue(str(fault).isprintable(), fault)
                self.assertTrue(fault.public.isprintable(), fault)
                self.assertIn('CRITICAL', str(fault))

    def test_what_tenants_read_is_said_apart(self):
        """But for what has only the words of who asks."""
        own = {
            exceptions.InvalidRequest,
            exceptions.InvalidDeviceProfile,
            exceptions.NotFound,
            exceptions.NotAllowed,
            exceptions.OverQuota,
            exceptions.InvalidTransition,
        }
        for each in CLASSES.values():
            fault = each('0000:81:00.0 of compute-1')
            self.assertEqual(each in own, fault.public == str(fault), each)
            for fault in (
                each('compute-1', public='why'),
                pickle.loads(pickle.dumps(each('compute-1', public='why'))),
            ):
                self.assertEqual(
                    ('compute-1', 'why'), (str(fault), fault.public)
                )
            self.assertEqual('why', each.for_all('why').public)


class TestPublicTexts(testtools.TestCase):
    """The search itself: what it would miss would pass unseen."""

    def told(self, source):
        return [
            found
            for text in public_texts(source)
            for found in told_too_much(text)
        ]

    def test_found(self):
        for source, expected in (
            ('E("x", public=f"{row.hostname} is away")', 'row.hostname'),
            ('E.for_all(f"{found[\'device_uuid\']} is")', None),
            ('E("x", public=("it" f" is {handle.address}"))', None),
            (
                'E("x", public="a server of another project has it")',
                'another project',
            ),
        ):
            found = self.told(source)
            self.assertEqual(1, len(found), source)
            self.assertIn(expected or found[0], found)

    def test_not_found(self):
        for source in (
            'E(f"{row.hostname} is away")',
            'E(f"{row.hostname}", public="it is away")',
            'E.for_all(f"ARQ {row[\'uuid\']} is bound")',
            'E("x", public=f"limit {limit}")',
        ):
            self.assertEqual([], self.told(source), source)


class TestRaisedIn(testtools.TestCase):
    """The search itself: what it would miss would pass unseen."""

    HEAD = 'from nova_accel import exceptions\n'

    def test_raised(self):
        for text in (
            'raise exceptions.NotFound("x")',
            'raise exceptions.NotFound',
            'raise exceptions.NotFound("x") from None',
            'raise exceptions.NotFound.for_all("x")',
            'def f():\n    return exceptions.NotFound("x")\nraise f()',
        ):
            self.assertEqual({'NotFound'}, raised_in(self.HEAD + text))
        self.assertEqual(
            {'NotFound'},
            raised_in(
                'from nova_accel import exceptions as e\nraise e.NotFound()'
            ),
        )

    def test_not_raised(self):
        for text in (
            'try:\n    f()\nexcept exceptions.NotFound:\n    raise',
            'STATUS = {exceptions.NotFound: 404}',
            'def f():\n    return exceptions.NotFound("x")',
            'raise ValueError(exceptions.NotFound)',
        ):
            self.assertEqual(set(), raised_in(self.HEAD + text))
        self.assertEqual(
            set(),
            raised_in(
                'from keystoneauth1 import exceptions\n'
                'raise exceptions.NotFound()'
            ),
        )
