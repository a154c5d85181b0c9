// Owns the sentence about looking from a phone.
import assert from 'node:assert/strict';
import { page, shot, until } from '../driver.mjs';
import { open } from './filling.mjs';

const kPlaces = [
  '',
  'experiments',
  'experiments/1',
  'experiments/1?tab=search',
  'trials/1?tab=log',
  'trials/1?tab=attempts',
  'trials/1?tab=profiler',
  'compare?experiments=1,2',
  'cluster',
  'cluster?tab=queue',
  'cluster?tab=usage&over=hour',
  'models',
  'tasks',
  'workspaces',
  'users',
  'settings',
];

export const phone = [
  [
    'a phone shows every page without scrolling to the side, and letters keep their size',
    async () => {
      await page.setViewportSize({ width: 390, height: 800 });
      for (const place of kPlaces) {
        await open(place);
        await page.waitForSelector('h1');
        await until(() => ![...document.querySelectorAll('[role="status"]')].some((one) => one.textContent === 'Loading…'));
        const wide = await page.evaluate(() => document.documentElement.scrollWidth);
        assert.ok(wide <= 390, `${place} is ${wide} wide`);
        // A picture is drawn as wide as its place, not made smaller.
        const shrunk = await page.$$eval('figure.wide svg', (all) => all.map((svg) => svg.viewBox.baseVal.width / svg.clientWidth));
        assert.ok(shrunk.every((one) => one < 1.05), `${place}: ${shrunk}`);
        await shot(`phone-${place.replace(/[^a-z0-9]+/g, '-')}`);
      }
      await page.setViewportSize({ width: 1300, height: 900 });
    },
  ],
];
