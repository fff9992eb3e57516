import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { script } from './connection.ts';

const folder = join(import.meta.dirname, 'lua');
const read = (name: string): string => readFileSync(join(folder, `${name}.lua`), 'utf8');
const prelude = read('prelude');
const load = (...names: string[]) => script([prelude, ...names.map(read)].join('\n'));

/** Every step that Redis does for us; each is one, whatever others do at the same time. */
export const SCRIPTS = {
  beat: load('presence', 'recovery', 'beat'),
  claim: load('claim'),
  confirm: load('confirm'),
  drain: load('drain'),
  leave: load('leave'),
  markDead: load('presence', 'mark-dead'),
  offer: load('offer'),
  pull: load('pull'),
  recordFinish: load('record-finish'),
  recordPage: load('record-page'),
  recordPut: load('record-put'),
  release: load('release'),
  report: load('report'),
  reseal: load('reseal'),
  stats: load('stats'),
  values: load('values'),
  verdict: load('verdict'),
  write: load('write'),
} as const;
