// A name in a narrow place. It is shortened before its last characters, which tell runs of a series apart.
import { useLayoutEffect, useRef } from 'preact/hooks';

// Most characters that stay visible, from the beginning of a word if one begins among them; those without such a word;
// the least length of a name that can be shortened.
const TAIL = 11;
const SHORT_TAIL = 7;
const LEAST = 16;
// Fewest characters before the ellipsis: with fewer the end is dropped.
const LEAST_START = 3;

// The two parts of a name: one that can be shortened, and the end.
export function parted(text: string): [string, string] {
  const characters = [...text];
  if (characters.length < LEAST) return [text, ''];
  const word = characters.slice(-TAIL).findIndex((one) => /[\s_/.:-]/.test(one));
  const cut = characters.length - (word >= 0 && word < TAIL - 1 ? TAIL - word : SHORT_TAIL);
  // A space belongs to the first part: between the ellipsis and the end it would be a gap.
  const at = /\s/.test(characters[cut] ?? '') ? cut + 1 : cut;
  return [characters.slice(0, at).join(''), characters.slice(at).join('')];
}

// The text with one ellipsis before its end, neither beside spaces nor dots. `room` is the width for the text,
// `width` that of its part between two characters, `dots` that of an ellipsis.
export function shortened(text: string, end: string, room: number, width: (from: number, to: number) => number, dots: number): string {
  const tail = end.replace(/^[\s._/:-]+/, '');
  const place = text.length - tail.length;
  const cut = (most: number, rest: number): number => {
    let [low, high] = [0, most];
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if (width(0, middle) + rest <= room) low = middle;
      else high = middle - 1;
    }
    return text.slice(0, low).replace(/[\s._/:-]+$/, '').length;
  };
  const start = cut(text.length - end.length, dots + width(place, text.length));
  return start < LEAST_START ? `${text.slice(0, cut(text.length, dots))}…` : `${text.slice(0, start)}…${tail}`;
}

const ends = new WeakMap<Element, string>();
let ink: CanvasRenderingContext2D | null | undefined;

// The shortened name of an element; undefined if the name fits. Reads the layout only.
function fit(host: HTMLElement, room: number): string | undefined {
  const node = host.firstElementChild?.firstChild;
  if (!(node instanceof Text) || room === 0) return undefined;
  const range = document.createRange();
  const width = (from: number, to: number): number => {
    range.setStart(node, from);
    range.setEnd(node, to);
    return range.getBoundingClientRect().width;
  };
  if (width(0, node.length) <= room + 0.5) return undefined;
  ink ??= document.createElement('canvas').getContext('2d');
  const { fontWeight, fontSize, fontFamily } = getComputedStyle(host);
  if (ink) ink.font = `${fontWeight} ${fontSize} ${fontFamily}`;
  return shortened(node.data, ends.get(host) ?? '', room, width, ink?.measureText('…').width ?? 0);
}

// One observer for all names: it calls after layout and before paint, so that a name never appears unshortened.
const observer =
  typeof ResizeObserver === 'undefined'
    ? undefined
    : new ResizeObserver((entries) => {
        const found = entries.map(({ target, contentRect }) => [target as HTMLElement, fit(target as HTMLElement, contentRect.width)] as const);
        for (const [host, short] of found)
          if (short === undefined) delete host.dataset.short;
          else host.dataset.short = short;
      });

// A name that keeps `end` when it is shortened: by default its last words. An empty end leaves the ellipsis to the style.
// The text stays whole for readers of the page, copies and searches.
export function Name({ text, end = parted(text)[1] }: { text: string; end?: string }) {
  const host = useRef<HTMLSpanElement>(null);
  useLayoutEffect(() => {
    const element = host.current;
    if (!element) return;
    ends.set(element, end);
    observer?.observe(element);
    return () => observer?.unobserve(element);
  }, [text, end]);
  if (end === '') return <>{text}</>;
  return (
    <span class="name" ref={host}>
      <span>{text}</span>
    </span>
  );
}
