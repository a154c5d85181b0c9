// Tables with a column per compared subject.
import { Fragment, type ComponentChildren } from 'preact';
import { paths, useQuery } from '../address';
import { Name } from '../components/Name';
import { Swatch } from '../components/Swatch';
import type { Row, Subject } from './subjects';

const nameOf = (one: Subject): string => (one.path === 'trial' ? one.name : one.experiment.name || one.name);

export const SubjectHeads = ({ all }: { all: Subject[] }) => (
  <tr>
    <th scope="col" class="corner">
      <span class="hidden">Name</span>
    </th>
    {all.map((one) => (
      <th scope="col" key={one.name}>
        <a class="one-line" href={one.path === 'trial' && one.trial ? paths.trial(one.trial.id) : paths.experiment(one.experiment.id)} title={one.experiment.name} aria-label={nameOf(one)}>
          {one.color && <Swatch color={one.color} />}
          <Name text={nameOf(one)} />
        </a>
        <div class="quiet one-line">{one.path === 'trial' ? <Name text={one.experiment.name} /> : one.name}</div>
      </th>
    ))}
  </tr>
);

// A long name with line breaks allowed after dots and underscores.
const Broken = ({ name }: { name: string }) => (
  <>
    {name.split(/(?<=[._])/).map((part, at) => (
      <Fragment key={at}>
        {at > 0 && <wbr />}
        {part}
      </Fragment>
    ))}
  </>
);

export function CompareTable(props: { label: string; all: Subject[]; rows: [string, ComponentChildren[], boolean][] }) {
  return (
    <div class="table-frame compare" role="region" aria-label={props.label} tabIndex={0} style={{ '--subjects': props.all.length }}>
      <table>
        <thead>
          <SubjectHeads all={props.all} />
        </thead>
        <tbody>
          {props.rows.map(([name, cells, differs]) => (
            <tr key={name} class={differs ? 'differs' : ''}>
              <th scope="row">
                <Broken name={name} />
              </th>
              {cells.map((cell, at) => (
                <td key={at}>{cell}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

// Rows of values; rows that differ are marked, or shown alone.
export function ValueTable({ label, all, rows, none }: { label: string; all: Subject[]; rows: Row[]; none: string }) {
  const { query, setQuery } = useQuery();
  const whole = query.same === '1';
  const shown = whole ? rows : rows.filter((row) => row.differs);
  return (
    <>
      <label class="check">
        <input type="checkbox" checked={whole} onChange={() => setQuery({ same: whole ? '' : '1' })} />
        Show equal values
        <span class="quiet">
          {rows.filter((row) => row.differs).length} of {rows.length} differ
        </span>
      </label>
      {shown.length === 0 ? (
        <p class="quiet">{none}</p>
      ) : (
        <CompareTable
          label={label}
          all={all}
          rows={shown.map((row) => [row.name, row.values, whole && row.differs])}
        />
      )}
    </>
  );
}
