// The entrypoint of the browser test's experiment: a trial without a model. Implements the harness's stream
// (gRPC over HTTP/2, proto/det/v1/harness.proto) without a library: prints lines, reports generated metrics
// every step, exits when preempted, and reattaches after a loss of the master. Runs until it is stopped.
import http2 from 'node:http2';

const { DET_MASTER, DET_SESSION_TOKEN, DET_ALLOCATION_ID, DET_TRIAL_ID, DET_TRIAL_RUN_ID } = process.env;
const STEP_MS = 250;
const LIMIT_MS = 15 * 60 * 1000; // a trial ends then, in case the test died

// The parts of protobuf's wire format that are needed.
const varint = (n) => {
  const bytes = [];
  for (let rest = BigInt(n); ; rest >>= 7n) {
    if (rest < 128n) return Buffer.from([...bytes, Number(rest)]);
    bytes.push(Number(rest & 127n) | 128);
  }
};
const integer = (field, n) => Buffer.concat([varint(field << 3), varint(n)]);
const block = (field, bytes) => Buffer.concat([varint((field << 3) | 2), varint(bytes.length), bytes]);
const string = (field, text) => block(field, Buffer.from(text));
const double = (field, n) => {
  const bytes = Buffer.alloc(8);
  bytes.writeDoubleLE(n);
  return Buffer.concat([varint((field << 3) | 1), bytes]);
};
// The top-level fields of a message: [number, integer or Buffer].
function* fields(bytes) {
  let at = 0;
  const read = () => {
    for (let n = 0n, shift = 0n; ; shift += 7n) {
      const byte = bytes[at++];
      n |= BigInt(byte & 127) << shift;
      if (byte < 128) return Number(n);
    }
  };
  while (at < bytes.length) {
    const key = read();
    if ((key & 7) === 2) {
      const length = read();
      yield [key >> 3, bytes.subarray(at, at + length)];
      at += length;
    } else {
      yield [key >> 3, read()];
    }
  }
}

const frame = (message) => {
  const head = Buffer.alloc(5);
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, message]);
};

let sequence = 0;
let stream;
let lastReport = 0; // Number of the last report: the process ends when it is acknowledged.
const unacknowledged = new Map();

const attach = () =>
  block(
    1,
    Buffer.concat([integer(1, DET_TRIAL_ID), integer(2, DET_TRIAL_RUN_ID), string(3, DET_ALLOCATION_ID)]),
  );

function report(field, body) {
  const now = Date.now();
  const time = Buffer.concat([integer(1, Math.floor(now / 1000)), integer(2, (now % 1000) * 1e6)]);
  const message = block(2, Buffer.concat([integer(1, ++sequence), block(2, time), block(field, body)]));
  unacknowledged.set(sequence, message);
  stream?.write(frame(message));
  return sequence;
}
const reportMetrics = (group, step, metrics) =>
  report(3, Buffer.concat([string(1, group), integer(2, step), string(3, JSON.stringify(metrics))]));

function acknowledge(upTo) {
  for (const number of unacknowledged.keys()) if (number <= upTo) unacknowledged.delete(number);
  if (lastReport > 0 && upTo >= lastReport) process.exit(0);
}

function preempt() {
  if (lastReport > 0) return;
  console.log('asked to leave');
  lastReport = report(7, Buffer.alloc(0));
}

function heard(message) {
  for (const [number, body] of fields(message)) {
    if (number === 1) for (const [field, value] of fields(body)) if (field === 2 && value) preempt();
    if (number === 2) for (const [field, value] of fields(body)) if (field === 1) acknowledge(value);
    if (number === 3) preempt();
  }
}

function connect() {
  const session = http2.connect(DET_MASTER);
  const again = () => {
    if (stream === own) stream = undefined;
    session.destroy();
    setTimeout(connect, 200);
  };
  const own = session.request({
    ':method': 'POST',
    ':path': '/det.v1.HarnessService/Session',
    'content-type': 'application/grpc',
    te: 'trailers',
    'x-allocation-token': `Bearer ${DET_SESSION_TOKEN}`,
  });
  session.on('error', () => {});
  own.on('error', () => {});
  own.on('trailers', (trailers) =>
    console.log('session ended:', trailers['grpc-status'], trailers['grpc-message']),
  );
  own.once('close', again);
  let rest = Buffer.alloc(0);
  own.on('data', (chunk) => {
    rest = Buffer.concat([rest, chunk]);
    while (rest.length >= 5 && rest.length >= 5 + rest.readUInt32BE(1)) {
      const length = rest.readUInt32BE(1);
      heard(rest.subarray(5, 5 + length));
      rest = rest.subarray(5 + length);
    }
  });
  own.write(frame(attach()));
  for (const message of unacknowledged.values()) own.write(frame(message));
  stream = own;
}

console.log('hello from the trial');
console.log('<img src=x onerror="window.pwned=1"><script>window.pwned=1</script>');
console.log('\x1b[32mgreen\x1b[0m \x1b]0;title\x07plain');
for (let line = 1; line <= 30; line++) console.log(`preparing ${line} of 30`);
connect();
const measured = JSON.parse(process.env.DET_EXPERIMENT_CONFIG ?? '{}').profiling?.enabled === true;
let step = 0;
setInterval(() => {
  if (lastReport > 0) return;
  step++;
  console.log(`step ${step}`);
  reportMetrics('training', step * 10, { loss: 2 * Math.exp(-step / 40), grad_norm: 1 / step });
  if (measured) reportMetrics('timing', step * 10, { forward: 0.003, backward: 0.006, data: 0.001 });
  if (step % 4 === 0) {
    if (measured) {
      reportMetrics('memory', step * 10, { memory_free: 8e9 + step * 1e6 });
      reportMetrics('gpu', step * 10, { 'gpu_util.0': 96, 'gpu_util.1': 41 });
    }
    reportMetrics('validation', step * 10, {
      validation_loss: 2 * Math.exp(-step / 50),
      accuracy: 1 - 1 / (1 + step / 30),
      '<img src=x onerror=pwned=1>': step,
    });
    report(5, Buffer.concat([double(1, Math.min(0.99, (step * STEP_MS) / LIMIT_MS)), integer(2, step * 10)]));
  }
}, STEP_MS);
process.on('SIGTERM', () => process.exit(143));
setTimeout(() => process.exit(1), LIMIT_MS);
