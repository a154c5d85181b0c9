// Test of pages with several experiments and of edits: comparing, forking, labels and notes, the queue,
// accounts. Debian's chromium against a real cluster.
// Usage: node pages_test.mjs [BUILD_DIR] [--shots DIR]. Ends with `N passed, N failed`.
import { cluster, complaints, run } from './driver.mjs';
import { accounts } from './pages/accounts.mjs';
import { alerts } from './pages/alerts.mjs';
import { bulkActions } from './pages/bulk.mjs';
import { clicking } from './pages/clicking.mjs';
import { changing } from './pages/changing.mjs';
import { comparing } from './pages/comparing.mjs';
import { filling } from './pages/filling.mjs';
import { finding } from './pages/finding.mjs';
import { quotas } from './pages/quotas.mjs';
import { registry } from './pages/registry.mjs';
import { trial } from './pages/trial.mjs';
import { media } from './pages/media.mjs';
import { joining } from './pages/joining.mjs';
import { steering } from './pages/steering.mjs';
import { searching } from './pages/searching.mjs';
import { queueing } from './pages/queueing.mjs';
import { usage } from './pages/usage.mjs';
import { views } from './pages/views.mjs';
import { webhooks } from './pages/webhooks.mjs';
import { workbench } from './pages/workbench.mjs';
import assert from 'node:assert/strict';

cluster.slots = 3;

const ending = [
  [
    'no markup that a user wrote became one, and no script failed',
    async () => {
      assert.deepEqual(complaints, []);
    },
  ],
];

await run([
  ...filling, ...comparing, ...changing, ...queueing, ...usage, ...accounts, ...quotas, ...trial, ...media, ...bulkActions,
  ...registry, ...joining, ...searching, ...workbench, ...webhooks, ...alerts, ...steering, ...clicking, ...finding, ...views,
  ...ending,
]);
