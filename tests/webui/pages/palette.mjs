// Checks of the command palette, while experiment 1 with markup in its name runs.
import assert from 'node:assert/strict';
import { audit, page, until, untilText } from '../driver.mjs';

export const palette = [
  [
    'the command palette finds pages, experiments by name and trials by number',
    async () => {
      await page.keyboard.press('Control+k');
      const field = page.getByRole('combobox', { name: 'Search or jump to' });
      await field.waitFor();
      await audit('palette');
      await field.fill('queue');
      await page.keyboard.press('Enter');
      await page.waitForURL('**/det/cluster?tab=queue');
      await page.keyboard.press('Control+k');
      await field.fill('img src');
      await page.getByRole('option', { name: '<img src=x' }).waitFor();
      assert.equal(await page.$('dialog img'), null);
      await field.fill('trial 1');
      await page.keyboard.press('Enter');
      await page.waitForURL('**/det/trials/1');
      await page.keyboard.press('Control+k');
      await field.fill('nothing is called that');
      await untilText('Nothing matches');
      await page.keyboard.press('Escape');
      await until(() => !document.querySelector('dialog[open]'));
    },
  ],
];
