// One entry of media: an image on a canvas, a histogram, a text, a table, or a file to download.
import { useLayoutEffect, useRef } from 'preact/hooks';
import { fileAddress, pathOf, type Media } from '../calls/media';
import { Markdown } from '../components/Markdown';
import { bytes, grouped, metric } from '../format';
import type { Contents } from './contents';

const MAX_SCALE = 32; // small images are enlarged by a whole number
const CELL_WIDTH = 240;
const MAX_ROWS = 100; // of a table

const HISTOGRAM_HEIGHT = 110;
const BASE = 94; // of the bars
const HIGHEST = 78; // bar

interface Props {
  one: Media;
  contents: Contents;
  width: number; // of images in CSS pixels, at most
}

interface Size {
  width: number;
  height: number;
}

// Pixels of the newest image of each name: the size to reserve for the next one.
const sizes = new Map<string, Size>();
const ASSUMED: Size = { width: 4, height: 4 };

// Width of an image in CSS pixels.
const shownWidth = (image: Size, width: number): number => {
  const scale = Math.max(1, Math.min(MAX_SCALE, Math.floor(width / image.width)));
  return Math.min(Math.max(width, CELL_WIDTH), image.width * scale);
};

// The place of an image that is not in sight or not loaded.
export function Reserved({ name, width }: { name: string; width: number }) {
  const size = sizes.get(name) ?? ASSUMED;
  const own = shownWidth(size, width);
  return <div class="media-blank" style={{ width: `${own}px`, height: `${Math.round((own * size.height) / size.width)}px` }} />;
}

function Picture({ one, contents, width }: Props) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const sized = useRef(0);
  const image = contents.image(one.digest);
  useLayoutEffect(() => {
    const target = canvas.current;
    if (!target || !image) return;
    // Setting the size clears the canvas.
    if (target.width !== image.width || target.height !== image.height || sized.current !== width) {
      sized.current = width;
      target.width = image.width;
      target.height = image.height;
      target.style.width = `${shownWidth(image, width)}px`;
      sizes.set(one.name, { width: image.width, height: image.height });
    }
    target.getContext('2d')?.drawImage(image, 0, 0);
  }, [image, width]);
  if (!image && sized.current === 0) return <Reserved name={one.name} width={width} />;
  // The picture of another step stays until the new one is decoded.
  return <canvas ref={canvas} role="img" aria-label={`${one.name} at step ${one.step}${one.caption && `: ${one.caption}`}`} />;
}

const parsed = <T,>(content: Uint8Array): T | undefined => {
  try {
    return JSON.parse(new TextDecoder().decode(content)) as T;
  } catch {
    return undefined;
  }
};

function Histogram({ one, content }: { one: Media; content: Uint8Array }) {
  const data = parsed<{ edges: number[]; counts: number[] }>(content);
  if (!data) return <p class="quiet">The histogram cannot be read.</p>;
  const [left = 0, right = 1] = [data.edges[0], data.edges[data.edges.length - 1]];
  const top = Math.max(...data.counts, 1);
  const place = (value: number): number => ((value - left) / (right - left)) * CELL_WIDTH;
  return (
    <svg class="histogram" viewBox={`0 0 ${CELL_WIDTH} ${HISTOGRAM_HEIGHT}`} width={CELL_WIDTH} height={HISTOGRAM_HEIGHT} role="img" aria-label={`${one.name} at step ${one.step}`}>
      {data.counts.map((count, at) => {
        const [from = 0, to = 0] = [data.edges[at], data.edges[at + 1]];
        const height = (count / top) * HIGHEST;
        return <rect key={at} x={place(from)} y={BASE - height} width={Math.max(0.5, place(to) - place(from) - 0.5)} height={height} />;
      })}
      <text x={0} y={BASE + 13}>
        {metric(left).replace('-', '−')}
      </text>
      <text x={0} y={10}>
        max count {grouped(top)}
      </text>
      <text x={CELL_WIDTH} y={BASE + 13} class="end">
        {metric(right).replace('-', '−')}
      </text>
    </svg>
  );
}

function TableView({ one, content }: { one: Media; content: Uint8Array }) {
  const data = parsed<{ columns: string[]; rows: (string | number | boolean | null)[][] }>(content);
  if (!data) return <p class="quiet">The table cannot be read.</p>;
  return (
    <div class="table-frame" role="region" aria-label={`Table ${one.name}`} tabIndex={0}>
      <table>
        <thead>
          <tr>
            {data.columns.map((name, at) => (
              <th scope="col" key={at} class={typeof data.rows[0]?.[at] === 'number' ? 'number' : ''}>
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {data.rows.slice(0, MAX_ROWS).map((row, at) => (
            <tr key={at}>
              {row.map((value, column) => (
                <td key={column} class={typeof value === 'number' ? 'number' : ''}>
                  {typeof value === 'number' ? metric(value) : String(value ?? '')}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      {data.rows.length > MAX_ROWS && <p class="quiet">and {data.rows.length - MAX_ROWS} more rows; download the file for all</p>}
    </div>
  );
}

export function MediaCell({ one, contents, width }: Props) {
  if (one.kind === 'KIND_FILE')
    return (
      <a href={fileAddress(one.trialId, pathOf(one))} download>
        {one.fileName} ({bytes(one.size)})
      </a>
    );
  const wrong = contents.error(one.digest);
  if (wrong) return <p class="quiet">{wrong}</p>;
  if (one.kind === 'KIND_IMAGE') return <Picture one={one} contents={contents} width={width} />;
  const content = contents.of(one.digest);
  if (!content && one.kind === 'KIND_HISTOGRAM') return <div class="media-blank" style={{ width: `${CELL_WIDTH}px`, height: `${HISTOGRAM_HEIGHT}px` }} />;
  if (!content) return <p class="quiet">Loading…</p>;
  if (one.kind === 'KIND_TEXT') return <Markdown text={new TextDecoder().decode(content)} />;
  if (one.kind === 'KIND_HISTOGRAM') return <Histogram one={one} content={content} />;
  return <TableView one={one} content={content} />;
}
