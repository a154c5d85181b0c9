// Check of joining an agent: the commands that the page shows are run unchanged, against a master with TLS.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import path from 'node:path';
import { Cluster } from '../cluster.mjs';
import { audit, build, page, watch } from '../driver.mjs';

export const joining = [
  [
    'with TLS the page makes a join token, and an agent joins by the command that it shows',
    async () => {
      const safe = new Cluster(build);
      safe.tls = true;
      // The master's certificate is signed by its own authority, which the browser does not trust.
      const context = await page.context().browser().newContext({ ignoreHTTPSErrors: true });
      try {
        await safe.startMaster();
        watch(context);
        const other = await context.newPage();
        await other.goto(`${safe.url}/det/login?next=/det/cluster`);
        await other.getByLabel('User name').fill('admin');
        await other.getByLabel('Password').fill(safe.password);
        await other.keyboard.press('Enter');
        await other.getByRole('button', { name: 'Make a join token…' }).click();
        await other.getByLabel('Agents that may use it').fill('1');
        await other.getByLabel('Their resource pool').fill('far');
        await other.getByRole('dialog').getByRole('button', { name: 'Make' }).click();
        const command = await other.textContent('.note .copy code');
        assert.match(command, /^\(umask 077; echo det_j_[\w.-]+ > join-token\)\ndet-agent --master https:\/\/127\.0\.0\.1:\d+ --join-token-file join-token$/);
        await audit('join', other);
        // In the foreground of a shell the agent would not return.
        safe.agent = spawn('sh', ['-c', `${command.replace('\ndet-agent', '\nexec det-agent')} --id far-1 --artificial-slots 2 --data-dir agent`], {
          cwd: safe.directory,
          env: { ...process.env, PATH: `${path.join(build, 'bin')}:${process.env.PATH}` },
          stdio: 'ignore',
        });
        await other.getByText('far-1').first().waitFor({ timeout: 20000 });
        await other.getByText(/pool\sfar · version\s/).waitFor({ timeout: 20000 });
        await other.getByRole('button', { name: 'Done' }).click();
        assert.ok(!(await other.content()).includes('det_j_'));
      } finally {
        await context.close();
        await safe.stop(false);
      }
    },
  ],
];
