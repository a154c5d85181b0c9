// Webhooks: endpoints that are notified when experiments change state, when a log line matches, when
// a metric crosses a threshold, or on an alert.
import { useSignal } from '@preact/signals';
import { useTitle } from '../address';
import { workspaces, type Workspace } from '../calls/places';
import { makeWebhook, moveWebhook, removeWebhook, testWebhook, triggerText, triggerState, webhooks, type Trigger, type Webhook } from '../calls/webhooks';
import { Confirm } from '../components/Confirm';
import { Empty } from '../components/Empty';
import { field, FormDialog } from '../components/FormDialog';
import { Loaded } from '../components/Loaded';
import { Table } from '../components/Table';
import { Time } from '../components/Time';
import { ApiError } from '../http';
import { useLive } from '../live';
import { user } from '../session';
import { useWork } from '../work';

const STATES = ['COMPLETED', 'ERROR', 'CANCELED', 'ACTIVE', 'PAUSED'];

function triggersOf(fields: FormData): Trigger[] {
  const states = STATES.filter((state) => field(fields, state) === 'on').map((state) => ({
    triggerType: 'TRIGGER_TYPE_EXPERIMENT_STATE_CHANGE',
    condition: { state },
  }));
  const [regex, metric] = [field(fields, 'regex'), field(fields, 'metric')];
  return [
    ...states,
    ...(regex === '' ? [] : [{ triggerType: 'TRIGGER_TYPE_TASK_LOG', condition: { regex } }]),
    ...(metric === '' ? [] : [{ triggerType: 'TRIGGER_TYPE_METRIC_THRESHOLD_EXCEEDED', condition: { metric, [field(fields, 'side')]: Number(field(fields, 'limit')) } }]),
    ...(field(fields, 'alert') === 'on' ? [{ triggerType: 'TRIGGER_TYPE_CUSTOM', condition: {} }] : []),
  ];
}

const Fields = ({ places }: { places: readonly Workspace[] }) => (
  <>
    <label>
      URL
      <input type="text" name="url" required placeholder="https://" autocomplete="off" />
    </label>
    <label>
      Name
      <input type="text" name="name" autocomplete="off" />
    </label>
    <label>
      Format
      <select name="format">
        <option value="WEBHOOK_TYPE_DEFAULT">JSON</option>
        <option value="WEBHOOK_TYPE_SLACK">Slack</option>
      </select>
    </label>
    <label>
      Workspace
      <select name="workspace">
        {user.value?.admin && <option value="0">All workspaces</option>}
        {places.map((one) => (
          <option key={one.id} value={one.id}>
            {one.name}
          </option>
        ))}
      </select>
    </label>
    <label>
      Experiments
      <select name="mode">
        <option value="WEBHOOK_MODE_WORKSPACE">All of the workspace</option>
        <option value="WEBHOOK_MODE_SPECIFIC">Those that name it in integrations.webhooks</option>
      </select>
    </label>
    <fieldset>
      <legend>Notify when an experiment is</legend>
      {STATES.map((state) => (
        <label class="check" key={state}>
          <input type="checkbox" name={state} defaultChecked={state === 'ERROR'} /> {triggerState(state)}
        </label>
      ))}
    </fieldset>
    <label>
      Notify when a log line matches (regex)
      <input type="text" name="regex" autocomplete="off" />
    </label>
    <fieldset class="metric-rule">
      <legend>Notify once per trial when a metric is</legend>
      <input type="text" name="metric" aria-label="Metric" placeholder="validation_loss" autocomplete="off" />
      <select name="side" aria-label="Side">
        <option value="above">above</option>
        <option value="below">below</option>
      </select>
      <input type="text" name="limit" aria-label="Threshold" inputMode="decimal" autocomplete="off" />
    </fieldset>
    <label class="check">
      <input type="checkbox" name="alert" /> Notify when a task raises an alert
    </label>
  </>
);

function NewWebhook({ places, reload }: { places: readonly Workspace[]; reload: () => void }) {
  const make = async (fields: FormData): Promise<void> => {
    const [metric, limit] = [field(fields, 'metric'), field(fields, 'limit')];
    if (metric === '' && limit !== '') throw new ApiError(400, 'Name the metric of the threshold.');
    if (metric !== '' && (limit === '' || !Number.isFinite(Number(limit)))) throw new ApiError(400, 'The threshold of the metric must be a number.');
    const triggers = triggersOf(fields);
    if (triggers.length === 0) throw new ApiError(400, 'Choose what the webhook is notified of.');
    if (field(fields, 'alert') === 'on' && field(fields, 'mode') === 'WEBHOOK_MODE_WORKSPACE')
      throw new ApiError(400, 'Alerts are sent only to webhooks that experiments name. Choose "Those that name it" as Experiments.');
    await makeWebhook({
      url: field(fields, 'url'),
      name: field(fields, 'name'),
      webhookType: field(fields, 'format'),
      workspaceId: Number(field(fields, 'workspace')),
      mode: field(fields, 'mode'),
      triggers,
    });
    reload();
  };
  return (
    <FormDialog label="New webhook…" title="New webhook" submit="Create" work={make}>
      {() => <Fields places={places} />}
    </FormDialog>
  );
}

function Actions({ one, busy, test, reload }: { one: Webhook; busy: boolean; test: () => Promise<void>; reload: () => void }) {
  const name = one.name || one.url;
  const move = async (fields: FormData): Promise<void> => {
    await moveWebhook(one.id, field(fields, 'url'));
    reload();
  };
  return (
    <>
      <button type="button" class="plain" aria-label={`Test ${name}`} disabled={busy} onClick={() => void test()}>
        {busy ? 'Testing…' : 'Test'}
      </button>
      <FormDialog label="Edit…" name={`Edit ${name}`} title="URL of the webhook" submit="Save" plain work={move}>
        {() => (
          <label>
            URL
            <input type="text" name="url" required defaultValue={one.url} autocomplete="off" />
          </label>
        )}
      </FormDialog>
      <Confirm
        label="Delete…"
        name={`Delete ${name}`}
        title="Delete this webhook?"
        yes="Delete"
        no="Keep it"
        plain
        work={() => removeWebhook(one.id)}
        done={reload}
      >
        Messages that were not delivered are dropped: {one.url}
      </Confirm>
    </>
  );
}

function Row({ one, place, reload }: { one: Webhook; place: string; reload: () => void }) {
  const { busy, error, run } = useWork();
  const tested = useSignal(false);
  const test = async (): Promise<void> => {
    tested.value = await run(() => testWebhook(one.id));
    reload();
  };
  return (
    <>
      <tr>
        <th scope="row">{one.name || `Webhook ${one.id}`}</th>
        <td class="one-line" title={one.url}>
          {one.url}
        </td>
        <td>{one.webhookType === 'WEBHOOK_TYPE_SLACK' ? 'Slack' : 'JSON'}</td>
        <td>{place}</td>
        <td>{one.mode === 'WEBHOOK_MODE_SPECIFIC' ? 'Those that name it' : 'All'}</td>
        <td class="reason">{one.triggers.map(triggerText).join(', ')}</td>
        <td class="reason">
          {one.outcome || 'None yet'} {one.attempted && <Time at={one.attempted} />}
          {tested.value && <div role="status">Test delivered</div>}
        </td>
        <td>
          <Actions one={one} busy={busy} test={test} reload={reload} />
        </td>
      </tr>
      {error && (
        <tr class="continued">
          <td colSpan={8} class="reason failed" role="alert">
            Test failed: {error.message.replace(/^webhook \d+: /, '')}
          </td>
        </tr>
      )}
    </>
  );
}

export function WebhooksPage() {
  useTitle('Webhooks');
  const live = useLive('webhooks', webhooks, (change) => change === 'everything');
  const places = useLive('webhook workspaces', workspaces, (change) => change === 'everything');
  const placeOf = (id: number): string => (id === 0 ? 'All' : (places.data?.find((one) => one.id === id)?.name ?? String(id)));
  return (
    <>
      <div class="section-head">
        <h1>Webhooks</h1>
        <span class="spring" />
        {live.data?.length !== 0 && <NewWebhook places={places.data ?? []} reload={live.reload} />}
      </div>
      <p class="intro">Endpoints that receive a signed message when experiments change state, a log line matches, a metric crosses a threshold, or a task raises an alert.</p>
      <Loaded live={live}>
        {(all) =>
          all.length === 0 ? (
            <Empty icon="webhook" title="No webhooks yet" command="det webhook create URL --state ERROR">
              <NewWebhook places={places.data ?? []} reload={live.reload} />
            </Empty>
          ) : (
            <Table label="Webhooks" heads={['Name', 'URL', 'Format', 'Workspace', 'Experiments', 'Notified of', 'Last delivery', 'Actions']}>
              {all.map((one) => (
                <Row key={one.id} one={one} place={placeOf(one.workspaceId)} reload={live.reload} />
              ))}
            </Table>
          )
        }
      </Loaded>
    </>
  );
}
