// Keeps a growing log scrolled to its end until the user scrolls up. Shared by
// task logs and the master's log.
import type { Signal } from '@preact/signals';

// Distance from the end, in pixels, that still counts as being at the end.
const SLACK = 8;

export function scrollToEnd(element: HTMLElement): void {
  element.scrollTop = element.scrollHeight;
}

// Keeps `element` scrolled to the end of `content` while `follow` is true. Scrolling up clears `follow`;
// scrolling down to the end calls `atEnd`. Returns a function that stops it.
export function followEnd(
  element: HTMLElement,
  content: HTMLElement,
  follow: Signal<boolean>,
  atEnd: () => void,
): () => void {
  let before = element.scrollTop;
  // The scroll event may arrive after more lines were added, so only an upward
  // move is attributed to the user.
  const onScroll = (): void => {
    const up = element.scrollTop < before;
    before = element.scrollTop;
    if (element.scrollTop + element.clientHeight >= element.scrollHeight - SLACK) atEnd();
    else if (up) follow.value = false;
  };
  // The height also changes when the browser lays out a block for the first time.
  const grown = new ResizeObserver(() => follow.value && scrollToEnd(element));
  grown.observe(content);
  element.addEventListener('scroll', onScroll);
  return () => {
    grown.disconnect();
    element.removeEventListener('scroll', onScroll);
  };
}
