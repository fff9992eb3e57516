import { stripVTControlCharacters } from 'node:util';

const LEVELS: Readonly<Record<string, readonly [name: string, color: string]>> = {
  trace: ['TRC', '90'],
  debug: ['DBG', '90'],
  info: ['INF', '36'],
  warn: ['WRN', '33'],
  error: ['ERR', '31'],
  fatal: ['FTL', '35'],
};

/** Fields with a fixed place in the line, or none. */
const PLACED = new Set(['level', 'time', 'event', 'msg', 'module', 'host', 'app', 'stream', 'tracks', 'remote', 'err']);

/** Characters that would end the line, move the cursor, or turn the direction of writing. */
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu;
/** Start of internal names of the only virtual host. */
const DEFAULT_VHOST = /^#default#/;
const PLAIN = /^[^\s"=]+$/;
const FRAME = /^\s+at (?!.*(?:node:|node_modules)).*$/m;

type Value = string | number | boolean | null | readonly unknown[] | { readonly [key: string]: unknown };
interface Fields {
  readonly level: string;
  readonly time: string;
  readonly msg?: string;
  readonly module?: string;
  readonly tracks?: string;
  readonly [name: string]: Value | undefined;
}

interface LoggedError {
  readonly type?: string;
  readonly message?: string;
  readonly stack?: string;
}

/**
 * Formats a line of the log for people, from the JSON of the same line:
 * `00:05:21 INF rtmp app/mystream published 1280x720 H264 AAC from 203.0.113.9`.
 * The result is one line, whatever its fields contain.
 * @param json as pino writes it, with names of levels and ISO time
 */
export function textLine(json: string, color: boolean): string {
  const fields = JSON.parse(json) as Fields;
  const { level, time, msg = '', module, tracks, remote, err } = fields;
  const [name, paint] = LEVELS[level] ?? [level, '0'];
  const parts = [
    module ?? '',
    streamOf(fields) ?? '',
    msg,
    tracks ?? '',
    ...Object.entries(fields)
      .filter(([key, value]) => !PLACED.has(key) && !isSaid(value, msg))
      .map(([key, value]) => `${key}=${shown(value)}`),
    remote === undefined ? '' : `from ${shown(remote)}`,
    err === undefined ? '' : `(${errorText(err)})`,
  ];
  const text = parts.filter((part) => part !== '').join(' ');
  const label = color ? `\u001b[${paint}m${name}\u001b[0m` : name;
  return `${localTime(time)} ${label} ${printable(text)}\n`;
}

function streamOf({ app, stream }: Fields): string | undefined {
  if (typeof stream !== 'string') return typeof app === 'string' ? app : undefined;
  return (typeof app === 'string' ? `${app}/${stream}` : stream).replace(DEFAULT_VHOST, '');
}

/** Message of an error, and the first place in Kiln's own code from its stack. */
function errorText(error: Value): string {
  if (typeof error !== 'object' || error === null) return String(error);
  const { type = 'Error', message = '', stack = '' } = error as LoggedError;
  const frame = FRAME.exec(stack)?.[0].trim();
  return `${type}: ${message}${frame === undefined ? '' : `, ${frame}`}`;
}

/** Whether the message contains the value already: fields exist for searches, too. */
function isSaid(value: Value | undefined, message: string): boolean {
  if (typeof value === 'string') return value !== '' && message.includes(value);
  return typeof value === 'number' && message.split(/[\s:,;()]+/).includes(String(value));
}

function shown(value: Value | undefined): string {
  if (typeof value === 'string') return PLAIN.test(value) ? value : JSON.stringify(value);
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}

function localTime(iso: string): string {
  return new Date(iso).toTimeString().slice(0, 8);
}

function printable(text: string): string {
  return stripVTControlCharacters(text).replace(
    UNPRINTABLE,
    (character) => `\\u${(character.codePointAt(0) ?? 0).toString(16).padStart(4, '0')}`,
  );
}
