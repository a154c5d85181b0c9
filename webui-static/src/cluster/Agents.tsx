// Map of agents and slots: allocations, and disabling an agent or a slot.
import { paths } from '../address';
import { setAgent, setSlot } from '../calls/cluster';
import { field, FormDialog } from '../components/FormDialog';
import { Name } from '../components/Name';
import { ErrorNote } from '../components/notes';
import { span } from '../format';
import { readingParts } from './reading';
import { useWork } from '../work';
import type { Agent, Slot } from '../wire';

// The device of slots that stand for no device.
const ARTIFICIAL = 'artificial';

interface Switch {
  what: string; // "agent a1", "slot 2 of agent a1"
  on: boolean;
  small?: boolean;
  set: (on: boolean, drain: boolean) => Promise<unknown>;
}

function Switch({ what, on, small, set }: Switch) {
  const { busy, error, run } = useWork();
  if (!on) {
    return (
      <>
        <button
          type="button"
          class={small ? 'plain' : ''}
          aria-label={`Enable ${what}`}
          disabled={busy}
          onClick={() => void run(() => set(true, false))}
        >
          Enable
        </button>
        <ErrorNote error={error} />
      </>
    );
  }
  return (
    <FormDialog
      label="Disable…"
      name={`Disable ${what}`}
      title={`Disable ${what}?`}
      submit="Disable"
      plain={small}
      work={(fields) => set(false, field(fields, 'drain') === 'on')}
    >
      {() => (
        <>
          <p>The {small ? 'slot' : 'agent'} takes no new work until it is enabled again, even after a restart.</p>
          <label class="check">
            <input type="checkbox" name="drain" defaultChecked /> Let what runs there finish
          </label>
          <p class="quiet">Otherwise the running task saves a checkpoint and waits for another slot.</p>
        </>
      )}
    </FormDialog>
  );
}

// Why a slot is out of service. Enabling it checks its device.
function Check({ what, problem, check }: { what: string; problem: string; check: () => Promise<unknown> }) {
  const { busy, error, run } = useWork();
  return (
    <>
      <span class="slot-problem">{problem}</span>
      <button type="button" class="plain" aria-label={`Check ${what}`} disabled={busy} onClick={() => void run(check)}>
        Check
      </button>
      <ErrorNote error={error} />
    </>
  );
}

// Experiments by the ids of their trials.
export type TrialNames = ReadonlyMap<number, string>;

function SlotBox({ slot, agent, names }: { slot: Slot; agent: Agent; names: TrialNames }) {
  const holder = slot.container;
  const device = slot.device?.brand || slot.device?.type?.replace('TYPE_', '') || 'slot';
  const broken = slot.problem !== '';
  const isOff = !slot.enabled || broken;
  const text = slot.draining ? 'Draining' : !slot.enabled ? 'Disabled' : broken ? 'Out of service' : 'Free';
  const what = `slot ${slot.id} of agent ${agent.id}`;
  return (
    <div class={`slot ${holder ? 'slot-held' : ''} ${isOff ? 'slot-off' : ''} ${holder || isOff ? '' : 'slot-free'}`}>
      <span class="quiet" title={device}>
        Slot {slot.id}
        {device !== ARTIFICIAL && ` · ${device}`}
      </span>
      {holder && holder.trialId > 0 ? (
        <>
          <a class="slot-holder" href={paths.trial(holder.trialId)} title={names.get(holder.trialId)}>
            <Name text={names.get(holder.trialId) ?? `Trial ${holder.trialId}`} />
          </a>
          {names.has(holder.trialId) && <span class="quiet">Trial {holder.trialId}</span>}
          {/* The head of a draining agent has the word for all of its slots. */}
          {slot.draining && agent.enabled && <span class="quiet">{text}</span>}
        </>
      ) : (
        <span>{holder?.taskId ? <a href={paths.task(holder.taskId)}>Command</a> : text}</span>
      )}
      {slot.reading && <span class="quiet slot-reading">{readingParts(slot.reading).join(' · ')}</span>}
      {broken && <Check what={what} problem={slot.problem} check={() => setSlot(agent.id, slot.id, true)} />}
      {/* Slots of a disabled agent are disabled with it. */}
      {agent.enabled && (
        <Switch
          what={what}
          on={slot.enabled}
          small
          set={(on, drain) => setSlot(agent.id, slot.id, on, drain)}
        />
      )}
    </div>
  );
}

interface CardProps {
  agent: Agent;
  now: number;
  names: TrialNames;
  alone: boolean; // the only agent: its slots are those of the cluster
}

export function AgentCard({ agent, now, names, alone }: CardProps) {
  const slots = Object.values(agent.slots).sort((a, b) => Number(a.id) - Number(b.id));
  const held = slots.filter((slot) => slot.container).length;
  const state = !agent.connected ? 'Away' : agent.draining ? 'Draining' : agent.enabled ? '' : 'Disabled';
  return (
    <article class="card" aria-label={`Agent ${agent.id}`}>
      <div class="agent-head">
        <div>
          <h3 class="named">
            {agent.id} {state !== '' && <span class="state state-waiting">{state}</span>}
          </h3>
          <p class="quiet">
            {!alone && `${held} of ${slots.length} slots in use · `}
            up {span(agent.registeredTime, undefined, now)} · pool&nbsp;{agent.resourcePools.join(', ') || 'default'} · version&nbsp;{agent.release}
          </p>
        </div>
        <Switch what={`agent ${agent.id}`} on={agent.enabled} set={(on, drain) => setAgent(agent.id, on, drain)} />
      </div>
      {(agent.sandbox === 'off' || agent.sandbox === 'partial') && (
        <section class="failure" aria-label={`Sandbox of agent ${agent.id}`}>
          <p>
            <strong>
              {agent.sandbox === 'off'
                ? 'sandbox off: tasks have all rights of the agent on its machine'
                : 'the sandbox of tasks is partial'}
            </strong>
            <span>{agent.sandboxMissing}</span>
          </p>
        </section>
      )}
      {agent.problem !== '' && (
        <section class="failure" aria-label={`Problem of agent ${agent.id}`}>
          <p>
            <strong>takes no new work</strong>
            <span>{agent.problem}</span>
          </p>
        </section>
      )}
      <div class="slots">
        {slots.map((slot) => (
          <SlotBox key={slot.id} slot={slot} agent={agent} names={names} />
        ))}
      </div>
    </article>
  );
}
