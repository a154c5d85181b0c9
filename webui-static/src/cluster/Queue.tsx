// Job queues of the pools: order (changed by drag and drop or by keys), priorities, and why a job is waiting.
import { useSignal, type Signal } from '@preact/signals';
import { paths, useQuery } from '../address';
import { jobs, pools, updateJobs, type Job, type JobChange } from '../calls/cluster';
import { useNow } from '../components/clock';
import { field, FormDialog } from '../components/FormDialog';
import { Empty } from '../components/Empty';
import { ErrorNote } from '../components/notes';
import { dateTime, span } from '../format';
import { useCards } from '../components/Table';
import { useLive } from '../live';
import { useWork } from '../work';
import { Explain } from './Explain';
import { byPool, moved, movement, waitingAt } from './reorder';

// By ids: the queue may change during a drag.
interface Drag {
  jobId: string;
  over: string; // job below the pointer
}
// "experiment 3", "command 4f…".
const jobName = (job: Job): string => `${isCommand(job) ? 'command' : 'experiment'} ${job.entityId}`;
const isCommand = (job: Job): boolean => job.type === 'TYPE_COMMAND';

interface Tools {
  busy: boolean;
  now: number;
  drag: Signal<Drag | undefined>;
  dragged: number; // index of the dragged job; -1 for none
  move: (from: number, to: number) => void;
  reload: () => void;
}

interface RowProps {
  job: Job;
  at: number; // place in the queue, from 0
  first: boolean; // of the waiting jobs
  last: boolean;
  tools: Tools;
}

function PoolChoice({ current }: { current: string }) {
  const live = useLive('pools', (signal) => pools(signal), () => false);
  const names = [...new Set([current, ...(live.data ?? [])])].sort();
  return (
    <label>
      Pool
      <select name="pool" key={names.join()}>
        {names.map((name) => (
          <option key={name} value={name} selected={name === current}>
            {name}
          </option>
        ))}
      </select>
    </label>
  );
}

function Change({ job, reload }: { job: Job; reload: () => void }) {
  const save = async (fields: FormData): Promise<void> => {
    const { jobId } = job;
    const [priority, maxSlots] = [Number(field(fields, 'priority')), Number(field(fields, 'max'))];
    const [weight, resourcePool] = [Number(field(fields, 'weight')), field(fields, 'pool')];
    const updates: JobChange[] = [];
    if (priority !== job.priority) updates.push({ jobId, priority });
    if (maxSlots !== job.maxSlots) updates.push({ jobId, maxSlots });
    if (weight !== job.weight) updates.push({ jobId, weight });
    if (resourcePool !== job.resourcePool) updates.push({ jobId, resourcePool });
    if (updates.length > 0) await updateJobs(updates);
    reload();
  };
  return (
    <FormDialog
      label="Priority, limits…"
      name={`Priority, limits of ${jobName(job)}`}
      title={`${isCommand(job) ? 'Command' : 'Experiment'} ${job.entityId} in the queue`}
      submit="Save"
      work={save}
      plain
    >
      {() => (
        <>
          <label>
            Priority, 1 to 99; 1 goes first
            <input type="number" name="priority" min="1" max="99" required defaultValue={String(job.priority)} />
          </label>
          <label>
            Slots at most, 0 for no limit
            <input type="number" name="max" min="0" required defaultValue={String(job.maxSlots)} />
          </label>
          <label>
            Weight under fair share: 2 gets twice the slots of 1
            <input type="number" name="weight" min="0" step="any" required defaultValue={String(job.weight)} />
          </label>
          <PoolChoice current={job.resourcePool} />
        </>
      )}
    </FormDialog>
  );
}

// Moves a waiting job by one place.
function Moves({ job, at, first, last, tools }: RowProps) {
  return (
    <>
      <span class="by-mouse quiet" aria-hidden="true">
        ⠿
      </span>
      <button
        type="button"
        class="plain"
        aria-label={`Move ${jobName(job)} up`}
        disabled={first || tools.busy}
        onClick={() => tools.move(at, at - 1)}
      >
        ↑
      </button>
      <button
        type="button"
        class="plain"
        aria-label={`Move ${jobName(job)} down`}
        disabled={last || tools.busy}
        onClick={() => tools.move(at, at + 1)}
      >
        ↓
      </button>
    </>
  );
}

function Row({ job, at, first, last, tools }: RowProps) {
  const { query, setQuery } = useQuery();
  const { drag, dragged } = tools;
  const command = isCommand(job);
  const waits = job.summary.state === 'STATE_QUEUED';
  const open = query.explain === job.entityId;
  const target = dragged >= 0 && dragged !== at && drag.value?.over === job.jobId;
  const over = (event: DragEvent): void => {
    if (dragged < 0 || !drag.value) return;
    event.preventDefault();
    if (drag.value.over !== job.jobId) drag.value = { ...drag.value, over: job.jobId };
  };
  return (
    <>
      <tr
        draggable={waits}
        class={target ? `drop-${at < dragged ? 'above' : 'below'}` : ''}
        data-job={job.entityId}
        onDragStart={(event) => {
          event.dataTransfer?.setData('text/plain', job.jobId);
          drag.value = { jobId: job.jobId, over: job.jobId };
        }}
        onDragOver={over}
        onDragEnd={() => (drag.value = undefined)}
        onDrop={(event) => {
          event.preventDefault();
          tools.move(dragged, at);
          drag.value = undefined;
        }}
      >
        <td class="grip">{waits && <Moves job={job} at={at} first={first} last={last} tools={tools} />}</td>
        <td class="number">{command ? 'command' : job.entityId}</td>
        <th scope="row">
          <a href={command ? paths.task(job.entityId) : paths.experiment(Number(job.entityId))} draggable={false}>
            {job.name || (command ? job.entityId : `Experiment ${job.entityId}`)}
          </a>
        </th>
        <td>{job.username}</td>
        <td>
          <span class={`state state-${waits ? 'waiting' : 'busy'}`}>{waits ? 'Queued' : 'Running'}</span>
        </td>
        <td class="number">{job.priority}</td>
        <td class="number">
          {job.allocatedSlots} of {job.requestedSlots}
        </td>
        <td title={dateTime(job.submissionTime)}>{span(job.submissionTime, undefined, tools.now)}</td>
        <td>
          <Change job={job} reload={tools.reload} />
          {waits && (
            <button
              type="button"
              class="plain"
              aria-expanded={open}
              aria-label={`Why does ${jobName(job)} wait?`}
              onClick={() => setQuery({ explain: open ? '' : job.entityId })}
            >
              Why?
            </button>
          )}
        </td>
      </tr>
      {open && waits && (
        <tr>
          <td colSpan={HEADS.length}>
            <Explain of={command ? 'commands' : 'experiments'} id={job.entityId} jobId={job.jobId} />
          </td>
        </tr>
      )}
    </>
  );
}

const HEADS = ['Order', 'ID', 'Name', 'User', 'State', 'Priority', 'Slots', 'Since submission', 'Actions'];
const NUMBERS = ['ID', 'Priority', 'Slots'];

// "3 running, none waiting".
function countsText(list: readonly Job[]): string {
  const waiting = list.filter((job) => job.summary.state === 'STATE_QUEUED').length;
  return `${list.length - waiting || 'none'} running, ${waiting || 'none'} waiting`;
}

function PoolQueue(props: { pool: string; list: Job[]; now: number; reload: () => void }) {
  const { pool, list } = props;
  const drag = useSignal<Drag | undefined>(undefined);
  const promised = useSignal<Job[] | undefined>(undefined);
  const body = useCards(HEADS);
  const { busy, error, run } = useWork();
  const shown = promised.value ?? list;
  const firstWaiting = shown.findIndex((job) => job.summary.state === 'STATE_QUEUED');
  const move = async (from: number, to: number): Promise<void> => {
    const change = movement(shown, from, to);
    if (!change) return;
    promised.value = moved(shown, from, to);
    await run(() => updateJobs([change]));
    promised.value = undefined;
    props.reload();
  };
  const dragged = waitingAt(shown, drag.value?.jobId);
  const tools: Tools = { busy, now: props.now, drag, dragged, move: (from, to) => void move(from, to), reload: props.reload };
  return (
    <section aria-label={`Queue of pool ${pool}`}>
      <div class="section-head">
        <h2>{pool}</h2>
        <span class="quiet">{countsText(list)}</span>
      </div>
      <ErrorNote error={error} />
      <div class="table-frame" role="region" aria-label={`Jobs of pool ${pool}`} tabIndex={0}>
        <table class="queue cards">
          <thead>
            <tr>
              {HEADS.map((head) => (
                <th scope="col" key={head} class={NUMBERS.includes(head) ? 'number' : ''}>
                  {head}
                </th>
              ))}
            </tr>
          </thead>
          <tbody ref={body}>
            {shown.map((job, at) => (
              <Row key={job.jobId} job={job} at={at} first={at === firstWaiting} last={at === shown.length - 1} tools={tools} />
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

export function Queue() {
  const now = useNow(true);
  const live = useLive(
    'jobs',
    (signal) => jobs(signal),
    (change) => change === 'everything' || (['experiment', 'trial', 'agent', 'command'].includes(change.kind) && !change.sameState),
    500,
  );
  return (
    <>
      <ErrorNote error={live.error} retry={live.reload} />
      {!live.data && !live.error && <p role="status">Loading…</p>}
      {live.data?.length === 0 && (
        <Empty icon="cluster" title="Nothing runs or waits" command="det experiment create const.yaml .">
          An experiment is here while it runs or waits for slots.
        </Empty>
      )}
      {live.data &&
        byPool(live.data).map(([pool, list]) => (
          <PoolQueue key={pool} pool={pool} list={list} now={now} reload={live.reload} />
        ))}
      {live.data && live.data.length > 0 && (
        <details class="quiet order">
          <summary>How is this ordered?</summary>
          <p>
            Jobs with a smaller priority number start first; those with the same number start in the order of the table. Drag a waiting job, or
            press its arrows, to move it: it takes the priority of its new neighbor.
          </p>
        </details>
      )}
    </>
  );
}
