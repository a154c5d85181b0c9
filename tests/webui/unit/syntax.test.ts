// Colors of source text.
import assert from 'node:assert/strict';
import test from 'node:test';
import { colored, inLines } from '../../../webui-static/src/syntax';

const kinds = (path: string, text: string): Record<string, string> =>
  Object.fromEntries(colored(path, text).filter(({ kind }) => kind !== 'plain').map(({ kind, text: own }) => [own, kind]));

test('parts of C++ are comments over lines, directives, raw strings, numbers and keywords', () => {
  const text = '#include <det/det.h>\n/* two\nlines */ const double rate = 1\'000.5e-3f; // end\nauto s = R"x(a " b)x"; char c = \'\\\'\'; int if_not;';
  const found = kinds('src/trial.h', text);
  assert.deepEqual(found, {
    '#include': 'word',
    '/* two\nlines */': 'comment',
    const: 'key',
    double: 'key',
    "1'000.5e-3f": 'number',
    '// end': 'comment',
    auto: 'key',
    'R"x(a " b)x"': 'string',
    char: 'key',
    "'\\''": 'string',
    int: 'key',
  });
});

test('parts of Python are docstrings, prefixed strings and comments; a hash in a string is no comment', () => {
  const found = kinds('model.py', 'def f(x):\n  """Two\n  lines"""\n  return rf"# {x}" + x1 # why\n');
  assert.deepEqual(found, { def: 'key', '"""Two\n  lines"""': 'string', return: 'key', 'rf"# {x}"': 'string', '# why': 'comment' });
});

test('the parts together are the text, also of broken and of unknown files', () => {
  const broken = 'x = "open\n/* never closed\n\'\'\'"""` 0x # \\ é 🙂 <b>\n';
  for (const path of ['a.cpp', 'a.py', 'a.ts', 'a.sh', 'CMakeLists.txt', 'a.yaml', 'a.json', 'Dockerfile', 'notes.txt', 'a.constructor', '.toString'])
    assert.equal(colored(path, broken).map((part) => part.text).join(''), broken, path);
  assert.deepEqual(colored('a.constructor', broken), [{ kind: 'plain', text: broken }]);
});

test('YAML has the colors of configurations', () => {
  assert.deepEqual(kinds('const.yaml', 'name: mnist\nlr: 0.1 # small\n'), { name: 'key', lr: 'key', '0.1': 'number', '# small': 'comment' });
});

test('a comment over lines has a part in each of them, and no line is lost', () => {
  const text = 'int a; /* one\n\n two */ int b;\n';
  const lines = inLines(colored('a.cc', text));
  assert.deepEqual(lines.map((line) => line.map((part) => part.text).join('')), text.split('\n'));
  assert.deepEqual(lines.map((line) => line.some(({ kind }) => kind === 'comment')), [true, false, true, false]);
});
