// Tabs of a page. They are links, so each tab has an address and a history entry.
import type { ComponentChildren } from 'preact';
import { useLocation } from 'preact-iso';
import { useEffect, useRef } from 'preact/hooks';

// A ref for a row of links. Scrolls the current one into view when the row overflows.
function useCurrentInSight(current: string): { current: HTMLElement | null } {
  const row = useRef<HTMLElement>(null);
  useEffect(() => {
    const [host, link] = [row.current, row.current?.querySelector<HTMLElement>('[aria-current]')];
    if (!host || !link) return;
    // scrollIntoView() would also scroll the page.
    const [frame, own] = [host.getBoundingClientRect(), link.getBoundingClientRect()];
    host.scrollLeft += own.left - frame.left - (frame.width - own.width) / 2;
  }, [current]);
  return row;
}

// The first word of a tab's name is its name in the address; the first tab has none. `keep` lists the query
// keys that every tab keeps.
export function Tabs(props: { names: readonly string[]; current: string; keep?: readonly string[] }) {
  const { names, current, keep = [] } = props;
  const { path, query } = useLocation();
  const row = useCurrentInSight(current);
  const kept = keep.filter((key) => query[key]).map((key) => [key, query[key] ?? '']);
  const to = (more: string[][]): string => {
    const text = new URLSearchParams([...kept, ...more]).toString();
    return text === '' ? path : `${path}?${text}`;
  };
  return (
    <nav class="tabs" aria-label="Views" ref={row}>
      {names.map((name, at) => (
        <a
          key={name}
          href={to(at === 0 ? [] : [['tab', name.toLowerCase()]])}
          aria-current={name === current ? 'page' : undefined}
        >
          {name}
        </a>
      ))}
    </nav>
  );
}

export const currentTab = <T extends string>(names: readonly T[], tab: string | undefined): T =>
  names.find((name) => name.toLowerCase() === tab) ?? (names[0] as T);

export const Facts = ({ facts }: { facts: [string, ComponentChildren][] }) => (
  <dl class="facts">
    {facts
      .filter(([, value]) => value !== '' && value !== null && value !== undefined && !(Array.isArray(value) && value.length === 0))
      .map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
  </dl>
);
