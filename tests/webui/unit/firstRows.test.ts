// The first rows of the list, requested before it is drawn.
import assert from 'node:assert/strict';
import test from 'node:test';
import { firstSearch } from '../../../webui-static/src/workbench/firstRows';

const at = (pathname: string, search = '') => firstSearch({ pathname, search });

test('the list is requested with the order of its address', () => {
  assert.deepEqual(at('/det/experiments'), { text: '', sort: '', filter: '', projectId: 0 });
  assert.equal(at('/det/experiments', '?sort=-startTime&cols=id')?.sort, 'startTime=desc');
});

test('other pages and lists with a query request nothing early', () => {
  assert.equal(at('/det/'), undefined);
  assert.equal(at('/det/experiments/3'), undefined);
  assert.equal(at('/det/experiments', '?q=lr+%3C+1'), undefined);
});
