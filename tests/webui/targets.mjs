// Measures touch targets on a phone: the area around the center of a control in which a finger reaches it.
import assert from 'node:assert/strict';
import { page } from './driver.mjs';

// Minimum width and height of a target in pixels. WCAG 2.2 requires 24 for AA and 44 for AAA.
const MIN_TARGET = 36;
// Minimum height of a table row whose cells contain links.
const MIN_ROW = 36;
const CONTROLS = 'button, a[href], input:not([type="hidden"]), select, textarea, summary, [role="tab"], [role="option"]';
const OPEN_MENU = 'details.tool[open] > :not(summary)';

// Visible controls below `within` with a small target, as `WIDTH x HEIGHT kind "name"`. The label of a check box belongs
// to its target. Links in running text, in logs and in sufficiently high table rows are exempt, and marks of charts.
const small = (within) =>
  page.evaluate(
    ({ controls, least, leastRow, within: root }) => {
      const reacts = (element, x, y) => {
        const top = document.elementFromPoint(x, y);
        if (!top || element.contains(top)) return top !== null;
        // A click on another label only moves the focus.
        if (element.type !== 'checkbox' && element.type !== 'radio') return false;
        return [...element.labels].some((label) => label.contains(top)) && !top.closest('a, button, select');
      };
      // Length of the target along an axis through the center of the element, up to `least`. A label need not be centered.
      const extent = (element, x, y, dx, dy) => {
        let length = 1;
        for (const sign of [-1, 1])
          for (let step = sign; length < least && reacts(element, x + step * dx, y + step * dy); step += sign) length++;
        return length;
      };
      const isInText = (link) => {
        if (getComputedStyle(link).display !== 'inline') return false;
        const block = link.parentElement.cloneNode(true);
        block.querySelectorAll('a, button, summary, select').forEach((one) => one.remove());
        return /\p{L}/u.test(block.textContent);
      };
      const isExempt = (element) => {
        if (element.closest('.skip, .hidden, dialog:not([open]), svg')) return true;
        if (element.tagName !== 'A') return false;
        const row = element.closest('tr');
        if (row) return row.getBoundingClientRect().height >= leastRow;
        return element.closest('.log, .markdown') !== null || isInText(element);
      };
      const found = [];
      for (const element of document.querySelectorAll(controls)) {
        if (!element.closest(root) || isExempt(element) || !element.checkVisibility({ visibilityProperty: true })) continue;
        element.scrollIntoView({ block: 'center', inline: 'center', behavior: 'instant' });
        const box = element.getBoundingClientRect();
        const [x, y] = [box.left + box.width / 2, box.top + box.height / 2];
        const [width, height] = [extent(element, x, y, 1, 0), extent(element, x, y, 0, 1)];
        if (width >= least && height >= least) continue;
        const name = element.ariaLabel || element.labels?.[0]?.textContent || element.textContent || element.name;
        found.push(`${width} x ${height} ${element.tagName.toLowerCase()}.${element.className} "${name.trim().slice(0, 40)}"`);
      }
      scrollTo(0, 0);
      return found;
    },
    { controls: CONTROLS, least: MIN_TARGET, leastRow: MIN_ROW, within },
  );

// Small targets in the menus that were not measured yet.
async function inMenus() {
  const found = [];
  for (const menu of await page.locator('details.tool:not([data-measured]):visible').all()) {
    await menu.evaluate((own) => (own.open = true));
    // A menu renders its content after it has opened.
    await menu.locator('.tool-body').waitFor();
    found.push(...(await small(OPEN_MENU)));
    await menu.evaluate((own) => (own.open = false));
  }
  await page.$$eval('details.tool', (menus) => menus.forEach((menu) => menu.checkVisibility() && (menu.dataset.measured = '')));
  return found;
}

// Every visible control of the page is large enough for a finger, also the tools behind the button "Options" and in menus.
export async function touchable(place) {
  const found = [...(await small('body')), ...(await inMenus())];
  for (const options of await page.locator('main button.options').all()) {
    await options.click();
    found.push(...(await small('main')), ...(await inMenus()));
    // The tools may cover the button.
    await options.evaluate((own) => own.click());
  }
  assert.deepEqual([...new Set(found)], [], `${place}: touch targets below ${MIN_TARGET} x ${MIN_TARGET} pixels`);
}
