// Owns the list of experiments, newest first, live.
import * as api from '../api';
import { useNow } from '../components/clock';
import { ErrorNote, Progress, StateBadge } from '../components/notes';
import { dateTime, isEnded, span } from '../format';
import { useLive } from '../live';
import { paths, useQuery, useTitle } from '../address';
import type { Experiment, Pagination } from '../wire';

const kPageSize = 100;

function Row({ one, now }: { one: Experiment; now: number }) {
  return (
    <tr>
      <td class="number">{one.id}</td>
      <th scope="row">
        <a href={paths.experiment(one.id)}>{one.name || `Experiment ${one.id}`}</a>
      </th>
      <td>
        <StateBadge state={one.state} />
      </td>
      <td>
        {one.progress != null && <Progress value={one.progress} label={`Progress of experiment ${one.id}`} />}
      </td>
      <td>{dateTime(one.startTime)}</td>
      <td class="number">{span(one.startTime, one.endTime, now)}</td>
      <td class="number">{one.numTrials}</td>
      <td>{one.username}</td>
    </tr>
  );
}

const Empty = () => (
  <div class="empty">
    <h1>No experiments yet</h1>
    <p>Create the first one from a directory with a trial and its configuration:</p>
    <pre>
      <code>det experiment create const.yaml .</code>
    </pre>
    <p class="quiet">It appears here at once.</p>
  </div>
);

function Pages({
  page,
  pagination,
  go,
}: {
  page: number;
  pagination: Pagination;
  go: (page: number) => void;
}) {
  const last = Math.max(1, Math.ceil(pagination.total / kPageSize));
  if (last === 1 && page === 1) return null;
  return (
    <nav class="pages" aria-label="Pages">
      <button type="button" disabled={page <= 1} onClick={() => go(page - 1)}>
        Newer
      </button>
      <span>
        Page {page} of {last}
      </span>
      <button type="button" disabled={page >= last} onClick={() => go(page + 1)}>
        Older
      </button>
    </nav>
  );
}

export function ExperimentsPage() {
  useTitle('Experiments');
  const { query, setQuery } = useQuery();
  const page = Math.max(1, Math.floor(Number(query.page ?? '1')) || 1);
  const live = useLive(
    `experiments ${page}`,
    (signal) => api.experiments((page - 1) * kPageSize, kPageSize, signal),
    (change) => change === 'everything' || change.kind === 'experiment' || change.kind === 'trial',
  );
  const list = live.data?.experiments ?? [];
  const now = useNow(list.some((one) => !isEnded(one.state)));
  if (!live.data) {
    return live.error ? <ErrorNote error={live.error} retry={live.reload} /> : <p role="status">Loading…</p>;
  }
  if (live.data.pagination.total === 0 && list.length === 0) return <Empty />;
  return (
    <>
      <div class="section-head">
        <h1>Experiments</h1>
        <span class="quiet">{live.data.pagination.total.toLocaleString()} in all</span>
      </div>
      <ErrorNote error={live.error} retry={live.reload} />
      <div class="table-frame">
        <table>
          <thead>
            <tr>
              <th scope="col" class="number">
                ID
              </th>
              <th scope="col">Name</th>
              <th scope="col">State</th>
              <th scope="col">Progress</th>
              <th scope="col">Started</th>
              <th scope="col" class="number">
                Duration
              </th>
              <th scope="col" class="number">
                Trials
              </th>
              <th scope="col">User</th>
            </tr>
          </thead>
          <tbody>
            {list.map((one) => (
              <Row key={one.id} one={one} now={now} />
            ))}
          </tbody>
        </table>
      </div>
      <Pages
        page={page}
        pagination={live.data.pagination}
        go={(next) => setQuery({ page: next === 1 ? '' : String(next) })}
      />
    </>
  );
}
