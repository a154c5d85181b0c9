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
  isRefused?: boolean; // an action that the master refused
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

const isNumber = (text: string): boolean => /^\d+$/.test(text);

// Actions on a part of another object, whose audit lines have both: the noun of the whole, and of the part.
const PARTS: Readonly<Record<string, readonly [whole: string, part: string]>> = {
  slot: ['agent', 'slot'],
  'model version': ['model', 'version'],
};

// "vm, 0" is "slot 0 of agent vm"; "model digits, model version 1" is "version 1 of model digits".
function partText([whole, part]: readonly [string, string], parts: readonly string[]): string {
  const bare = (text: string, noun: string): string => text.replace(new RegExp(`^(?:model )?${noun} `), '');
  const number = parts.slice(1).map((one) => bare(one, part)).find(isNumber);
  return `${number === undefined ? `a ${part}` : `${part} ${number}`} of ${whole} ${bare(parts[0] ?? '', whole)}`;
}

// The object of the action: the part of it that the noun of the action names, with the other parts in parentheses, or
// the noun itself.
function objectOf(noun: string, object: string): string {
  if (noun === '') return '';
  if (object === '') return noun === 'job queue' ? 'the job queue' : noun.endsWith('s') ? noun : `${/^[aeio]/.test(noun) ? 'an' : 'a'} ${noun}`;
  if (noun === 'job queue') return `the job queue (${object})`;
  if (object.startsWith('role ')) return `the ${object}`;
  const parts = object.split(', ');
  const isPart = PARTS[noun];
  if (isPart) return partText(isPart, parts);
  if (noun === 'quota' && parts.length === 3) return `the quota ${parts[0]} of ${parts[1]} ${parts[2]}`;
  // Every kind of task is killed by the call for commands.
  const task = parts.find((part) => part.startsWith('task '));
  if (task) return task;
  const kind = noun.split(' ').pop()?.replace(/s$/, '') ?? '';
  const own = parts.find((part) => part.startsWith(`${kind} `));
  if (own === undefined) return `${noun} ${object}`;
  const others = parts.filter((part) => part !== own && !own.endsWith(` ${part}`));
  return others.length > 0 ? `${own} (${others.join(', ')})` : own;
}

// Sentences of actions without an object.
const SENTENCES: Readonly<Record<string, string>> = {
  'UserService/PostUserSetting': 'changed a setting',
  'UserService/ResetUserSetting': 'reset the settings',
};

function audited(fields: ReadonlyMap<string, string>): MasterText {
  const field = (name: string): string => fields.get(name) ?? '';
  const [, verb = '', rest = ''] = /^(?:.*\/)?([A-Z][a-z]*)(.*)$/.exec(field('action')) ?? ['', '', field('action')];
  const [, of = '', only] = /^(.*?)(?:, )?(check only)?$/.exec(field('object')) ?? [];
  const object = objectOf(wordsOf(rest), of);
  // Earlier releases named no object of a check.
  const isCheck = only !== undefined || (verb === 'Create' && rest === 'Experiment' && of === '');
  const subject = field('user') || (verb === 'Join' ? field('object') : 'someone');
  const isRefused = field('outcome') !== 'OK' && field('outcome') !== '';
  const outcome = isRefused ? `: ${wordsOf(field('outcome'))}` : '';
  const verbs = isRefused ? `tried to ${present(verb)}` : past(verb);
  const about = `a configuration${of === '' ? '' : ` for ${of}`}`;
  const check = isRefused ? `sent ${about} that was refused` : `checked ${about}`;
  const sentence = isRefused ? undefined : SENTENCES[field('action')];
  const what = isCheck ? check : (sentence ?? `${verbs} ${object}`.trim());
  const from = LOCAL.test(field('address')) || field('address') === '' ? '' : ` from ${field('address')}`;
  return { text: `${subject} ${what}${from}${outcome}`, isNoise: rest === 'Logs' || /MasterLogs$/.test(field('action')), isRefused };
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
