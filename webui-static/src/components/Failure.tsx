// Why a trial failed: the error, how it ended, the lines of its output above the error unless brief, and the way to its log
// unless that is shown.
import { paths } from '../address';
import { endText, errorContext, errorLine } from '../failure';
import { Icon } from './Icon';

interface Props {
  trial: number;
  reason: string;
  brief: boolean;
  atLog: boolean;
}

export const Failure = ({ trial, reason, brief, atLog }: Props) => (
  <section class="failure" aria-label="Failure">
    <p>
      <Icon name="alert" />
      <strong>{errorLine(reason)}</strong>{' '}
      {endText(reason) !== '' && <span>{endText(reason)}</span>}
      {!atLog && <a href={`${paths.trial(trial)}?tab=log`}>Open the log of trial {trial}</a>}
    </p>
    {!brief && errorContext(reason) !== '' && <pre tabIndex={0}>{errorContext(reason)}</pre>}
  </section>
);
