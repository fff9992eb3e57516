import { fillMacros } from '../../../lib/macros.ts';
import { PathError, partsBelow } from '../../../lib/files/paths.ts';

/** Values of the macros in a dump's paths (docs/compatibility.md#recordings-pushes-dumps). */
export interface DumpPathValues {
  readonly vhost: string;
  readonly app: string;
  readonly stream: string;
  readonly start: Date;
}

/**
 * Expands the macros of a dump's OutputPath or InfoFile. Their values cannot lead to other folders.
 * @throws PathError for a path that is not absolute, has `..`, a NUL character, or a name that is too long
 */
export function dumpPath(template: string, values: DumpPathValues): string {
  const path = fillMacros(template, (name) => valueOf(name, values));
  if (!path.startsWith('/')) throw new PathError(`the path of a dump has to be absolute: ${path}`);
  if (path.split('/').includes('..')) throw new PathError(`the path of a dump must not contain "..": ${path}`);
  return `/${partsBelow('/', path.replaceAll(/^\/+|\/+$/g, '')).join('/')}`;
}

/** undefined for an unknown macro. */
function valueOf(name: string, { vhost, app, stream, start }: DumpPathValues): string | undefined {
  switch (name) {
    case 'VHostName':
      return fileName(vhost);
    case 'AppName':
      return fileName(app);
    case 'StreamName':
      return fileName(stream);
    case 'YYYY':
      return digits(start.getFullYear(), 4);
    case 'MM':
      return digits(start.getMonth() + 1);
    case 'DD':
      return digits(start.getDate());
    case 'hh':
      return digits(start.getHours());
    case 'mm':
      return digits(start.getMinutes());
    case 'ss':
      return digits(start.getSeconds());
    case 'S':
      return fileName(zoneOf(start));
    case 'z':
      return offsetOf(start, '');
    case 'ISO8601':
      return isoOf(start);
    default:
      return undefined;
  }
}

function fileName(text: string): string {
  return text.replaceAll('/', '_');
}

function isoOf(time: Date): string {
  const day = `${digits(time.getFullYear(), 4)}-${digits(time.getMonth() + 1)}-${digits(time.getDate())}`;
  const clock = [time.getHours(), time.getMinutes(), time.getSeconds()].map((value) => digits(value)).join(':');
  return `${day}T${clock}${offsetOf(time, ':')}`;
}

/** UTC offset of the local time, such as `+0900`. */
function offsetOf(time: Date, separator: string): string {
  const minutes = -time.getTimezoneOffset();
  const size = Math.abs(minutes);
  return `${minutes < 0 ? '-' : '+'}${digits(Math.floor(size / 60))}${separator}${digits(size % 60)}`;
}

/** Abbreviation of the local time zone, such as `UTC`. */
function zoneOf(time: Date): string {
  const parts = new Intl.DateTimeFormat('en-US', { timeZoneName: 'short' }).formatToParts(time);
  return parts.find(({ type }) => type === 'timeZoneName')?.value ?? 'UTC';
}

function digits(value: number, length = 2): string {
  return String(value).padStart(length, '0');
}
