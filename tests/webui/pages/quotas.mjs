// Checks of quotas: set, refused, changed, removed.
import { audit, page, until, untilText } from '../driver.mjs';
import { open } from './filling.mjs';

const dialog = () => page.getByRole('dialog');
const row = () => page.getByRole('region', { name: 'Quotas' }).locator('tbody tr');

export const quotas = [
  [
    'a quota is set for a user, its use is shown, it is changed and removed',
    async () => {
      await open('users');
      await page.getByRole('link', { name: 'Quotas' }).click();
      await untilText('det quota set');
      await page.getByRole('button', { name: 'New quota…' }).click();
      await dialog().getByLabel('User or workspace').selectOption({ label: 'admin' });
      await dialog().getByLabel('Resource').selectOption({ label: 'Log text' });
      await dialog().getByLabel('Limit').fill('many');
      await dialog().getByRole('button', { name: 'Set', exact: true }).click();
      await dialog().getByRole('alert').getByText('Limit must be a size such as 500 GB or 2 GiB').waitFor();
      await audit('quota-refused');
      await dialog().getByLabel('Limit').fill('500 GB');
      await dialog().getByRole('button', { name: 'Set', exact: true }).click();
      await row().getByRole('cell', { name: '500 GB' }).waitFor();
      await audit('quotas');
      await page.getByRole('button', { name: 'Edit Log text of admin' }).click();
      await dialog().getByLabel('Limit').fill('700 GB');
      await dialog().getByRole('button', { name: 'Set', exact: true }).click();
      await row().getByRole('cell', { name: '700 GB' }).waitFor();
      await page.getByRole('button', { name: 'Remove Log text of admin' }).click();
      await dialog().getByRole('button', { name: 'Remove', exact: true }).click();
      await until(() => document.querySelector('main tbody tr') === null);
    },
  ],
];
