// Checks of webhooks: created, tested, changed, deleted.
import assert from 'node:assert/strict';
import { audit, page, until, untilText } from '../driver.mjs';
import { open } from './filling.mjs';

const dialog = () => page.getByRole('dialog');
const row = () => page.getByRole('region', { name: 'Webhooks' }).locator('tbody tr');

export const webhooks = [
  [
    'a webhook is made with its triggers, tested, moved and deleted; what is said of it is text',
    async () => {
      await open('webhooks');
      await untilText('det webhook create');
      await page.getByRole('button', { name: 'New webhook…' }).click();
      // A check box and its words are one line.
      const heights = await dialog().locator('label:has(input[type="checkbox"])').evaluateAll((all) => all.map((one) => one.offsetHeight));
      assert.ok(heights.length === 6 && Math.max(...heights) < 28, heights.join());
      await dialog().getByLabel('URL').fill('not an address');
      await dialog().getByRole('textbox', { name: 'Name' }).fill('nightly');
      await dialog().getByLabel('Completed').check();
      await dialog().getByLabel('Notify when a log line matches').fill('<img src=x>');
      await dialog().getByLabel('Threshold').fill('many');
      await dialog().getByRole('button', { name: 'Create', exact: true }).click();
      await dialog().getByRole('alert').getByText('Name the metric of the threshold.').waitFor();
      await dialog().getByLabel('Metric', { exact: true }).fill('loss');
      await dialog().getByRole('button', { name: 'Create', exact: true }).click();
      await dialog().getByRole('alert').getByText('The threshold of the metric must be a number.').waitFor();
      await dialog().getByLabel('Threshold').fill('2.5');
      await dialog().getByRole('button', { name: 'Create', exact: true }).click();
      await dialog().getByRole('alert').getByText(/^URL must begin with http/).waitFor();
      // The control is marked a moment after the message.
      await dialog().getByLabel('URL').and(page.locator('[aria-invalid="true"]')).waitFor();
      const [field, note] = await Promise.all([dialog().getByLabel('URL').boundingBox(), dialog().getByRole('alert').boundingBox()]);
      assert.ok(note.y - field.y - field.height < 16, `${note.y} below ${field.y}`);
      await audit('webhook-refused');
      await dialog().getByLabel('URL').fill('https://hooks.invalid/hook');
      await dialog().getByRole('button', { name: 'Create', exact: true }).click();
      await row().getByText('Completed, Error, Log: <img src=x>, loss > 2.5').waitFor();
      assert.equal(await page.$('main img'), null);
      // The host does not exist: the page shows it below the row.
      await page.getByRole('button', { name: 'Test nightly' }).click();
      await page.getByRole('alert').getByText(/^Test failed: Could not resolve/).waitFor();
      await audit('webhooks');
      await page.getByRole('button', { name: 'Edit nightly' }).click();
      await dialog().getByLabel('URL').fill('https://hooks.invalid/other');
      await dialog().getByRole('button', { name: 'Save' }).click();
      await row().getByRole('cell', { name: 'https://hooks.invalid/other', exact: true }).waitFor();
      await page.getByRole('button', { name: 'Delete nightly' }).click();
      await dialog().getByRole('button', { name: 'Delete', exact: true }).click();
      await until(() => document.querySelector('main tbody tr') === null);
    },
  ],
];
