// Colors of source text, and the file of the submitted code that is shown first.
import assert from 'node:assert/strict';
import test from 'node:test';
import { mainFile } from '../../../webui-static/src/components/CodeView';
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

const shown = (...files: (string | [string, string])[]): string | undefined =>
  mainFile(files.map((file) => (typeof file === 'string' ? [file, ''] : file)).map(([path = '', text]) => ({ path, bytes: new TextEncoder().encode(text) })))?.path;

test('the source of the entrypoint is shown first: a script, a module with a class, a program, a list of words', () => {
  const sources = ['data.py', 'model.cc', 'src/train.py'];
  const of = (entrypoint: string): string | undefined => shown(['const.yaml', `name: a\nentrypoint: ${entrypoint}\nmax_restarts: 0\n`], ...sources);
  assert.deepEqual(['python3 ./src/train.py --lr 1', 'src.train:Trial', './build/model', '\n  - python3\n  - "src/train.py"'].map(of), [
    'src/train.py', 'src/train.py', 'model.cc', 'src/train.py',
  ]);
});

test('without the source of an entrypoint the first source is shown, and without a source none is chosen', () => {
  assert.equal(shown(['const.yaml', 'entrypoint: make run\n'], 'a.txt', 'b.py', 'c.cpp'), 'b.py');
  assert.equal(shown(['const.yaml', 'entrypoint: b.sh\n'], 'model.txt'), undefined);
});
