// The line of a failed run that names its error, and the trial with that run.
import assert from 'node:assert/strict';
import test from 'node:test';
import { endText, errorContext, errorLine, failedTrial, namesError } from '../../../webui-static/src/failure';
import type { Trial } from '../../../webui-static/src/wire';

test('of a Python traceback it is the exception, not the carets', () => {
  const reason = `exit code 1
    loss = model(x)
           ^^^^^^^^
  File "train.py", line 9, in forward
    return self.net(x) @ y
           ~~~~~~~~~~~~^~~
RuntimeError: mat1 and mat2 shapes cannot be multiplied
           ^^^^`;
  assert.equal(errorLine(reason), 'RuntimeError: mat1 and mat2 shapes cannot be multiplied');
  assert.equal(errorLine('exit code 1\ntorch.OutOfMemoryError: CUDA out of memory'), 'torch.OutOfMemoryError: CUDA out of memory');
});

test('of a compiler it is the first error', () => {
  const reason = "exit code 1\nmodel_def.cpp:3:1: error: 'x' was not declared\nmodel_def.cpp:9:1: error: expected ';'\n1 error generated";
  assert.equal(errorLine(reason), "model_def.cpp:3:1: error: 'x' was not declared");
});

test('of a C++ exception it is its text', () => {
  assert.equal(
    errorLine("signal 6 (Aborted)\nterminate called after throwing an instance of 'std::runtime_error'\n  what():  no data\n"),
    'what():  no data',
  );
});

test('of a script of Node it is the error, not the version below', () => {
  const reason = "exit code 1\nError: connect ECONNREFUSED 127.0.0.1:8080\n    at emit (node:net:1555:16) {\n  code: 'ECONNREFUSED'\n}\nNode.js v20.20.2";
  assert.equal(errorLine(reason), 'Error: connect ECONNREFUSED 127.0.0.1:8080');
  assert.equal(errorLine("exit code 1\n    port: 8080\n  }\n}\nNode.js v20.20.2"), 'port: 8080');
});

test('otherwise it is the last line of text, or the exit', () => {
  assert.equal(errorLine('exit code 3\nfirst\nlast words\n^^^'), 'last words');
  assert.equal(errorLine('exit code 3'), 'exit code 3');
});

test('an error at the end is not repeated below itself', () => {
  assert.equal(errorContext('exit code 1\n  File "a.py"\nValueError: bad\n'), '  File "a.py"');
  assert.equal(errorContext('exit code 1\nValueError: bad\n'), '');
  assert.equal(errorContext('exit code 1\nValueError: bad\n^^^'), 'ValueError: bad\n^^^');
  assert.equal(errorContext('exit code 3'), '');
  assert.deepEqual(['exit code 1\nValueError: bad\n', 'exit code 3', 'a.cpp:1:2: error: no x\n  x;'].map(endText), ['exit code 1', '', '']);
});

test('a line of a log names an error as an exception does', () => {
  const lines = ['RuntimeError: CUDA out of memory', 'torch.OutOfMemoryError: full', 'KeyboardInterrupt', 'Error rate: 0.3', '  ValueError: indented', 'loss 0.2'];
  assert.deepEqual(lines.map(namesError), [true, true, true, false, false, false]);
});

test('a failed experiment is explained by its first failed trial', () => {
  const of = (id: number, state: string, exitReason: string): Trial => ({ id, state, exitReason }) as Trial;
  const trials = [of(1, 'STATE_COMPLETED', ''), of(2, 'STATE_ERROR', ''), of(3, 'STATE_ERROR', 'exit code 1'), of(4, 'STATE_ERROR', 'exit code 1')];
  assert.equal(failedTrial({ state: 'STATE_ERROR' }, trials)?.id, 3);
  assert.equal(failedTrial({ state: 'STATE_COMPLETED' }, trials), undefined);
});
