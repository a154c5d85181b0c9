// The comparison table: a column per compared subject under one head that stays in sight, rows in sections.
import type { ComponentChildren } from 'preact';
import { paths, useQuery } from '../address';
import { Name } from '../components/Name';
import { StateBadge } from '../components/notes';
import { Swatch } from '../components/Swatch';
import { useWidth } from '../components/width';
import { counted, sharedStart } from '../format';
import { experimentTitle } from '../workbench/runs';
import { missingText, onlyDiffering, type Cell, type Row, type Section } from './rows';
import type { Subject } from './subjects';

// Name and id of a run, without the beginning `shared` by all names; below a trial the name and id of its experiment, if
// `isNamed`.
function Head({ one, shared, isNamed, isBaseline }: { one: Subject; shared: string; isNamed: boolean; isBaseline: boolean }) {
  const { experiment, trial } = one;
  const ofTrial = one.path === 'trial' && trial !== undefined;
  const name = ofTrial ? one.name : experiment.name || one.name;
  return (
    <th scope="col" data-compared={one.name}>
      <div class="compared">
        {one.color && <Swatch color={one.color} />}
        <a href={ofTrial ? paths.trial(trial.id) : paths.experiment(experiment.id)} title={name}>
          {shared === '' ? name : `…${name.slice(shared.length)}`}
        </a>
        {!ofTrial && <span class="quiet">#{experiment.id}</span>}
      </div>
      {ofTrial && isNamed && (
        <a class="one-line quiet" href={paths.experiment(experiment.id)} title={experiment.name}>
          <Name text={experimentTitle(experiment)} />
        </a>
      )}
      {isBaseline && <span class="quiet base">baseline</span>}
    </th>
  );
}

// "checkpoint_storage.type": the objects around a leaf are shortened before its own name is.
function RowName({ name }: { name: string }) {
  const end = name.lastIndexOf('.') + 1;
  if (end === 0) return <>{name}</>;
  return (
    <span class="dotted">
      <span>{name.slice(0, end)}</span>
      <span>{name.slice(end)}</span>
    </span>
  );
}

// Characters of a text that may need several lines.
const LONG = 40;

// `nothing` stands for a missing value.
const Value = ({ cell: { text, difference, tone, isBest, state }, nothing }: { cell: Cell; nothing: string }) => (
  <>
    {state ? <StateBadge state={state} /> : text === '' ? <span class="quiet">{nothing}</span> : text.length > LONG ? <span class="long">{text}</span> : text}
    {isBest && <> <span class="best">best</span></>}
    {difference !== '' && <> <span class={`difference ${tone}`}>{difference}</span></>}
  </>
);

// A setting that differs from the baseline is tinted.
const cellClass = ({ text }: Cell, { cells, isMeasured }: Row): string => (isMeasured || text === cells[0]?.text ? '' : 'other');

interface Props {
  label: string;
  all: Subject[];
  sections: readonly Section[];
  tools: ComponentChildren; // in the row above the table
}

// Most characters of the names of rows beside the values, pixels of one, and the padding.
const MAX_NAME = 34;
const CHARACTER = 7.5;
const PADDING = 24;
// Pixels of the column of a subject. The least is that of its head.
const LEAST = 84;
const MOST = 320;
// Characters of a value that is not broken; a longer one has several lines.
const WHOLE = 14;
// Lines of a name that is not shortened.
const HEAD_LINES = 2;
// Below this width the differences are on a line of their own, and the padding is less.
const NARROW = 180;
const NARROW_PADDING = 16;

// The most characters of a cell in the rows that differ.
const longestOf = (rows: readonly Row[]): number =>
  Math.max(0, ...rows.filter(({ differs }) => differs).flatMap(({ cells }) => cells.flatMap(({ text, difference }) => [text.length, difference.length])).filter((length) => length <= WHOLE));

// The width of the names, which have 46 % of the table at most, less beside many subjects, and the width of a subject,
// which holds its values: whole columns fill the table, because a part of one tells nothing.
function widths(width: number, subjects: number, characters: number, longest: number): { names: number; subject: number; hidden: number } {
  const names = Math.floor(Math.min(Math.max(0.22, 0.46 - 0.04 * subjects) * width, CHARACTER * characters + PADDING));
  const least = Math.max(LEAST, CHARACTER * longest + NARROW_PADDING);
  const visible = Math.min(subjects, Math.max(1, Math.floor((width - names) / least)));
  return { names, subject: Math.min(MOST, (width - names) / visible), hidden: subjects - visible };
}

const SectionRows = ({ section, count, onlyDifferences }: { section: Section; count: number; onlyDifferences: boolean }) => (
  <tbody aria-label={section.name}>
    {section.name !== '' && (
      <tr class="section">
        <th scope="rowgroup" colSpan={count + 1}>
          <span>{section.name}</span>
        </th>
      </tr>
    )}
    {section.rows.map((row) => (
      <tr key={row.name} class={row.differs && !onlyDifferences ? 'differs' : ''}>
        <th scope="row" title={row.name}>
          <RowName name={row.name} />
        </th>
        {(row.differs ? row.cells : row.cells.slice(0, 1)).map((cell, at) => (
          <td key={at} colSpan={row.differs ? 1 : count} class={cellClass(cell, row)} title={cell.text}>
            <Value cell={cell} nothing={missingText(row)} />
            {!row.differs && count > 1 && <span class="quiet"> in all</span>}
          </td>
        ))}
      </tr>
    ))}
  </tbody>
);

// The sections' rows that differ, or all of them as the switch says.
export function CompareTable({ label, all, sections, tools }: Props) {
  const { query, setQuery } = useQuery();
  const isOne = all.length < 2;
  const isNamed = all.some(({ experiment }) => experiment.id !== all[0]?.experiment.id);
  const onlyDifferences = !isOne && query.same !== '1';
  const shown = onlyDifferences ? onlyDiffering(sections) : sections;
  const rows = sections.flatMap((section) => section.rows);
  const names = Math.min(MAX_NAME, Math.max(8, ...shown.flatMap((section) => section.rows.map(({ name }) => name.length))));
  const [host, width] = useWidth<HTMLDivElement>();
  const sizes = widths(width, all.length, names, longestOf(shown.flatMap((section) => section.rows)));
  const titles = all.map((one) => (one.path === 'trial' ? '' : one.experiment.name));
  const isLong = titles.every(({ length }) => CHARACTER * length > HEAD_LINES * (sizes.subject - PADDING));
  const shared = isLong ? sharedStart(titles) : '';
  const differing = rows.filter(({ differs }) => differs).length;
  return (
    <>
      <div class="compare-tools" ref={host}>
        {tools}
        {!isOne && (
          <label class="check">
            <input type="checkbox" checked={onlyDifferences} onChange={() => setQuery({ same: onlyDifferences ? '1' : '' })} />
            Only differences
            <span class="quiet" title={`${differing} of ${counted(rows.length, 'row')} ${differing === 1 ? 'differs' : 'differ'}`}>
              {differing} of {rows.length}
            </span>
          </label>
        )}
        {sizes.hidden > 0 && <span class="quiet">{sizes.hidden} more {sizes.hidden === 1 ? 'run' : 'runs'} to the right</span>}
      </div>
      <div class={`table-frame compare ${sizes.subject < NARROW ? 'narrow' : ''} ${sizes.hidden === 0 ? 'whole' : ''}`} role="region" aria-label={label} tabIndex={0}>
        <table style={{ '--subjects': all.length, '--names': `${sizes.names}px`, '--width': `${sizes.names + all.length * sizes.subject}px` }}>
          <thead>
            <tr>
              <th scope="col" class="corner">
                <span class="hidden">Name</span>
              </th>
              {all.map((one, at) => (
                <Head key={one.name} one={one} shared={shared} isNamed={isNamed} isBaseline={!isOne && at === 0} />
              ))}
            </tr>
          </thead>
          {shown.map((section) => (
            <SectionRows key={section.name} section={section} count={all.length} onlyDifferences={onlyDifferences} />
          ))}
        </table>
        {shown.length === 0 && <p class="quiet nothing">All rows are equal.</p>}
      </div>
    </>
  );
}
