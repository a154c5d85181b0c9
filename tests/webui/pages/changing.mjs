// Checks of edits on an experiment's page: text, notes, end, successors.
import assert from 'node:assert/strict';
import { audit, cluster, page, until, untilText } from '../driver.mjs';
import { PROBE, more, open } from './filling.mjs';

const actions = () => page.getByRole('group', { name: 'Actions' });
const state = (wanted) => until((text) => document.querySelector('.state-line .state')?.textContent === text, wanted);
const editor = () => page.getByLabel('Configuration', { exact: true });
const problems = () => page.getByRole('list', { name: 'Problems' });
const replace = async (from, to) => {
  const text = await editor().inputValue();
  assert.ok(text.includes(from), text);
  await editor().fill(text.replace(from, to));
};

export const changing = [
  [
    'name, description and labels are changed in place, and are text',
    async () => {
      await open('experiments/1');
      await state('Running');
      await more();
      await actions().getByRole('button', { name: 'Edit…' }).click();
      const dialog = page.getByRole('dialog', { name: 'Edit experiment 1' });
      await dialog.getByLabel('Name').fill(`renamed ${PROBE}`);
      await dialog.getByLabel('Description').fill('described');
      await dialog.getByLabel('Labels').fill(`good, ${PROBE}, good`);
      assert.ok(!(await actions().getByRole('button', { name: 'Move…' }).isVisible()), 'the menu is behind the dialog');
      await audit('edit');
      await dialog.getByRole('button', { name: 'Save' }).click();
      await until((text) => document.querySelector('h1')?.textContent === text, `renamed ${PROBE}`);
      assert.equal(await page.locator('details.menu[open]').count(), 0);
      const labels = await page.$$eval('.labels .tag', (all) => all.map((one) => [one.textContent, one.title]));
      assert.deepEqual(labels, [['good', 'good'], ['+1', PROBE]]);
    },
  ],
  [
    'notes are Markdown, and no markup, script or dangerous link comes through',
    async () => {
      await open('experiments/1?tab=notes');
      await page.getByRole('button', { name: 'Edit notes' }).click();
      await page
        .getByLabel('Notes, in Markdown')
        .fill(`# What\n\n**bold** ${PROBE}\n\n- [page](https://example.org/)\n- [evil](javascript:alert(1))\n\n\`\`\`\n<script>window.pwned=1</script>\n\`\`\``);
      await audit('notes-edit');
      await page.getByRole('button', { name: 'Save' }).click();
      await page.getByRole('button', { name: 'Edit notes' }).waitFor();
      await page.reload();
      await page.locator('.markdown strong', { hasText: 'bold' }).waitFor();
      assert.deepEqual(await page.$$eval('.markdown a', (all) => all.map((one) => one.getAttribute('href'))), ['https://example.org/']);
      assert.equal(await page.$('main img, main script'), null);
      assert.equal(await page.evaluate(() => window.pwned), undefined);
      await audit('notes');
    },
  ],
  [
    'a fork is checked while typing: each mistake at its line, then what it would train',
    async () => {
      await actions().getByRole('link', { name: 'Fork…' }).click();
      await page.waitForURL('**/experiments/1/fork');
      await untilText('Valid: 1 trial');
      await replace('max_restarts: 1', 'max_restarts: many');
      await untilText('1 problem');
      await page.getByRole('list', { name: 'Problems' }).getByText('max_restarts').waitFor();
      assert.equal(await page.locator('.editor-bad').textContent(), '14\n');
      assert.ok(await page.getByRole('button', { name: 'Create experiment' }).isDisabled());
      await page.getByRole('list', { name: 'Problems' }).getByRole('button').click();
      assert.match(await page.evaluate(() => document.activeElement.value.slice(document.activeElement.selectionStart, document.activeElement.selectionEnd)), /max_restarts: many/);
      await audit('fork-problem');
      await page.reload();
      await untilText('1 problem');
      await replace('max_restarts: many', 'max_restarts: 2');
      await untilText('Valid: 1 trial');
      await page.getByRole('region', { name: 'Changes against experiment 1' }).waitFor();
      await audit('fork');
    },
  ],
  [
    'what is valid becomes an experiment, with the code of the first',
    async () => {
      await replace('learning_rate: 0.1', 'learning_rate: 0.7');
      await until(() => document.querySelector('.check-result')?.textContent.startsWith('Valid'));
      await editor().press('Control+Enter');
      await page.waitForURL('**/det/experiments/4');
      await untilText('Forked from');
      await open('experiments/4?tab=code');
      await page.getByRole('button', { name: 'model.txt' }).waitFor();
      await open('trials/1');
      await more();
      await page.getByRole('link', { name: 'Continue in a new experiment…' }).click();
      await page.waitForURL('**/experiments/1/fork?trial=1');
      await until(() => document.querySelector('textarea')?.value.includes('  source_trial_id: 1\n'));
    },
  ],
  [
    'Kill ends it; then it can be continued, archived, moved and deleted, each after a question',
    async () => {
      await open('experiments/4');
      await more();
      await actions().getByRole('button', { name: 'Kill…' }).click();
      await page.getByRole('dialog').getByRole('button', { name: 'Kill', exact: true }).click();
      await state('Canceled');
      await more();
      await actions().getByRole('button', { name: 'Archive', exact: true }).click();
      await actions().getByRole('button', { name: 'Unarchive' }).waitFor();
      await audit('ended');
      await actions().getByRole('button', { name: 'Unarchive' }).click();
      await actions().getByRole('button', { name: 'Archive', exact: true }).waitFor();
      await actions().getByRole('link', { name: 'Continue…' }).click();
      await page.waitForURL('**/experiments/4/continue');
      await page.getByLabel('Train until').fill('3000000');
      await page.getByText('Changes as YAML').click();
      const override = page.getByLabel('Changes to the configuration');
      assert.match(await override.inputValue(), /max_length: \{batches: 3000000\}/);
      await page.getByLabel('Train until').fill('2000000');
      assert.match(await override.inputValue(), /max_length: \{batches: 2000000\}/);
      const goOn = page.getByRole('button', { name: 'Continue experiment' });
      await untilText(/Valid: [\d,]+ more batches/);
      await override.fill('searcher: {max_length: {batches: 5}}');
      await problems().getByText('can only grow').waitFor();
      assert.ok(await goOn.isDisabled());
      await override.fill('searcher:\n  max_length: {batches: 5}\n  name: grid\nresources: {slots_per_trial: 2}');
      await untilText('2 problems');
      assert.equal(await problems().getByText('fork it instead').count(), 2);
      assert.deepEqual(await page.locator('.editor-bad').allTextContents(), ['3\n', '4\n']);
      assert.equal(await page.locator('.editor-mark').count(), 2);
      await audit('continue');
      await override.fill('searcher: {max_length: {batches: 2000000}}');
      await untilText(/Valid: [\d,]+ more batches/);
      assert.match(await cluster.det(['experiment', 'describe', '4', '--json']), /STATE_CANCELED/);
      await open('experiments/4');
      await more();
      await actions().getByRole('button', { name: 'Delete…' }).click();
      await page.getByRole('dialog').getByRole('button', { name: 'Keep it' }).click();
      await more();
      await actions().getByRole('button', { name: 'Delete…' }).click();
      await page.getByRole('dialog').getByRole('button', { name: 'Delete', exact: true }).click();
      await page.waitForURL('**/det/experiments');
      await until(() => document.querySelectorAll('tbody tr[data-id]').length === 3);
      const left = await cluster.det(['experiment', 'list', '--json']);
      assert.ok(!/"id": ?4\b/.test(left), left);
    },
  ],
];
