// Axes of the charts of a search: the metric, the length of training with its stages, and the time.
import type { Dimension } from '../charts/dimensions';
import { timeTexts } from '../charts/series';
import { overlap, shortened, ticks } from '../charts/ticks';
import { counted, grouped } from '../format';
import { timeTicks, type Lane, type LengthScale } from './lanes';

// Pixels around the plot. On the right are the ids of trials that train to the end, below it the labels and the name of the
// axis, above it the names of stages or the name of the other axis.
export const SIDE = 56;
export const RIGHT = 40;
export const BOTTOM = 36;
export const TOP = 24;
// Ticks of the metric; least pixels between round lengths; pixels of a character of a length and of the name of a stage.
const LEVELS = 4;
const LENGTHS_APART = 72;
const DIGIT = 7;
const LETTER = 5.2;
// Minimum distance of axis labels, in pixels.
const APART = 13;
const TIMES_APART = 60;

export const xOf = (part: number, width: number): number => SIDE + part * (width - SIDE - RIGHT);
export const yOf = (part: number, height: number): number => height - BOTTOM - part * (height - TOP - BOTTOM);

// Size of the picture in pixels.
interface Size {
  width: number;
  height: number;
}

interface StageMark {
  name: string;
  counts: string; // "16 → 4" trials
  length: number;
  about: string;
}

const stagesOf = (lane: Lane): StageMark[] =>
  lane.rungs.map(({ length, came, wentOn }, at) => ({
    name: `Stage ${at + 1}`,
    counts: `${came}${wentOn === undefined ? '' : ` → ${wentOn}`}`,
    length,
    about: `${counted(came, 'trial')} reached this stage (a rung)${wentOn === undefined ? '' : `, ${wentOn} continued`}`,
  }));

// The name of the axis of lengths.
const lengthName = (unit: string, scale: LengthScale): string => `${unit}${scale.isLog ? ', log scale' : ''}`;

// The labeled lengths, longest first: the stages, and the ends of the axis. A logarithmic one has no 0.
const marksOf = (lane: Lane, scale: LengthScale): number[] =>
  [...new Set([...lane.rungs.map((one) => one.length), scale.longest, ...(scale.isLog ? [] : [0])])].sort((a, b) => b - a);

const NameBelow = ({ text, width, height }: Size & { text: string }) => (
  <text x={(SIDE + width - RIGHT) / 2} y={height - 4} text-anchor="middle" class="axis-name">
    {text}
  </text>
);

function Values({ values, width, height }: Size & { values: Dimension }) {
  return (
    <>
      {ticks(values, LEVELS).map(({ at, text }) => (
        <g key={text}>
          <line class="grid" x1={SIDE} x2={width - RIGHT} y1={yOf(at, height)} y2={yOf(at, height)} />
          <text x={SIDE - 8} y={yOf(at, height) + 4} text-anchor="end">
            {text}
          </text>
        </g>
      ))}
    </>
  );
}

function Times({ latest, width, height }: Size & { latest: number }) {
  const x = (seconds: number): number => xOf(seconds / latest, width);
  const times = timeTicks(latest, Math.max(1, Math.floor((width - SIDE - RIGHT) / TIMES_APART)));
  const texts = timeTexts(times);
  return (
    <>
      {times.map((time, at) => (
        <g key={time}>
          <line class="grid" x1={x(time)} x2={x(time)} y1={TOP} y2={height - BOTTOM} />
          <text x={x(time)} y={height - BOTTOM + 16} text-anchor="middle">
            {texts[at]}
          </text>
        </g>
      ))}
    </>
  );
}

export interface AxesProps extends Size {
  lane: Lane;
  unit: string; // of lengths
  latest: number; // seconds
  scale: LengthScale;
  values: Dimension | undefined; // of the metric; undefined without reports
}

// The stages across, and the metric, which the title of the chart names.
export function LengthAxes({ lane, unit, scale, values, width, height }: AxesProps) {
  const x = (length: number): number => xOf(scale.part(length), width);
  const range = { kind: 'linear' as const, words: [], min: 0, max: scale.longest, isWhole: true };
  const rounds = scale.isLog ? [] : ticks(range, Math.floor((width - SIDE - RIGHT) / LENGTHS_APART)).map(({ at }) => Math.round(at * scale.longest));
  const label = (mark: number): { x: number; text: string } => ({ x: x(mark), text: grouped(mark) });
  // Round lengths where stages leave room.
  const named = [...marksOf(lane, scale), ...rounds].reduce<number[]>(
    (kept, mark) => (kept.some((other) => overlap(label(mark), label(other), DIGIT)) ? kept : [...kept, mark]),
    [],
  );
  const stages = stagesOf(lane);
  const full = stages.map(({ name, counts, length }, at) => ({ x: x(length), text: `${name} · ${counts}`, short: at === 0 ? name : String(at + 1) }));
  const fits = shortened(full, LETTER).every((text, at) => text === full[at]?.text);
  const names = full.map(({ text, short }) => (fits ? text : short));
  return (
    <>
      {values && <Values values={values} width={width} height={height} />}
      {stages.map(({ name, length, about }, at) => (
        <g key={name}>
          <line class="stage" x1={x(length)} x2={x(length)} y1={TOP} y2={height - BOTTOM} />
          <text x={x(length)} y={TOP - 8} text-anchor="middle">
            {names[at]}
            <title>{about}</title>
          </text>
        </g>
      ))}
      {named.map((mark) => (
        <text key={mark} x={x(mark)} y={height - BOTTOM + 16} text-anchor="middle">
          {grouped(mark)}
        </text>
      ))}
      <NameBelow text={lengthName(unit, scale)} width={width} height={height} />
    </>
  );
}

const TIME = 'time since the training began';

// The metric of this name over the time.
export const MetricAxes = ({ name, latest, values, width, height }: AxesProps & { name: string }) => (
  <>
    {values && <Values values={values} width={width} height={height} />}
    <Times latest={latest} width={width} height={height} />
    <text x={0} y={12} class="axis-name">
      {name}
    </text>
    <NameBelow text={TIME} width={width} height={height} />
  </>
);

// The stages above each other, and the time.
export function TimeAxes({ lane, unit, latest, scale, width, height }: AxesProps) {
  const y = (length: number): number => yOf(scale.part(length), height);
  const marks = marksOf(lane, scale);
  const named = marks.reduce<number[]>((kept, mark) => {
    const above = kept[kept.length - 1];
    return above === undefined || y(mark) - y(above) >= APART ? [...kept, mark] : kept;
  }, []);
  return (
    <>
      {marks.map((mark) => (
        <line key={mark} class="grid" x1={SIDE} x2={width - RIGHT} y1={y(mark)} y2={y(mark)} />
      ))}
      <Times latest={latest} width={width} height={height} />
      {named.map((mark) => (
        <text key={mark} x={SIDE - 8} y={y(mark) + 4} text-anchor="end">
          {grouped(mark)}
        </text>
      ))}
      <text x={0} y={12} class="axis-name">
        {lengthName(unit, scale)}
      </text>
      <NameBelow text={TIME} width={width} height={height} />
    </>
  );
}

// The names of the stages, below their lengths on the axis.
export function Stages({ lane, scale, height }: Pick<AxesProps, 'lane' | 'scale' | 'height'>) {
  const y = (length: number): number => yOf(scale.part(length), height);
  const named = stagesOf(lane).filter((one, at, all) => at === 0 || y(all[at - 1]?.length ?? 0) - y(one.length) >= 2 * APART);
  return (
    <>
      {named.map(({ name, length, about }) => (
        <text key={name} x={SIDE - 8} y={y(length) + 4 + APART} text-anchor="end">
          {name}
          <title>{about}</title>
        </text>
      ))}
    </>
  );
}
