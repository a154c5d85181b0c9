// Page of one command: state, why it is waiting, and its log.
import { paths, useTitle } from '../address';
import { command, endOf, hasEnded, killCommand, outcome, portPage } from '../calls/tasks';
import type { CommandWithPorts } from '../calls/tasks';
import { Explain } from '../cluster/Explain';
import { useNow } from '../components/clock';
import { Confirm } from '../components/Confirm';
import { CopyText } from '../components/Copy';
import { Loaded } from '../components/Loaded';
import { LogView } from '../log/LogView';
import { StateBadge } from '../components/notes';
import { PageHead } from './PageHead';
import { Facts } from '../components/Tabs';
import { counted, dateTime, span } from '../format';
import { useLive } from '../live';
import { onPhone } from '../phone';

// Links to the pages of a running command's ports; the numbers of the others.
const Ports = ({ one }: { one: CommandWithPorts }) => (
  <>
    {one.ports.map(({ proxy_port: port, proxy_tcp: tcp }) =>
      one.state === 'STATE_RUNNING' && !tcp ? (
        <a key={port} class="port" href={portPage(one.id, port)} target="_blank" rel="noopener">
          {port}
        </a>
      ) : (
        <span key={port} class="port">
          {port}
        </span>
      ),
    )}
  </>
);

// On a phone one line, which unfolds, so that the log begins near the top.
function CommandFacts({ one, now }: { one: CommandWithPorts; now: number }) {
  const elapsed = span(one.startTime, one.endTime, now);
  const facts = (
    <Facts
      facts={[
        ['Started', dateTime(one.startTime)],
        ['Elapsed', elapsed],
        ['User', one.username],
        ['Pool', one.resourcePool],
        ['Slots', String(one.slots)],
        ['ID', <CopyText text={one.id} what="ID" />],
        ['Priority', one.priority > 0 ? String(one.priority) : ''],
        ['Command', one.line === '' ? '' : <code class="command-line">{one.line}</code>],
        ['Ports', one.ports.length > 0 ? <Ports one={one} /> : ''],
      ]}
    />
  );
  if (!onPhone()) return facts;
  return (
    <details class="config">
      <summary>{[elapsed, one.username, one.resourcePool, counted(one.slots, 'slot')].filter((part) => part !== '').join(' · ')}</summary>
      {facts}
    </details>
  );
}

export function TaskPage({ id }: { id: string }) {
  const live = useLive(
    `command ${id}`,
    (signal) => command(id, signal),
    (change) => change === 'everything' || change.kind === 'command',
    500,
  );
  const now = useNow(live.data ? !hasEnded(live.data) : false);
  useTitle(live.data?.description || 'Command');
  return (
    <Loaded live={live} missing={`There is no command ${id}.`}>
      {(one) => (
        <>
          <PageHead
            path={[[paths.tasks, 'Tasks']]}
            title={one.description || 'Command'}
            facts={
              <>
                <StateBadge state={outcome(one)} />
                {/* Only a failure has a reason here: the badge names the other ends, and the log below has the output. */}
                {outcome(one) === 'STATE_ERROR' && <span class="reason failed">{endOf(one).reason}</span>}
              </>
            }
          >
            {!hasEnded(one) && (
              <div class="actions">
                <Confirm
                  label="Kill…"
                  title="Kill this command?"
                  yes="Kill"
                  no="Keep it running"
                  work={() => killCommand(id)}
                  done={live.reload}
                >
                  It ends at once.
                </Confirm>
              </div>
            )}
          </PageHead>
          {one.state === 'STATE_QUEUED' && <Explain of="commands" id={one.id} jobId={one.jobId} />}
          <CommandFacts one={one} now={now} />
          <LogView of={`tasks/${encodeURIComponent(one.id)}`} name="command" taskId={one.id} ended={hasEnded(one)} />
        </>
      )}
    </Loaded>
  );
}
