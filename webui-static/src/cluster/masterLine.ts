// Lines of the master's log as sentences: "admin killed experiment 14". Pure.

// Verbs of actions that read better as other words, or whose past tense is irregular: present and past tense.
const VERBS: Readonly<Record<string, readonly [string, string]>> = {
  Patch: ['change', 'changed'],
  Post: ['create', 'created'],
  Put: ['set', 'set'],
  Set: ['set', 'set'],
  Reset: ['reset', 'reset'],
  Upload: ['submit', 'submitted'],
  Overwrite: ['overwrite', 'overwrote'],
  Login: ['sign in', 'signed in'],
  Logout: ['sign out', 'signed out'],
  Get: ['read', 'read'],
};

const present = (verb: string): string => VERBS[verb]?.[0] ?? verb.toLowerCase();
const past = (verb: string): string => VERBS[verb]?.[1] ?? verb.toLowerCase().replace(/([^aeiou])y$/, '$1i').replace(/e$/, '') + 'ed';

// "ExperimentLabel" → "experiment label".
const wordsOf = (name: string): string => name.replace(/(?<=[a-z])[A-Z]/g, ' $&').toLowerCase();

const LOCAL = /^(127\.|::1|\[::1\]|unix)/;
const FIELD = /^[a-z_.]+=(?:"(?:\\.|[^"\\])*"|[^"\s]*)/;

interface MasterText {
  text: string;
  isNoise: boolean; // about the log itself
}

// The text before the fields of a message, and its fields; undefined if it does not end with fields.
function split(message: string): [string, Map<string, string>] | undefined {
  const start = message.search(/ [a-z_.]+=/);
  if (start < 0) return undefined;
  const fields = new Map<string, string>();
  for (let rest = message.slice(start + 1); rest !== ''; ) {
    const own = FIELD.exec(rest)?.[0];
    if (own === undefined || (rest.length > own.length && rest[own.length] !== ' ')) return undefined;
    const value = own.slice(own.indexOf('=') + 1);
    fields.set(own.slice(0, own.indexOf('=')), value.startsWith('"') ? value.slice(1, -1).replace(/\\(.)/g, '$1') : value);
    rest = rest.slice(own.length + 1);
  }
  return [message.slice(0, start), fields];
}

// What the action was about: the part of its object that the noun of the action names, with the other parts in
// parentheses, or the noun itself.
function objectOf(noun: string, object: string): string {
  if (noun === '') return '';
  if (object === '') return noun === 'job queue' ? 'the job queue' : noun.endsWith('s') ? noun : `${/^[aeio]/.test(noun) ? 'an' : 'a'} ${noun}`;
  const parts = object.split(', ');
  const kind = noun.split(' ').pop()?.replace(/s$/, '') ?? '';
  const own = parts.find((part) => part.startsWith(`${kind} `));
  if (own === undefined) return `${noun} ${object}`;
  const others = parts.filter((part) => part !== own && !own.endsWith(` ${part}`));
  return others.length > 0 ? `${own} (${others.join(', ')})` : own;
}

function audited(fields: ReadonlyMap<string, string>): MasterText {
  const field = (name: string): string => fields.get(name) ?? '';
  const [, verb = '', rest = ''] = /^(?:.*\/)?([A-Z][a-z]*)(.*)$/.exec(field('action')) ?? ['', '', field('action')];
  const object = objectOf(wordsOf(rest), field('object'));
  // A configuration that was only checked creates no object.
  const isCheck = verb === 'Create' && rest === 'Experiment' && field('object') === '';
  const subject = field('user') || (verb === 'Join' ? field('object') : 'someone');
  const outcome = field('outcome') === 'OK' || field('outcome') === '' ? '' : `: ${wordsOf(field('outcome'))}`;
  const verbs = outcome === '' ? past(verb) : `tried to ${present(verb)}`;
  const what = isCheck ? (outcome === '' ? 'checked a configuration' : 'sent a configuration that was refused') : `${verbs} ${object}`.trim();
  const from = LOCAL.test(field('address')) || field('address') === '' ? '' : ` from ${field('address')}`;
  return { text: `${subject} ${what}${from}${outcome}`, isNoise: rest === 'Logs' || /MasterLogs$/.test(field('action')) };
}

// A message as a sentence; unchanged if it has no fields.
export function readable(message: string): MasterText {
  const parts = split(message);
  if (!parts) return { text: message, isNoise: false };
  const [text, fields] = parts;
  if (text === 'audit') return audited(fields);
  const shown = [...fields].filter(([name, value]) => value !== '' && !(name === 'address' && LOCAL.test(value)));
  return { text: [text, ...shown.map(([name, value]) => `${name} ${value}`)].join(' · '), isNoise: false };
}
