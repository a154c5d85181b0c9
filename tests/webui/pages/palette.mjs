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
  [
    'the palette opens whenever its key is pressed, however soon after it was closed',
    async () => {
      const lost = await page.evaluate(async () => {
        const rest = (ms) => new Promise((done) => setTimeout(done, ms));
        const press = () =>
          document.body.dispatchEvent(new KeyboardEvent('keydown', { key: 'k', ctrlKey: true, bubbles: true }));
        const shown = () => document.querySelector('dialog.palette[open] input') !== null;
        const lost = [];
        for (let gap = 0; gap <= 40; gap += 2) {
          press();
          await rest(100);
          if (!shown()) lost.push(`open before ${gap}`);
          press();
          await rest(gap);
          press();
          await rest(100);
          if (!shown()) lost.push(`${gap} ms after it was closed`);
          else press();
          await rest(100);
        }
        return lost;
      });
      assert.deepEqual(lost, []);
    },
  ],
];
