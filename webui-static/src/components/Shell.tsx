// The frame of every page: navigation, cluster name, command palette, the signed-in user, and the connection.
import { useComputed, useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useLocation } from 'preact-iso';
import { useEffect, useRef } from 'preact/hooks';
import { paths } from '../address';
import { ApiError, masterInfo } from '../api';
import { useClosing } from '../closing';
import { connection } from '../events';
import { followKeys, helpOpen } from '../keys';
import { useLive } from '../live';
import { signOut, user } from '../session';
import { Icon, Logo, type IconName } from './Icon';
import { KeyList } from './KeyList';
import { ErrorNote } from './notes';
import { Palette, paletteOpen } from './Palette';

function Freshness() {
  const lost = connection.value === 'lost';
  const text = { live: 'Live', connecting: 'Connecting…', lost: 'Reconnecting…' }[connection.value];
  return (
    <span
      class={`freshness freshness-${connection.value}`}
      role="status"
      title={lost ? 'The page may be out of date' : undefined}
    >
      {text}
    </span>
  );
}

const PLACES: [string, string, IconName][] = [
  ['Dashboard', paths.home, 'dashboard'],
  ['Experiments', paths.experiments, 'experiments'],
  ['Models', paths.models, 'models'],
  ['Tasks', paths.tasks, 'tasks'],
  ['Workspaces', paths.workspaces, 'workspaces'],
  ['Cluster', paths.cluster, 'cluster'],
  ['Users', paths.users, 'users'],
  ['Webhooks', paths.webhooks, 'webhook'],
  ['Settings', paths.settings, 'settings'],
];

// Pages that belong to a navigation entry without sharing its address.
const BELOW: Record<string, string[]> = {
  [paths.experiments]: ['/det/trials', '/det/compare'],
  [paths.workspaces]: ['/det/projects/'],
  [paths.users]: [paths.quotas],
};

// The entries that a phone shows; the others are in a sheet.
const ON_PHONE = [paths.home, paths.experiments, paths.models, paths.cluster];

function Navigation({ leave }: { leave: () => void }) {
  const { path } = useLocation();
  const row = useRef<HTMLElement>(null);
  const isOpen = useSignal(false);
  useClosing(row);
  const here = (to: string): boolean =>
    to === paths.home
      ? path === '/det/' || path === '/det'
      : path.startsWith(to) || (BELOW[to] ?? []).some((start) => path.startsWith(start));
  const link = ([name, to, icon]: (typeof PLACES)[number], kind?: string) => (
    <a key={to} href={to} class={kind} aria-current={here(to) ? 'page' : undefined}>
      <Icon name={icon} />
      {name}
    </a>
  );
  const others = PLACES.filter(([, to]) => !ON_PHONE.includes(to));
  return (
    <nav aria-label="Main" ref={row}>
      {PLACES.map((place) => link(place, ON_PHONE.includes(place[1]) ? '' : 'by-more'))}
      <details class="tool phone" open={isOpen.value} onToggle={(event) => (isOpen.value = event.currentTarget.open)}>
        <summary aria-current={others.some(([, to]) => here(to)) ? 'true' : undefined}>
          <Icon name="more" />
          More
        </summary>
        {isOpen.value && (
          <div class="tool-body" onClick={() => (isOpen.value = false)}>
            {others.map((place) => link(place))}
            <button type="button" class="plain leave" onClick={leave}>
              <Icon name="signout" />
              Sign out
            </button>
          </div>
        )}
      </details>
    </nav>
  );
}

function KeyHelp() {
  const dialog = useRef<HTMLDialogElement>(null);
  const open = helpOpen.value;
  useEffect(() => {
    if (open && !dialog.current?.open) dialog.current?.showModal();
  }, [open]);
  return (
    <dialog ref={dialog} aria-labelledby="keys-title" onClose={() => (helpOpen.value = false)}>
      <h2 id="keys-title">Keys</h2>
      <KeyList />
      <form method="dialog" class="actions">
        <button type="submit">Close</button>
      </form>
    </dialog>
  );
}

function ClusterName() {
  const info = useLive('master', masterInfo, () => false);
  return <span class="cluster-name">{info.data?.clusterName || 'Determinant'}</span>;
}

export function Shell({ children }: { children: ComponentChildren }) {
  const { route } = useLocation();
  useEffect(() => followKeys(route), []);
  const error = useSignal<ApiError | undefined>(undefined);
  const isLost = useComputed(() => connection.value === 'lost');
  const leave = (): void => {
    signOut().catch(
      (cause) => (error.value = cause instanceof ApiError ? cause : new ApiError(-1, String(cause))),
    );
  };
  return (
    <div class="frame">
      <a class="skip" href="#content">
        Skip to the content
      </a>
      <div class="rail">
        <a class="brand" href={paths.home} aria-label="Determinant">
          <Logo />
        </a>
        <Navigation leave={leave} />
      </div>
      <header class="top">
        <ClusterName />
        <button type="button" class="jump" onClick={() => (paletteOpen.value = true)}>
          <Icon name="search" />
          <span>Search or jump to…</span>
          <kbd>Ctrl K</kbd>
        </button>
        <span class="spring" />
        <Freshness />
        <span class="who">{user.value?.displayName || user.value?.username}</span>
        <button type="button" class="plain by-rail" onClick={leave} title="Sign out" aria-label="Sign out">
          <Icon name="signout" />
        </button>
      </header>
      {isLost.value && (
        <p class="banner" role="status">
          The connection to the master is lost: what you see may be out of date. Reconnecting…
        </p>
      )}
      <main id="content" tabIndex={-1}>
        <ErrorNote error={error.value} />
        {children}
      </main>
      <KeyHelp />
      <Palette leave={leave} />
    </div>
  );
}
