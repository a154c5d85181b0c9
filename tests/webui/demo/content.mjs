// Fills a cluster with experiments as a group of users has them: searches, single runs, failures, running and queued
// ones. Generated curves, real processes.
import { mkdirSync, readFileSync } from 'node:fs';
import path from 'node:path';

const here = path.dirname(new URL(import.meta.url).pathname);
export const SLOTS = 8;
const EPOCHS = 60;

const MODEL = `# Model of the demonstration: a small vision transformer.
import torch
from torch import nn


class Block(nn.Module):
    """Attention and a perceptron, each behind a normalization."""

    def __init__(self, width: int, heads: int = 6, dropout: float = 0.1):
        super().__init__()
        self.attention = nn.MultiheadAttention(width, heads, dropout, batch_first=True)
        self.norm = nn.LayerNorm(width)

    def forward(self, x):
        y = self.norm(x)
        return x + self.attention(y, y, y, need_weights=False)[0]
`;

function config(cluster, { name, labels = [], searcher, hyperparameters, more = '' }) {
  return `name: ${name}
description: image classifier on CIFAR-10
labels: [${labels}]
entrypoint: ${process.execPath} demo_trial.mjs
hyperparameters:
${Object.entries({ epochs: EPOCHS, ...hyperparameters }).map(([key, value]) => `  ${key}: ${value}`).join('\n')}
searcher: {metric: accuracy, smaller_is_better: false, ${searcher}}
resources: {slots_per_trial: 1}
max_restarts: 0
profiling: {enabled: true}
checkpoint_storage: {type: shared_fs, host_path: ${path.join(cluster.directory, 'checkpoints')}}
${more}`;
}

const SINGLE = `name: single, max_length: {batches: ${EPOCHS * 100}}`;
const SPACE = {
  learning_rate: '{type: log, base: 10, minval: -4, maxval: -2}',
  dropout: '{type: double, minval: 0.0, maxval: 0.5}',
  depth: '{type: categorical, vals: [4, 8, 12, 16]}',
  act: '{type: categorical, vals: [relu, gelu]}',
};

// Experiments that end by themselves.
const ENDING = [
  ...[3e-4, 1e-3, 3e-3].flatMap((rate) =>
    ['relu', 'gelu'].map((act, at) => ({
      name: `vit_cifar10 lr=${rate} ${act}`,
      labels: ['baseline'],
      searcher: SINGLE,
      hyperparameters: { learning_rate: rate, dropout: 0.1 + at / 10, depth: 12, act },
    })),
  ),
  { name: 'vit_cifar10 random search', labels: ['sweep', 'paper'], searcher: 'name: random, max_trials: 24', hyperparameters: { ...SPACE } },
  {
    name: 'vit_cifar10 halving',
    labels: ['sweep'],
    searcher: `name: adaptive_asha, max_trials: 24, time_metric: batches, max_time: ${EPOCHS * 100}, divisor: 3, max_rungs: 3`,
    hyperparameters: { ...SPACE, epochs: EPOCHS },
  },
  { name: 'vit_large out of memory', labels: ['large'], searcher: SINGLE, hyperparameters: { learning_rate: 1e-3, depth: 48, fails_at: 7 } },
  ...['short warmup', 'cosine schedule', 'label smoothing', 'mixup'].map((name, at) => ({
    name: `vit_cifar10 ${name}`,
    labels: ['ablation'],
    searcher: SINGLE,
    hyperparameters: { learning_rate: 1e-3 * (1 + at), dropout: 0.05 * (at + 1), depth: 8 + 4 * (at % 3), act: 'gelu' },
  })),
];

// Experiments that run for the rest of the test, and more than the slots can take.
const RUNNING = [
  ...['seed 1', 'seed 2', 'seed 3'].map((name, at) => ({
    name: `vit_imagenet100 ${name}`,
    labels: ['long'],
    searcher: SINGLE,
    hyperparameters: { learning_rate: 1e-3, dropout: 0.1 + 0.05 * at, depth: 12, act: 'gelu', pace: 400 + 50 * at, epochs: 1000 },
  })),
  { name: 'vit_imagenet100 search', labels: ['sweep', 'long'], searcher: 'name: random, max_trials: 12, max_concurrent_trials: 5', hyperparameters: { ...SPACE, pace: 300, epochs: 800 } },
  ...['distilled teacher', 'bf16 check', 'batch 4096'].map((name) => ({
    name: `vit_imagenet100 ${name}`,
    labels: ['long'],
    searcher: SINGLE,
    hyperparameters: { learning_rate: 3e-3, pace: 400, epochs: 500 },
  })),
];

async function create(cluster, at, one) {
  const context = cluster.folder(`demo${at}`, {
    'const.yaml': config(cluster, one),
    'demo_trial.mjs': readFileSync(path.join(here, 'demo_trial.mjs'), 'utf8'),
    'model.py': MODEL,
  });
  await cluster.det(['experiment', 'create', 'const.yaml', '.'], context);
}

// Resolves with the states of all experiments once none of them is unfinished.
async function settled(cluster) {
  for (;;) {
    const all = JSON.parse(await cluster.det(['experiment', 'list', '--json']));
    const states = (Array.isArray(all) ? all : all.experiments).map(({ state }) => state);
    if (states.every((state) => /COMPLETED|ERROR|CANCELED/.test(state))) return states;
    await new Promise((resolve) => setTimeout(resolve, 1000));
  }
}

// Creates all experiments and returns when those that end have ended.
export async function fill(cluster) {
  mkdirSync(path.join(cluster.directory, 'checkpoints'));
  for (const [at, one] of ENDING.entries()) await create(cluster, at, one);
  await settled(cluster);
  for (const [at, one] of RUNNING.entries()) await create(cluster, ENDING.length + at, one);
}
