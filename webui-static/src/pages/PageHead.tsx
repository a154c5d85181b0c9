// The head of a detail page on one line: the path to it, its title, facts, labels and actions.
import { Fragment, type ComponentChildren } from 'preact';

interface Props {
  path: readonly (readonly [string, string])[]; // addresses and names of the pages above
  end?: string; // last part of the path
  title: string;
  hover?: string; // shown over the title
  brief?: boolean; // on a phone with the state and the metric only
  facts?: ComponentChildren; // those that do not fit are hidden
  labels?: readonly string[];
  children?: ComponentChildren; // actions
}

// Titles up to this length, such as "Trial 12", are never cut.
const SHORT = 16;

// The first labels up to this length are shown, the others are counted.
const MAX_LABELS = 24;

// All labels, in the order of the list; at least the first is shown.
export function Labels({ labels }: { labels: readonly string[] }) {
  if (labels.length === 0) return null;
  const shown = labels.filter((_, at) => at === 0 || labels.slice(0, at + 1).join('').length <= MAX_LABELS);
  const others = labels.slice(shown.length);
  return (
    <div class="labels">
      {shown.map((label) => (
        <span class="tag" key={label} title={label}>
          {label}
        </span>
      ))}
      {others.length > 0 && (
        <span class="tag" title={others.join('\n')}>
          +{others.length}
        </span>
      )}
    </div>
  );
}

export function PageHead({ path, end, title, hover, brief = false, facts, labels = [], children }: Props) {
  const length = [...path.map(([, name]) => name), end ?? ''].join(' / ').length;
  return (
    <div class={`run-head ${brief ? 'brief' : ''}`}>
      <p class="quiet crumbs" style={{ '--length': length }}>
        {path.map(([href, name], at) => (
          <Fragment key={href}>
            {at > 0 && <span>/</span>}
            <a href={href} title={name}>
              {name}
            </a>
          </Fragment>
        ))}
        {end ? <span>/ {end}</span> : <span class="before-title">/</span>}
      </p>
      <h1 class={title.length <= SHORT ? 'short' : ''} title={hover ?? title} style={{ '--length': title.length }}>
        {title}
      </h1>
      {facts && <div class="state-line">{facts}</div>}
      <Labels labels={labels} />
      {children}
    </div>
  );
}
