// A trial without a model for pictures of the web UI: reports generated curves of a classifier over the HTTP API.
// Hyperparameters learning_rate, dropout, depth and act decide the curves; `pace` is milliseconds per report,
// `fails_at` an epoch at which the process throws.
import { mkdirSync, writeFileSync } from 'node:fs';
import { randomUUID } from 'node:crypto';
import path from 'node:path';

const { DET_MASTER, DET_SESSION_TOKEN, DET_ALLOCATION_ID, DET_TASK_ID, DET_TRIAL_ID, DET_TRIAL_RUN_ID } = process.env;
const config = JSON.parse(process.env.DET_EXPERIMENT_CONFIG);
const { learning_rate, dropout = 0.1, depth = 8, act = 'gelu', pace = 0, epochs = 60, fails_at = 0 } = JSON.parse(process.env.DET_HPARAMS);
const BATCHES_PER_EPOCH = 100;

async function call(method, address, body) {
  const answer = await fetch(`${DET_MASTER}/api/v1${address}`, {
    method,
    headers: { 'Grpc-Metadata-x-allocation-token': `Bearer ${DET_SESSION_TOKEN}`, 'Content-Type': 'application/json' },
    ...(body ? { body: JSON.stringify(body) } : {}),
  });
  if (!answer.ok) throw new Error(`${method} ${address}: ${answer.status} ${await answer.text()}`);
  return answer.json();
}
const report = (group, step, metrics) =>
  call('POST', `/trials/${DET_TRIAL_ID}/metrics`, {
    group,
    metrics: { trialId: Number(DET_TRIAL_ID), trialRunId: Number(DET_TRIAL_RUN_ID), stepsCompleted: step, metrics: { avgMetrics: metrics } },
  });

// Random numbers in [0, 1) with a seed: mulberry32 (public domain).
let state = Number(process.env.DET_TRIAL_SEED ?? 1) * 7919 + Number(DET_TRIAL_ID);
function random() {
  state = (state + 0x6d2b79f5) | 0;
  let t = Math.imul(state ^ (state >>> 15), 1 | state);
  t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
  return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
}
const noise = () => random() + random() + random() - 1.5;

// Distance of the hyperparameters from the best ones; 0 is best.
const off =
  0.16 * Math.abs(Math.log10(learning_rate / 1e-3)) + 0.3 * Math.abs(dropout - 0.15) + 0.012 * Math.abs(depth - 12) + (act === 'relu' ? 0.02 : 0);
const speed = 9 + 14 * Math.abs(Math.log10(learning_rate / 2e-3));
const floor = 0.22 + 1.4 * off;
const curve = (epoch) => floor + (2.3 - floor) * Math.exp(-epoch / speed);
const TRACEBACK = `Traceback (most recent call last):
  File "train.py", line 88, in <module>
    main(trial)
  File "train.py", line 61, in main
    loss = step(model, batch)
  File "train.py", line 34, in step
    logits = model(batch.images)
RuntimeError: CUDA out of memory. Tried to allocate 2.50 GiB (GPU 0; 15.78 GiB total capacity; 13.91 GiB in use)`;

async function save(step) {
  const uuid = randomUUID();
  const { host_path, storage_path } = config.checkpoint_storage;
  const place = path.join(host_path, storage_path ?? '', uuid);
  mkdirSync(place, { recursive: true });
  const resources = { 'model.pt': 'weights of a model\n'.repeat(4000), 'optimizer.pt': 'moments\n'.repeat(9000), 'metadata.json': '{}\n' };
  for (const [name, text] of Object.entries(resources)) writeFileSync(path.join(place, name), text);
  await call('POST', '/checkpoints', {
    uuid,
    taskId: DET_TASK_ID,
    allocationId: DET_ALLOCATION_ID,
    state: 'STATE_COMPLETED',
    resources: Object.fromEntries(Object.entries(resources).map(([name, text]) => [name, String(text.length)])),
    metadata: { steps_completed: step },
  });
}

// A linear warm-up and a cosine decay.
const WARM_UP = 4;
const schedule = (epoch) => Math.min(1, epoch / WARM_UP) * 0.5 * (1 + Math.cos((Math.PI * Math.max(0, epoch - WARM_UP)) / (epochs - WARM_UP)));

async function main() {
  console.log(`vision transformer: depth ${depth}, activation ${act}, dropout ${dropout}, learning rate ${learning_rate}`);
  const first = Math.floor(Number(process.env.DET_STEPS_COMPLETED ?? 0) / BATCHES_PER_EPOCH) + 1;
  for (let epoch = first; epoch <= epochs; epoch++) {
    const step = epoch * BATCHES_PER_EPOCH;
    if (epoch === fails_at) {
      console.error(TRACEBACK);
      process.exit(1);
    }
    const loss = curve(epoch) + 0.025 * noise();
    await report('training', step, { loss, grad_norm: 0.4 + 2 * Math.exp(-epoch / 12) + 0.1 * random(), lr: learning_rate * schedule(epoch) });
    if (epoch % 2 === 0) {
      const validation_loss = curve(epoch) + 0.06 + 0.02 * noise() + 0.0009 * epoch * (0.25 - Math.min(0.25, dropout));
      const accuracy = Math.max(0.1, 1 - validation_loss / 2.6);
      await report('validation', step, { validation_loss, accuracy });
      console.log(`epoch ${epoch}: loss ${loss.toFixed(4)} validation_loss ${validation_loss.toFixed(4)} accuracy ${accuracy.toFixed(4)}`);
      const { preempt } = await call('GET', `/allocations/${DET_ALLOCATION_ID}/signals/preemption?timeout_seconds=0`);
      if (preempt) {
        await save(step);
        await call('POST', `/allocations/${DET_ALLOCATION_ID}/signals/ack_preemption`, {});
        return;
      }
    }
    if (config.profiling?.enabled) {
      const temperature = 64 - 30 * Math.exp(-epoch / 8) + noise();
      await report('gpu', step, { 'gpu_util.0': 82 + 6 * noise(), 'gpu_free_memory.0': 2.1e9 + 1e8 * noise(), 'gpu_power.0': 410 + 20 * noise(), 'gpu_temperature.0': temperature });
      await report('cpu', step, { cpu_util_simple: 34 + 8 * noise() });
      await report('memory', step, { memory_free: 48e9 + 1e9 * noise() });
      await report('network', step, { net_throughput_recv: 9e6 + 2e6 * noise() });
    }
    await call('POST', `/trials/${DET_TRIAL_ID}/progress`, { progress: epoch / epochs });
    if (pace > 0) await new Promise((resolve) => setTimeout(resolve, pace));
  }
  await save(epochs * BATCHES_PER_EPOCH);
}

await main();
