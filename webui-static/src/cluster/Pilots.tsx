// Pilots of the pools that Slurm or Kubernetes supplies, with the reasons for which they wait.
import * as calls from '../calls/cluster';
import { ErrorNote } from '../components/notes';
import { Table } from '../components/Table';
import { counted, span } from '../format';
import { useLive } from '../live';

const usePilots = () =>
  useLive(
    'pilots',
    (signal) => calls.pilots(signal),
    (change) => change === 'everything' || change.kind === 'agent' || (change.kind === 'trial' && !change.sameState),
    1000,
  );

const HEADS = ['Pilot', 'Job', 'State', 'Agents', '#Allocations', 'Submitted', 'Reason'];
const ENGINES: Readonly<Record<string, string>> = { slurm: 'Slurm', kubernetes: 'Kubernetes' };

function PoolOf({ pool, pilots, now }: { pool: calls.PilotPool; pilots: readonly calls.Pilot[]; now: number }) {
  return (
    <article class="card" aria-label={`Pilots of pool ${pool.name}`}>
      <div class="section-head">
        <h3>Pilots of {pool.name}</h3>
        <span class="quiet">
          {counted(pilots.length, 'job')} of at most {pool.maxPilots} on {ENGINES[pool.engine] ?? pool.engine}
          {pool.perAllocation && ' · a job for each trial'}
        </span>
      </div>
      {pool.problem !== '' && (
        <section class="failure" aria-label={`Problem of pool ${pool.name}`}>
          <p>
            <strong>no further pilots</strong>
            <span>{pool.problem}</span>
          </p>
        </section>
      )}
      {pilots.length > 0 && (
        <Table label={`Jobs of pool ${pool.name}`} heads={HEADS}>
          {pilots.map((pilot) => (
            <tr key={pilot.name}>
              <td>{pilot.name}</td>
              <td>{pilot.job}</td>
              <td>{pilot.state.toLowerCase()}</td>
              <td>
                {pilot.agents} of {pilot.nodes}
              </td>
              <td class="number">{pilot.allocations}</td>
              <td>{span(pilot.submittedTime, undefined, now)} ago</td>
              <td>{pilot.reason}</td>
            </tr>
          ))}
        </Table>
      )}
    </article>
  );
}

// Nothing on clusters with agents that administrators start.
export function Pilots({ now }: { now: number }) {
  const { data, error, reload } = usePilots();
  return (
    <>
      <ErrorNote error={error} retry={reload} />
      {data?.pools.map((pool) => (
        <PoolOf
          key={pool.name}
          pool={pool}
          pilots={data.pilots.filter((pilot) => pilot.resourcePool === pool.name)}
          now={now}
        />
      ))}
    </>
  );
}
