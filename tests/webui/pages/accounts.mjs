// Checks of accounts: workspaces, projects, users, roles, tokens, templates.
import assert from 'node:assert/strict';
import { audit, cluster, page, until, untilText } from '../driver.mjs';
import { PROBE, more, open } from './filling.mjs';

const dialog = () => page.getByRole('dialog');
const save = (name) => dialog().getByRole('button', { name, exact: true }).click();

export const accounts = [
  [
    'a workspace and a project are made; an experiment moves there and is listed there',
    async () => {
      await open('workspaces');
      await page.getByRole('region', { name: 'Workspaces' }).getByText('Uncategorized').waitFor();
      await audit('workspaces');
      await page.getByRole('button', { name: 'New workspace…' }).click();
      await dialog().getByLabel('Name').fill(`team ${PROBE}`);
      await save('Create');
      await page.waitForURL(/\/det\/workspaces\/\d+$/);
      await untilText('No projects yet');
      await page.getByRole('button', { name: 'New project…' }).click();
      await dialog().getByLabel('Name').fill(`vision ${PROBE}`);
      await dialog().getByLabel('Description').fill(PROBE);
      await save('Create');
      await page.waitForURL(/\/det\/projects\/\d+$/);
      await untilText('No experiments here yet');
      await audit('project-empty');
      const project = page.url();
      await open('experiments/2');
      await more();
      await page.getByRole('button', { name: 'Move…' }).click();
      await dialog().getByLabel('Project').selectOption(`team ${PROBE} / vision ${PROBE}`);
      await save('Move');
      await page.locator('.run-head').getByRole('link', { name: 'vision' }).click();
      await page.waitForURL(project);
      await until(() => document.querySelectorAll('tbody tr[data-id]').length === 1);
      await audit('project');
      await more();
      await page.getByRole('button', { name: 'Delete…' }).click();
      await dialog().getByText('Its experiments are killed and deleted').waitFor();
      await save('Keep it');
      assert.equal(await page.$('main img'), null);
    },
  ],
  [
    'a user is made, given a role in a workspace, changed and made inactive',
    async () => {
      await open('users');
      await page.getByRole('button', { name: 'New user…' }).click();
      await dialog().getByLabel('User name').fill('ada');
      await dialog().getByLabel('Name to show').fill(PROBE);
      await dialog().getByLabel('Password').fill('easy');
      await save('Create');
      await dialog().getByRole('alert').getByText(/^Password is too easy/).waitFor();
      await dialog().getByLabel('Password').and(page.locator('[aria-invalid="true"]')).waitFor();
      await audit('user-refused');
      await dialog().getByLabel('Password').fill('a long sentence of no use');
      await save('Create');
      await page.getByRole('cell', { name: PROBE, exact: true }).waitFor();
      await page.getByRole('button', { name: 'Give role to ada' }).click();
      await dialog().getByLabel('Role').selectOption('Viewer');
      await dialog().getByLabel('Where').selectOption(`team ${PROBE}`);
      await save('Give');
      await page.getByRole('button', { name: `Remove Viewer in team ${PROBE} from ada` }).waitFor();
      await audit('users');
      await page.getByRole('button', { name: 'Edit ada' }).click();
      await dialog().getByLabel('Active').uncheck();
      await save('Save');
      await untilText('Inactive');
      await open('workspaces/2?tab=members');
      await page.getByRole('button', { name: 'Remove Viewer from ada' }).click();
      await dialog().getByText(`ada (${PROBE}) loses the role Viewer at once.`).waitFor();
      await audit('role-remove');
      await save('Remove');
      await until(() => !document.querySelector('main').textContent.includes('Viewer'));
      const post = async (path, data) => {
        const answer = await page.request.post(`${cluster.url}/api/v1/${path}`, { data, headers: { 'X-Requested-With': 'det' } });
        assert.equal(answer.status(), 200, await answer.text());
        return answer.json();
      };
      const { group } = await post('groups', { name: 'readers', addUsers: [1] });
      await post('roles/add-assignments', {
        groupRoleAssignments: [{ groupId: group.groupId, roleAssignment: { role: { name: 'Viewer' }, scopeWorkspaceId: 2 } }],
      });
      await page.reload();
      await untilText('Group readers');
      await audit('members');
      await page.getByRole('button', { name: 'Remove Viewer from group readers' }).click();
      await save('Remove');
      await until(() => !document.querySelector('main').textContent.includes('readers'));
      assert.equal(await page.$('main img'), null);
    },
  ],
  [
    'a page is loaded again when another tab has signed in as another user, and ends when it has signed out',
    async () => {
      await open('settings');
      const other = await page.context().newPage();
      await other.goto(`${cluster.url}/det/settings`);
      await other.waitForSelector('main h1');
      const loaded = page.waitForEvent('load');
      await other.evaluate(() => localStorage.setItem('det.user', JSON.stringify({ id: 999, username: 'eve', admin: false, displayName: '' })));
      await loaded;
      await page.waitForSelector('main h1');
      await other.evaluate(() => localStorage.removeItem('det.user'));
      await page.waitForURL('**/det/login?next=*');
      await other.close();
      await open('settings');
      await page.waitForSelector('main h1');
    },
  ],
  [
    'a token is made, shown once, good for the API, and revoked',
    async () => {
      await open('settings');
      await page.getByRole('button', { name: 'New token…' }).click();
      await dialog().getByLabel('Purpose').fill(`tests ${PROBE}`);
      await dialog().getByLabel('It may').selectOption('Look only');
      await save('Create');
      const token = await page.locator('.note code').textContent();
      await audit('token');
      const ask = async () =>
        (await fetch(`${cluster.url}/api/v1/me`, { headers: { Authorization: `Bearer ${token}` } })).status;
      assert.equal(await ask(), 200);
      await page.getByRole('button', { name: 'Done' }).click();
      assert.ok(!(await page.content()).includes(token));
      await page.getByRole('button', { name: /^Revoke token/ }).click();
      await save('Revoke');
      await until(() => document.querySelector('[aria-label^="Revoke token"]') === null);
      assert.equal(await ask(), 401);
    },
  ],
  [
    'a template is written, its mistakes told at their lines, and deleted',
    async () => {
      await open('workspaces?tab=templates');
      await untilText('det experiment create --template NAME');
      await page.getByLabel('Name').fill('shared');
      await page.getByLabel('Template', { exact: true }).fill('max_restarts: many\n');
      await page.getByRole('button', { name: 'Save' }).click();
      await page.getByRole('list', { name: 'Problems' }).getByText('line 1').waitFor();
      await page.getByLabel('Template', { exact: true }).fill(`max_restarts: 2\n# ${PROBE}\n`);
      await page.getByRole('button', { name: 'Save' }).click();
      await page.waitForURL(/template=shared/);
      await page.getByRole('navigation', { name: 'Templates' }).getByRole('button', { name: 'shared' }).waitFor();
      await audit('templates');
      await page.getByRole('button', { name: 'Delete…' }).click();
      await save('Delete');
      await untilText('None yet.');
    },
  ],
];
