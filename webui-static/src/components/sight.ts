// Owns that a row of links which is wider than its place shows the one that is current.
import { useEffect, useRef } from 'preact/hooks';
import type { RefObject } from 'preact';

// For the element that scrolls, whenever `current` is another.
export function useCurrentInSight<T extends HTMLElement>(current: string): RefObject<T> {
  const row = useRef<T>(null);
  useEffect(() => {
    const [host, link] = [row.current, row.current?.querySelector<HTMLElement>('[aria-current]')];
    if (!host || !link) return;
    // Not scrollIntoView(): that would move the page too.
    const [frame, own] = [host.getBoundingClientRect(), link.getBoundingClientRect()];
    host.scrollLeft += own.left - frame.left - (frame.width - own.width) / 2;
  }, [current]);
  return row;
}
