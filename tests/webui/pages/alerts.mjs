// Checks of notifications: they are switched on in the settings, and an experiment that ends while the page is hidden
// is one.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { audit, cluster, here, page, until } from '../driver.mjs';
import { config, open } from './filling.mjs';

// Records notifications instead of showing them, and lets the test hide the page.
const recording = () => {
  window.shown = [];
  window.hide = false;
  Object.defineProperty(document, 'hidden', { get: () => window.hide });
  window.Notification = class {
    static permission = 'default';
    static requestPermission = async () => (window.Notification.permission = localStorage.getItem('refused') ? 'denied' : 'granted');
    constructor(title, { body, tag }) {
      window.shown.push({ title, body, tag });
    }
  };
};

// Creates an experiment that runs until it is killed, and returns its id.
async function create(number) {
  const context = cluster.folder(`alerts${number}`, {
    'const.yaml': config(number),
    'script_trial.mjs': readFileSync(path.join(here, 'script_trial.mjs'), 'utf8'),
  });
  const said = await cluster.det(['experiment', 'create', 'const.yaml', '.'], context);
  return Number(/experiment (\d+)/i.exec(said)[1]);
}

export const alerts = [
  [
    'alerts stay off if the browser refuses them, and the settings give the reason',
    async () => {
      await page.addInitScript(recording);
      await open('settings');
      await page.evaluate(() => localStorage.setItem('refused', '1'));
      const box = page.getByLabel('Notify me when an experiment of mine ends');
      await box.click();
      await until(() => !document.querySelector('fieldset:has(legend) input[type=checkbox]').checked);
      await page.getByText('The browser refuses notifications').waitFor();
      await audit('settings-alerts');
      await page.evaluate(() => localStorage.removeItem('refused'));
    },
  ],
  [
    'an experiment that ends while the page is hidden is a notification, once',
    async () => {
      await page.reload();
      await page.getByLabel('Notify me when an experiment of mine ends').check();
      await open('experiments');
      await page.waitForSelector('tbody tr[data-id]');
      const [seen, missed] = [await create(8), await create(9)];
      for (const id of [seen, missed]) await page.waitForSelector(`tr[data-id="${id}"]`);
      await cluster.det(['experiment', 'kill', String(seen)]);
      await until((id) => document.querySelector(`tr[data-id="${id}"] :is(.state, .state-icon)`)?.textContent === 'Canceled', seen);
      assert.deepEqual(await page.evaluate(() => window.shown), []);
      await page.evaluate(() => {
        window.hide = true;
        document.dispatchEvent(new Event('visibilitychange'));
      });
      await cluster.det(['experiment', 'kill', String(missed)]);
      await until(() => window.shown.length > 0);
      const [{ title, tag }, ...more] = await page.evaluate(() => window.shown);
      assert.match(title, /^number 9 *: Canceled$/);
      assert.equal(tag, `experiment ${missed}`);
      assert.deepEqual(more, []);
      await open('settings');
      await page.getByLabel('Notify me when an experiment of mine ends').uncheck();
    },
  ],
];
