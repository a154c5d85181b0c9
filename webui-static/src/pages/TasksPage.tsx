// All commands, notebooks, shells and TensorBoards: state, pages, starting and killing.
import { useLocation } from 'preact-iso';
import { paths, useTitle } from '../address';
import { endOf, hasEnded, killCommand, launch, outcome, tasks } from '../calls/tasks';
import type { Task } from '../calls/tasks';
import { useNow } from '../components/clock';
import { Confirm } from '../components/Confirm';
import { Empty } from '../components/Empty';
import { field, FormDialog } from '../components/FormDialog';
import { Loaded } from '../components/Loaded';
import { StateBadge } from '../components/notes';
import { Table } from '../components/Table';
import { Time } from '../components/Time';
import { span, stateName } from '../format';
import { useLive } from '../live';

function Launch() {
  const { route } = useLocation();
  const start = async (fields: FormData): Promise<void> => {
    const made = await launch(field(fields, 'line'), Number(field(fields, 'slots')), field(fields, 'description'));
    route(paths.task(made.id));
  };
  return (
    <FormDialog label="Run a command…" title="Run a command" submit="Run" work={start}>
      {() => (
        <>
          <label>
            Command line
            <input type="text" name="line" required autocomplete="off" spellcheck={false} />
          </label>
          <label>
            Slots
            <input type="number" name="slots" min="0" required defaultValue="0" />
          </label>
          <label>
            Description
            <input type="text" name="description" />
          </label>
        </>
      )}
    </FormDialog>
  );
}

// The name of the kind; for a running task with pages, a link to them.
const Kind = ({ one }: { one: Task }) =>
  one.serviceAddress && one.state === 'STATE_RUNNING' ? (
    <a href={one.serviceAddress} target="_blank" rel="noopener" aria-label={`Open ${one.kind} ${one.description}`}>
      {one.kind}
    </a>
  ) : (
    <>{one.kind}</>
  );

// The reason, in red after a failure, unless the badge says it, and the end of the output, which is no error by itself.
function End({ one }: { one: Task }) {
  const { reason, output } = endOf(one);
  return (
    <>
      {reason !== stateName(outcome(one)) && <span class={outcome(one) === 'STATE_ERROR' ? 'failed' : ''}>{reason}</span>}
      {output !== '' && <code class="output quiet">{output}</code>}
    </>
  );
}

const Row = ({ one, now, hasActions, reload }: { one: Task; now: number; hasActions: boolean; reload: () => void }) => (
  <tr>
    <th scope="row">
      <a href={paths.task(one.id)}>{one.description || one.id}</a>
    </th>
    <td>
      <Kind one={one} />
    </td>
    <td>
      <StateBadge state={outcome(one)} />
    </td>
    <td>{one.username}</td>
    <td>{one.resourcePool}</td>
    <td class="number">{one.slots}</td>
    <td>
      <Time at={one.startTime} />
    </td>
    <td class="number">{span(one.startTime, one.endTime, now)}</td>
    <td class="reason">
      <End one={one} />
    </td>
    {hasActions && (
      <td>
        {!hasEnded(one) && (
          <Confirm
            label="Kill…"
            name={`Kill ${one.description || one.id}`}
            title="Kill this task?"
            yes="Kill"
            no="Keep it running"
            plain
            work={() => killCommand(one.id)}
            done={reload}
          >
            {one.description || one.id} ends at once.
          </Confirm>
        )}
      </td>
    )}
  </tr>
);

export function TasksPage() {
  useTitle('Tasks');
  const live = useLive(
    'commands',
    (signal) => tasks(signal),
    (change) => change === 'everything' || change.kind === 'command',
    500,
  );
  const running = live.data?.some((one) => !hasEnded(one)) ?? false;
  const now = useNow(running);
  return (
    <>
      <div class="section-head">
        <h1>Tasks</h1>
        <span class="spring" />
        <Launch />
      </div>
      <Loaded live={live}>
        {(all) =>
          all.length === 0 ? (
            <Empty icon="tasks" title="No tasks yet" command="det command run nvidia-smi">
              A command runs one program on the cluster, with or without slots. <code>det shell</code>,{' '}
              <code>det notebook</code> and <code>det tensorboard</code> start tasks to work in.
            </Empty>
          ) : (
            <Table label="Tasks" heads={['Task', 'Kind', 'State', 'User', 'Pool', '#Slots', 'Started', '#Duration', 'How it ended', ...(running ? ['Actions'] : [])]}>
              {all.map((one) => (
                <Row key={one.id} one={one} now={now} hasActions={running} reload={live.reload} />
              ))}
            </Table>
          )
        }
      </Loaded>
    </>
  );
}
