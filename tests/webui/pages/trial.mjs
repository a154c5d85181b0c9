// Owns the sentences about one trial: its attempts over time, its checkpoints.
import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { audit, cluster, page, until, untilText } from '../driver.mjs';
import { sql } from '../rows.mjs';
import { kProbe, open } from './filling.mjs';

const kUuid = '11111111-2222-4333-8444-555555555555';

export const trial = [
  [
    'attempts are drawn over time, with the checkpoints that they saved',
    async () => {
      const place = path.join(cluster.directory, 'checkpoints', kUuid);
      mkdirSync(place);
      writeFileSync(path.join(place, 'weights.pt'), 'weights');
      const metadata = JSON.stringify({ note: kProbe }).replace(/'/g, "''");
      sql(`INSERT INTO checkpoints (uuid, trial_id, run, task_id, allocation_id, steps_completed, resources, metadata,
             size, reported)
           SELECT '${kUuid}', 1, 1, t.task_id, a.id, 10, '{"weights.pt": 7, "<img src=x>": 0}', '${metadata}', 7, now()
           FROM allocations a JOIN trials t ON t.id = a.trial_id WHERE t.id = 1 ORDER BY a.run LIMIT 1`);
      await open('trials/1?tab=attempts');
      await page.waitForSelector('figure[data-panel="timeline"] circle.saved');
      assert.ok((await page.$$('figure[data-panel="timeline"] rect')).length >= 1);
      await audit('timeline');
    },
  ],
  [
    'a checkpoint shows its files and metadata as text, and is a start for another experiment',
    async () => {
      await open('experiments/1?tab=checkpoints');
      await page.getByText('batch 10').click();
      await untilText('weights.pt');
      assert.match(await page.textContent('.checkpoint pre'), /<img src=x onerror/);
      assert.equal(await page.$('main img'), null);
      assert.equal(await page.getByRole('link', { name: 'Download' }).getAttribute('href'), `/checkpoints/${kUuid}`);
      await audit('checkpoint');
      await page.getByRole('link', { name: 'Continue from here…' }).click();
      await until((uuid) => document.querySelector('textarea')?.value.includes(`  source_checkpoint_uuid: ${uuid}\n`), kUuid);
      await untilText('Valid: 1 trial');
    },
  ],
  [
    'a checkpoint is deleted after a question',
    async () => {
      await open('trials/1?tab=checkpoints');
      await page.getByText('batch 10').click();
      await page.getByRole('button', { name: `Delete checkpoint ${kUuid}` }).click();
      await page.getByRole('dialog').getByRole('button', { name: 'Delete', exact: true }).click();
      await untilText('Deleted');
      assert.equal(await page.getByRole('link', { name: 'Download' }).count(), 0);
    },
  ],
];
