// A real cluster for the browser tests: det-master with its own PostgreSQL, one det-agent with an artificial
// slot, and the det command, in a temporary directory that is removed at the end.
import { execFile, spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';

const START_MS = 60000;
const STOP_MS = 20000;

// Calls `ready` on every output of the process and resolves with its first defined result. Rejects when the
// process exits or after the timeout.
function untilSaid(process, name, ready) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(
      () => reject(new Error(`${name} was not ready in ${START_MS / 1000} s:\n${process.said}`)),
      START_MS,
    );
    const look = () => {
      const found = ready(process.said);
      if (found === undefined) return;
      clearTimeout(timer);
      resolve(found);
    };
    process.stdout.on('data', look);
    process.stderr.on('data', look);
    process.once('exit', (code) => {
      clearTimeout(timer);
      reject(new Error(`${name} ended with ${code}:\n${process.said}`));
    });
  });
}

const ended = (process) =>
  process.exitCode !== null || process.signalCode !== null
    ? Promise.resolve()
    : new Promise((resolve) => process.once('exit', resolve));

export class Cluster {
  constructor(build) {
    this.bin = path.join(build, 'bin');
    this.webui = path.join(build, 'share/det/webui');
    this.directory = mkdtempSync(path.join(tmpdir(), 'det-webui-test-'));
    this.port = 0;
    this.slots = 1;
    this.tls = false;
    for (const name of ['det-master', 'det-agent', 'det']) {
      if (!existsSync(path.join(this.bin, name)))
        throw new Error(`${path.join(this.bin, name)} is missing: build it first`);
    }
  }

  get url() {
    return `${this.tls ? 'https' : 'http'}://127.0.0.1:${this.port}`;
  }

  get password() {
    return readFileSync(path.join(this.directory, 'master/admin-password'), 'utf8').trim();
  }

  launch(name, args) {
    const process = spawn(path.join(this.bin, name), args, {
      cwd: this.directory,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    process.said = '';
    for (const stream of [process.stdout, process.stderr])
      stream.on('data', (data) => (process.said += data));
    return process;
  }

  // Uses a free port the first time and the same port afterwards.
  async startMaster() {
    this.master = this.launch('det-master', [
      '--data-dir',
      path.join(this.directory, 'master'),
      '--listen',
      `127.0.0.1:${this.port}`,
      '--allowed-storage-paths',
      this.directory,
      '--webui-dir',
      this.webui,
      ...(this.tls ? ['--security-tls-enabled'] : []),
    ]);
    this.port = await untilSaid(this.master, 'det-master', (said) => {
      const found = said.match(/ready https?:\/\/\S+?:(\d+)/);
      return found ? Number(found[1]) : undefined;
    });
  }

  async killMaster() {
    this.master.kill('SIGKILL');
    await ended(this.master);
  }

  startAgent() {
    this.agent = this.launch('det-agent', [
      '--master',
      `127.0.0.1:${this.port}`,
      '--data-dir',
      path.join(this.directory, 'agent'),
      '--stop-timeout',
      '5s',
      '--join-token-file',
      path.join(this.directory, 'master', 'agent-join-token'),
      '--artificial-slots',
      String(this.slots),
      '--bind-mounts',
      `${this.directory}:rw`,
    ]);
  }

  // Runs `det ARGS…` and returns its output. The login of the invoking user is not used.
  async det(args, cwd = this.directory) {
    const env = {
      ...process.env,
      HOME: this.directory,
      XDG_CONFIG_HOME: this.directory,
      DET_MASTER: this.url,
    };
    const { stdout } = await promisify(execFile)(path.join(this.bin, 'det'), ['-m', this.url, ...args], {
      cwd,
      env,
      timeout: START_MS,
    });
    return stdout;
  }

  // Creates a directory, if it is missing, with these files in the cluster's directory.
  folder(name, files) {
    const directory = path.join(this.directory, name);
    mkdirSync(directory, { recursive: true });
    for (const [file, text] of Object.entries(files)) writeFileSync(path.join(directory, file), text);
    return directory;
  }

  // Stops everything. Prints the last output of the daemons if the test failed.
  async stop(failed) {
    // A killed master leaves its PostgreSQL running. A new master takes it over and stops it cleanly.
    if (this.master?.signalCode === 'SIGKILL') await this.startMaster().catch(() => {});
    // Trials outlive restarts of their agent, so a failed test has to kill its trial.
    if (failed && this.port !== 0) await this.det(['experiment', 'kill', '1']).catch(() => {});
    for (const process of [this.agent, this.master]) {
      if (!process) continue;
      process.kill('SIGTERM');
      const timer = setTimeout(() => process.kill('SIGKILL'), STOP_MS);
      await ended(process);
      clearTimeout(timer);
    }
    if (failed) {
      for (const [name, process] of [
        ['det-master', this.master],
        ['det-agent', this.agent],
      ]) {
        if (process) console.log(`--- ${name} said last:\n${process.said.slice(-4000)}`);
      }
    }
    rmSync(this.directory, { recursive: true, force: true });
  }
}
