// Page of one registered model: description, notes, metadata, and versions.
import { useLocation } from 'preact-iso';
import { paths, useQuery, useTitle } from '../address';
import { experiment } from '../api';
import {
  archiveModel,
  model,
  patchModel,
  patchVersion,
  removeModel,
  removeVersion,
  versions,
  type Model,
  type ModelVersion,
} from '../calls/models';
import { ActionMenu } from '../components/ActionMenu';
import { Confirm } from '../components/Confirm';
import { Empty } from '../components/Empty';
import { field, FormDialog } from '../components/FormDialog';
import { Loaded } from '../components/Loaded';
import { MarkdownNotes } from '../components/MarkdownNotes';
import { Archived, ErrorNote } from '../components/notes';
import { PageHead } from './PageHead';
import { Table } from '../components/Table';
import { currentTab, Tabs } from '../components/Tabs';
import { Time } from '../components/Time';
import { digits, grouped, sorted } from '../format';
import { useLive } from '../live';
import { useWork } from '../work';
import { Words } from '../components/Words';

const SHORT_ID = 8; // characters of a UUID
// Experiments whose metric is named.
const MAX_NAMED = 20;

const TABS = ['Versions', 'Notes', 'Metadata'] as const;

interface VersionProps {
  of: Model;
  one: ModelVersion;
  metricName: string | undefined;
  reload: () => void;
}

function EditVersion({ of, one, reload }: Omit<VersionProps, 'metricName'>) {
  const save = async (fields: FormData): Promise<void> => {
    const to = { name: field(fields, 'name'), comment: field(fields, 'comment'), notes: field(fields, 'notes') };
    await patchVersion(of.name, one.version, to);
    reload();
  };
  return (
    <FormDialog label="Edit…" name={`Edit version ${one.version}`} title={`Edit version ${one.version}`} submit="Save" plain work={save}>
      {() => (
        <>
          <label>
            Name
            <input type="text" name="name" defaultValue={one.name} />
          </label>
          <label>
            Comment
            <input type="text" name="comment" defaultValue={one.comment} />
          </label>
          <label>
            Notes
            <textarea name="notes" rows={5} defaultValue={one.notes} />
          </label>
          {one.checkpoint && (
            <p class="quiet">
              Checkpoint <code>{one.checkpoint.uuid}</code>
            </p>
          )}
        </>
      )}
    </FormDialog>
  );
}

function Version({ of, one, metricName, reload }: VersionProps) {
  const { checkpoint } = one;
  const { trialId, experimentId, searcherMetric } = checkpoint?.training ?? {};
  return (
    <tr>
      <th scope="row">
        Version {one.version} {one.name !== '' && `· ${one.name}`}
        {one.comment !== '' && (
          <p>
            <span class="quiet">Comment</span> {one.comment}
          </p>
        )}
        {one.notes !== '' && (
          <p class="lines-kept">
            <span class="quiet">Notes</span> {one.notes}
          </p>
        )}
      </th>
      <td class="number">
        {metricName && <span class="quiet">{metricName}</span>} {digits(searcherMetric) || <span class="quiet">–</span>}
      </td>
      <td class="number">{checkpoint && grouped(checkpoint.stepsCompleted)}</td>
      <td class="origin">
        {trialId && <a href={paths.trial(trialId)}>trial {trialId}</a>}
        {trialId && experimentId && ' of '}
        {experimentId && <a href={paths.experiment(experimentId)}>experiment {experimentId}</a>}
        {checkpoint && (
          <p class="quiet">
            checkpoint <code title={checkpoint.uuid}>{checkpoint.uuid.slice(0, SHORT_ID)}</code>
          </p>
        )}
      </td>
      <td>{one.username}</td>
      <td>
        <Time at={one.creationTime} />
      </td>
      <td>
        {checkpoint && (
          <a class="row-link" href={`/checkpoints/${encodeURIComponent(checkpoint.uuid)}`} download title={`Checkpoint ${checkpoint.uuid}`}>
            Download
          </a>
        )}
        <EditVersion of={of} one={one} reload={reload} />
        <Confirm
          label="Delete…"
          name={`Delete version ${one.version}`}
          title={`Delete version ${one.version}?`}
          yes="Delete"
          no="Keep it"
          plain
          work={() => removeVersion(of.name, one.version)}
          done={reload}
        >
          Its checkpoint stays, and is protected no longer. The number is not given again.
        </Confirm>
      </td>
    </tr>
  );
}

function ModelActions({ one, reload }: { one: Model; reload: () => void }) {
  const { route } = useLocation();
  const { busy, error, run } = useWork();
  const save = async (fields: FormData): Promise<void> => {
    const name = field(fields, 'name');
    const labels = field(fields, 'labels').split(',').map((label) => label.trim());
    await patchModel(one.name, {
      ...(name === one.name ? {} : { name }),
      description: field(fields, 'description'),
      labels: labels.filter((label) => label !== ''),
    });
    if (name === one.name) reload();
    else route(paths.model(name));
  };
  return (
    <ActionMenu>
      <FormDialog label="Edit…" title="Edit model" submit="Save" work={save}>
        {() => (
          <Words name={one.name} description={one.description} labels={one.labels} />
        )}
      </FormDialog>
      <button
        type="button"
        disabled={busy}
        onClick={() => void run(() => archiveModel(one.name, !one.archived)).then(reload)}
      >
        {one.archived ? 'Unarchive' : 'Archive'}
      </button>
      <Confirm
        label="Delete…"
        title={`Delete model ${one.name}?`}
        yes="Delete"
        no="Keep it"
        work={() => removeModel(one.name)}
        done={() => route(paths.models)}
      >
        With its versions. Their checkpoints stay, and are protected no longer.
      </Confirm>
      <ErrorNote error={error} />
    </ActionMenu>
  );
}

const shellWord = (text: string): string =>
  /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;

// The searcher metrics of the experiments of some versions, by the experiment's id.
function useMetricNames(all: readonly ModelVersion[]): ReadonlyMap<number, string> {
  const ids = [...new Set(all.flatMap(({ checkpoint }) => checkpoint?.training?.experimentId ?? []))].slice(0, MAX_NAMED);
  const live = useLive(
    `metric names ${ids.join()}`,
    async (signal) => new Map(await Promise.all(ids.map(async (id) => [id, (await experiment(id, signal).catch(() => undefined))?.searcherMetric ?? ''] as const))),
    () => false,
  );
  return live.data ?? new Map();
}

function VersionTable({ one, all, reload }: { one: Model; all: readonly ModelVersion[]; reload: () => void }) {
  const names = useMetricNames(all);
  return (
    <Table label="Versions" heads={['Version', '#Metric', '#Batches', 'From', 'User', 'Registered', 'Actions']}>
      {[...all]
        .sort((a, b) => b.version - a.version)
        .map((version) => (
          <Version key={version.version} of={one} one={version} metricName={names.get(version.checkpoint?.training?.experimentId ?? 0)} reload={reload} />
        ))}
    </Table>
  );
}

function Versions({ one }: { one: Model }) {
  const live = useLive(
    `versions ${one.name}`,
    (signal) => versions(one.name, signal),
    (change) => change === 'everything',
  );
  return (
    <Loaded live={live}>
      {(all) => (
        <>
          {all.length === 0 && (
            <Empty icon="models" title="No versions yet" command={`det model register-version ${shellWord(one.name)} UUID`}>
              Press Register on a checkpoint, or run this with its UUID.
            </Empty>
          )}
          {all.length > 0 && <VersionTable one={one} all={all} reload={live.reload} />}
        </>
      )}
    </Loaded>
  );
}

const Metadata = ({ one }: { one: Model }) =>
  Object.keys(one.metadata ?? {}).length === 0 ? (
    <Empty icon="models" title="No metadata yet">
      Programs set it over the API: the data set, the license, a limit of use.
    </Empty>
  ) : (
    <pre tabIndex={0}>{JSON.stringify(sorted(one.metadata ?? {}), null, 2)}</pre>
  );

export function ModelPage({ id }: { id: string }) {
  const { query } = useQuery();
  const tab = currentTab(TABS, query.tab);
  const live = useLive(`model ${id}`, (signal) => model(id, signal), (change) => change === 'everything');
  useTitle(live.data?.name ?? 'Model');
  return (
    <Loaded live={live} missing={`There is no model ${id}.`}>
      {(one) => (
        <>
          <PageHead path={[[paths.models, 'Models']]} title={one.name} facts={one.archived && <Archived />} labels={one.labels}>
            <div class="actions">
              <ModelActions one={one} reload={live.reload} />
            </div>
          </PageHead>
          {one.description !== '' && <p class="quiet">{one.description}</p>}
          <Tabs names={TABS} current={tab} />
          {tab === 'Versions' && <Versions one={one} />}
          {tab === 'Notes' && (
            <MarkdownNotes
              place={`models/${one.id}`}
              text={one.notes}
              save={async (notes) => {
                await patchModel(one.name, { notes });
                live.reload();
              }}
            />
          )}
          {tab === 'Metadata' && <Metadata one={one} />}
        </>
      )}
    </Loaded>
  );
}
